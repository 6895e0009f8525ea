"""A directory whose files live in memory, for tests of processes that are killed: they ask nothing of a disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

IN_MEMORY = "/dev/shm"


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one; what a killed process wrote is still there."""
    if not os.access(IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=IN_MEMORY, prefix="lastgood-test-") as path:
        yield Path(path)
