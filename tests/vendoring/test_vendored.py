"""core/ copied under another name, in an interpreter that refuses torch and lastgood: saves, is killed, recovers."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from lastgood.core.jit import JIT
from tests.vendoring.project import NAME, Project

SAVE_AND_DIE = f"""
import os, signal, sys, threading
import numpy as np
from {NAME} import Store
from {NAME}.files import BufferedFile

path, count = sys.argv[1], int(sys.argv[2])
store = Store.create(path, slot_bytes=100_000, chunk_bytes=16_384, in_flight=3, keep=2)
for step in range(1, count + 1):
    store.save(np.full(100_000, step, np.uint8), step=step, meta=b"from afar").wait()
persist = BufferedFile.persist

def die_instead(device):
    os.kill(os.getpid(), signal.SIGKILL)

BufferedFile.persist = die_instead
for step in range(count + 1, count + 4):
    store.save(np.full(100_000, step, np.uint8), step=step)
threading.Event().wait(60)
"""

RECOVER = f"""
import sys
import numpy as np
from {NAME} import Store
import {NAME}
assert not any(name.partition(".")[0] in ("lastgood", "torch") for name in sys.modules)
with Store.open(sys.argv[1]) as store:
    record, payload = store.read_with_record()
    assert payload.size == 100_000 and np.all(payload == record.step)
    assert record.meta == b"from afar"
    assert store.save(np.full(50, 99, np.uint8), step=99).wait().step == 99
print(record.step, {NAME}.__name__)
"""

SAVE_ONCE = f"""
import sys
from {NAME} import Store
with Store.create(sys.argv[1], slot_bytes=100) as store:
    store.save(b"compiled", step=1).wait()
"""

EVERY_MODULE = f"""
import importlib, pkgutil, sys
import {NAME}
names = sorted(module.name for module in pkgutil.iter_modules({NAME}.__path__) if module.name != "__main__")
for name in names:
    importlib.import_module(f"{NAME}." + name)
assert not any(name.partition(".")[0] in ("lastgood", "torch") for name in sys.modules)
print(len(names))
"""


def test_the_project_refuses_what_it_says(project: Project) -> None:
    """Without this the other tests might find the installed package and say nothing."""
    for name in ("torch", "lastgood", "lastgood.core"):
        done = project.run("-c", f"import {name}", status=1)
        assert f"refused: {name.partition('.')[0]}" in done.stderr


def test_every_module_is_imported_under_the_other_name(project: Project) -> None:
    done = project.run("-W", "error", "-c", EVERY_MODULE)
    assert int(done.stdout) > 25


@pytest.fixture(scope="module")
def died(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose writer was killed in the middle of its fourth save."""
    path = tmp_path_factory.mktemp("died") / "store"
    done = project.run("-c", SAVE_AND_DIE, path, 3, status=None)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return path


def test_saved_killed_verified_recovered(project: Project, died: Path) -> None:
    """`newest-survives` in somebody else's project."""
    done = project.command("verify", died)
    assert re.search(r"\b2 checkpoints whole, 0 files damaged", done.stdout)
    facts = json.loads(project.command("inspect", died, "--json").stdout)
    assert facts["checkpoints"][0]["step"] >= 3
    assert facts["writer"] is False
    done = project.run("-W", "error", "-c", RECOVER, died)
    step, name = done.stdout.split()
    assert int(step) >= 3
    assert name == NAME


def test_a_message_speaks_of_the_program_that_was_run(project: Project) -> None:
    done = project.command("--help")
    assert f"python -m {NAME}" in done.stdout
    assert "lastgood.core" not in done.stdout


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_compiled_code_is_found_again(project: Project, tmp_path: Path) -> None:
    """The cache beside a vendored copy works: nothing is compiled a second time."""

    def cached() -> list[str]:
        return sorted(path.name for path in (project.root / "cache").rglob("*.nbc"))

    project.run("-c", SAVE_ONCE, tmp_path / "first")
    before = cached()
    assert before
    project.run("-c", SAVE_ONCE, tmp_path / "second")
    assert cached() == before
