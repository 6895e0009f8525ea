"""A nursery for each test module, and a place for stores that is as fast as memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.nursery import Nursery

MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    nursery = Nursery(tmp_path_factory.mktemp("nursery"))
    yield nursery
    nursery.close()


@pytest.fixture
def swift(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: a process crash leaves the same bytes there as on a disk, sooner."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="lastgood-test-", dir=MEMORY))
    yield path
    shutil.rmtree(path)
