"""One writer for a store: the second is refused by name, and nothing of a dead one stays in the way."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from lastgood.core import Store, StoreError, StoreExists, StoreInUse
from lastgood.core.directory import Directory, Lock
from tests.process.nursery import Child, Nursery


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    Store.create(tmp_path / "store", slot_bytes=100).close()
    return tmp_path / "store"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never appeared"
        time.sleep(0.005)


def hold(nursery: Nursery, path: Path, orphan: Path) -> tuple[Child, int]:
    """A process that holds the store, and the number of one that it has forked."""
    holder = nursery.start("hold", path=path, device="auto", orphan=orphan)
    wait_for(orphan)
    return holder, int(orphan.read_text())


def test_a_second_process_is_refused_and_told_who_holds_the_store(nursery: Nursery, store_path: Path) -> None:
    with Store.open(store_path) as store:
        refusal = nursery.run("try_to_write", path=store_path, device="auto")
        assert refusal.startswith("StoreInUse: ")
        assert f"process {os.getpid()} on {socket.gethostname()}" in refusal
        assert str(store_path) in refusal
        assert len(refusal.splitlines()) == 1
        store.save(b"still ours", step=1).wait()
    assert nursery.run("try_to_write", path=store_path, device="auto") == ""


def test_a_killed_writer_lets_go_even_when_a_forked_child_of_it_lives_on(
    nursery: Nursery, store_path: Path, tmp_path: Path
) -> None:
    """A data loader's worker that outlives its killed parent must not keep the store shut."""
    holder, orphan = hold(nursery, store_path, tmp_path / "orphan")
    try:
        with pytest.raises(StoreInUse, match=f"process {holder.pid} on "):
            Store.open(store_path)
        holder.kill()
        os.kill(orphan, 0)  # it is there
        with Store.open(store_path) as store:
            store.save(b"ours now", step=1).wait()
        os.kill(orphan, 0)
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_the_holder_keeps_the_store_when_its_forked_child_ends(
    nursery: Nursery, store_path: Path, tmp_path: Path
) -> None:
    holder, orphan = hold(nursery, store_path, tmp_path / "orphan")
    os.kill(orphan, signal.SIGKILL)
    with pytest.raises(StoreInUse, match=f"process {holder.pid} on "):
        Store.open(store_path)
    holder.kill()


def test_the_same_process_is_refused_too_under_any_name(store_path: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(store_path)
    with Store.open(store_path) as store:
        for name in (store_path, tmp_path / "alias", store_path / ".." / "store"):
            with pytest.raises(StoreInUse, match=str(os.getpid())):
                Store.open(name)
        store.save(b"still ours", step=1).wait()
    with Store.open(tmp_path / "alias") as store:
        assert bytes(store.read()) == b"still ours"


def test_looking_at_a_store_does_not_drop_the_lock_that_this_process_holds(nursery: Nursery, store_path: Path) -> None:
    """Record locks are dropped when *any* descriptor of the file is closed; a reader in the writer's process is one."""
    from lastgood.core.command import main

    with Store.open(store_path) as store:
        store.save(b"x", step=1).wait()
        with Store.open(store_path, read_only=True) as reader:
            reader.read()
            reader.verify()
        with pytest.raises(StoreInUse):
            Store.open(store_path)
        assert main(["inspect", str(store_path)]) == 0
        assert main(["verify", str(store_path)]) == 0
        assert nursery.run("try_to_write", path=store_path, device="auto").startswith("StoreInUse")


def test_a_failed_opening_lets_go(nursery: Nursery, store_path: Path) -> None:
    header = store_path / "header"
    whole = header.read_bytes()
    header.write_bytes(b"something else entirely")
    with pytest.raises(StoreError, match=str(store_path)):
        Store.open(store_path)
    header.write_bytes(whole)
    assert nursery.run("try_to_write", path=store_path, device="auto") == ""
    Store.open(store_path).close()


def test_a_reader_takes_no_lock_and_writes_nothing(nursery: Nursery, store_path: Path) -> None:
    def stamps() -> dict[str, tuple[int, int]]:
        return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in store_path.iterdir()}

    before = stamps()
    with Store.open(store_path, read_only=True) as reader:
        assert reader.newest() is None
        assert nursery.run("try_to_write", path=store_path, device="auto") == ""
        lock = {"lock"}  # a writer puts its name there
        assert {name: stamp for name, stamp in stamps().items() if name not in lock} == {
            name: stamp for name, stamp in before.items() if name not in lock
        }


class LateLock(Directory):
    """Another process makes its store, and leaves, just before this one has the lock."""

    def lock(self) -> Lock:
        """See Directory."""
        with Store.create(self.path, slot_bytes=100) as other:
            other.save(b"the other's", step=1).wait()
        return super().lock()


def test_a_creation_that_comes_second_leaves_the_first_ones_store_alone(tmp_path: Path) -> None:
    """Between the look at an empty directory and the lock another store came and went: undoing ours would remove it."""
    with pytest.raises(StoreExists):
        Store.create(LateLock(tmp_path / "store"), slot_bytes=100)
    with Store.open(tmp_path / "store") as store:
        assert store.read().tobytes() == b"the other's"
