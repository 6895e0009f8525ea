"""Errors that the kernel itself seems to give, put there by strace: no code of ours, and none of Python's, is replaced.

Each program opens a store, and the tracer makes one system call on one of its files fail. Skipped where strace is missing
or may not trace; `test_every_refusal` makes the same calls fail from inside.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lastgood.core import Store
from tests.faults.children import run
from tests.store.small import check_kept, check_no_leak, create, save


@functools.cache
def why_not() -> str:
    """Why strace cannot inject here; "" when it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "inject=fsync:error=EIO", sys.executable, "-c"]
    program = "import os; d = os.open('/', os.O_RDONLY)\ntry: os.fsync(d)\nexcept OSError as e: print(e.errno)"
    done = subprocess.run([*command, program], capture_output=True, text=True, timeout=60, check=False)
    if done.stdout.strip() != str(errno.EIO):
        return f"strace cannot inject errors here: {done.stderr.strip().splitlines()[-1:]}"
    return ""


@pytest.fixture(autouse=True)
def _tracer() -> None:
    if why_not():
        pytest.skip(why_not())


def traced(program: str, path: Path, file: Path, call: str, injection: str) -> Any:
    """Run with `call`s on `file` failing as `injection` says."""
    prefix = ("strace", "-f", "-qq", "-o", os.devnull, "-P", str(file), "-e", f"trace={call}")
    return run(program, path, prefix=(*prefix, "-e", f"inject={call}:{injection}"))


SAVING = """
path = sys.argv[1]
store = Store.open(path, device="buffered", writers=1)  # the tracer counts the calls of each thread
store.read()
found = {"start": told(lambda: save(store, 5))}
found["kept"] = [record.step for record in store.records()]
if found["start"][0] != "nothing":
    found["next"] = told(lambda: store.save(payload_of(6), step=6))
    try:
        store._engine.tell_of_failures(None)
    except SaveFailed:
        pass
else:
    found["next"] = told(lambda: save(store, 6))
found["close"] = told(store.close)
print(json.dumps(found))
"""


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """A store that keeps steps 4 and 3 in slots 0 and 2; slot 1, a leftover, is written by no one but the next save."""
    with create(tmp_path / "store", device="buffered") as store:
        for step in (1, 2, 3, 4):
            save(store, step)
        assert [record.slot for record in store.records()] == [0, 2]
    return tmp_path / "store"


def check_afterwards(path: Path, *steps: list[int]) -> None:
    """The store is whole and goes on."""
    with Store.open(path) as store:
        assert [record.step for record in store.records()] in steps
        store.read()
        save(store, 9)
        check_no_leak(store)
        assert not {"damaged"} & {report.state for report in store.verify()}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("fdatasync", "EIO"),
        ("pwrite64", "EIO"),
        ("pwrite64", "ENOSPC"),
        ("pwrite64", "EDQUOT"),
        ("fdatasync", "ENOSPC"),
    ],
)
def test_a_call_on_the_slot_of_a_save_fails_that_save_only(store_path: Path, call: str, name: str) -> None:
    found = traced(SAVING, store_path, store_path / "slot-0001", call, f"error={name}:when=1")
    kind, _, message = found["start"]
    assert kind == "SaveFailed"
    number = getattr(errno, name)
    assert f"step 5 did not become durable: [Errno {number}] {os.strerror(number)}: '{store_path}/slot-0001'" in message
    assert found["kept"] == [4, 3]
    assert found["next"][0] == "SaveFailed"
    assert "step 5" in found["next"][2]
    assert found["close"][0] == "nothing"
    check_afterwards(store_path, [6, 4])


def test_a_record_that_fails_to_persist(store_path: Path) -> None:
    """The second fdatasync on the slot: after its record was written. A later one that succeeds proves nothing."""
    found = traced(SAVING, store_path, store_path / "slot-0001", "fdatasync", "error=EIO:when=2")
    assert found["start"][0] == "SaveFailed"
    assert found["kept"] == [4, 3]
    check_afterwards(store_path, [6, 5], [6, 4])


@pytest.mark.parametrize("when", [1, 2])
def test_preparing_an_opened_store_fails_before_any_slot_is_handed_out(store_path: Path, when: int) -> None:
    """The record that is kept cannot be made durable: no save may go on, and the next attempt starts over."""
    name = "slot-0000" if when == 1 else "slot-0002"
    found = traced(SAVING, store_path, store_path / name, "fdatasync", "error=EIO:when=1")
    kind, number, message = found["start"]
    assert (kind, number) == ("OSError", errno.EIO)
    assert str(store_path / name) in message
    assert found["next"][0] == "nothing"
    check_afterwards(store_path, [6, 4])


@pytest.mark.parametrize("call", ["fdatasync", "pwrite64"])
def test_the_mark_cannot_be_made_durable(tmp_path: Path, call: str) -> None:
    create(tmp_path / "store", device="buffered").close()
    program = SAVING.replace("store.read()\n", "")
    found = traced(program, tmp_path / "store", tmp_path / "store" / "header", call, "error=EIO:when=1")
    assert found["start"][0] == "SaveFailed"
    assert "header" in found["start"][2]
    assert found["kept"] == []
    check_afterwards(tmp_path / "store", [6, 5], [6])


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_an_interrupted_call_is_made_again(store_path: Path, call: str) -> None:
    """EINTR is no failure."""
    found = traced(SAVING, store_path, store_path / "slot-0001", call, "error=EINTR:when=1")
    assert found == {
        "start": ["nothing", None, ""],
        "kept": [5, 4],
        "next": ["nothing", None, ""],
        "close": ["nothing", None, ""],
    }
    check_afterwards(store_path, [6, 5])


def test_a_short_write_is_completed(store_path: Path) -> None:
    """The kernel takes 100 of 4096 bytes, once: the tracer answers for a write that never happened, so the digest sees it.

    What was acknowledged with a hole in it is damaged, not returned: a lying device is what digests are for.
    """
    found = traced(SAVING, store_path, store_path / "slot-0001", "pwrite64", "retval=100:when=1")
    assert found["start"][0] == "nothing"
    with Store.open(store_path, read_only=True) as store:
        record, _ = store.read_with_record()
        assert record.step == 6
        assert [report.state for report in store.verify() if report.slot == 1] == ["damaged"]


CREATING = """
path = sys.argv[1]
found = {"create": told(lambda: create(path + "/made/store", device="buffered").close()), "left": os.listdir(path)}
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("call", "file", "name"),
    [
        ("fallocate", "made/store/slot-0002", "EIO"), ("fallocate", "made/store/slot-0000", "ENOSPC"),
        ("fdatasync", "made/store/slot-0003", "EIO"), ("fdatasync", "made/store/header.new", "EIO"),
        ("openat", "made/store/slot-0001", "EMFILE"), ("openat", "made/store/header.new", "EACCES"),
        ("fsync", "made/store", "EIO"), ("fsync", "made", "EIO"), ("fsync", ".", "EIO"),
        ("rename", "made/store/header.new", "EIO"), ("mkdir", "made", "EROFS"),
    ],
)  # fmt: skip
def test_a_creation_that_fails_is_told_and_leaves_nothing(tmp_path: Path, call: str, file: str, name: str) -> None:
    target = tmp_path / file if file != "." else tmp_path
    found = traced(CREATING, tmp_path, target, call, f"error={name}:when=1")
    kind, number, message = found["create"]
    assert number == getattr(errno, name), message
    assert kind in ("OSError", "PermissionError")
    assert str(target) in message
    assert ("this store needs" in message) is (name == "ENOSPC")
    assert found["left"] == []


@pytest.mark.parametrize("name", ["EINVAL", "EOPNOTSUPP", "ENOSYS"])
def test_a_file_system_that_cannot_persist_directories_is_not_a_disk_that_failed(tmp_path: Path, name: str) -> None:
    found = traced(CREATING, tmp_path, tmp_path / "made" / "store", "fsync", f"error={name}")
    assert found["create"][0] == "nothing", found
    with Store.open(tmp_path / "made" / "store") as store:
        save(store, 1)
        check_kept(store, [1])


@pytest.mark.parametrize("name", ["EOPNOTSUPP", "EINVAL"])
def test_a_file_system_that_cannot_preallocate_is_filled_instead(tmp_path: Path, name: str) -> None:
    """The bytes are reserved by writing them: a full disk is still met at creation, not by a save."""
    found = traced(CREATING, tmp_path, tmp_path / "made" / "store" / "slot-0001", "fallocate", f"error={name}")
    assert found["create"][0] == "nothing", found
    slots = [tmp_path / "made" / "store" / f"slot-000{slot}" for slot in range(4)]
    assert {slot.stat().st_size for slot in slots} == {24_576}
    assert all(slot.stat().st_blocks * 512 >= 24_576 for slot in slots)
