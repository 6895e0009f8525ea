"""What somebody else put into a store's directory, or removed: nothing of theirs is touched, nothing hangs, one line tells."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lastgood.core import NoStore, NotAStore, SaveFailed, Store, StoreError, StoreInUse, WrongGeometry
from lastgood.core import lock as locks
from lastgood.core.directory import Directory
from lastgood.core.files import BufferedFile
from lastgood.core.record import encode_empty
from tests.store.small import check_kept, check_no_leak, create, is_payload_of, save


def test_a_lock_file_that_is_removed_lets_no_second_writer_in(tmp_path: Path) -> None:
    """Taken for a stale one and removed: two writers would have used the same slots, and acknowledged saves been lost."""
    with create(tmp_path / "store") as store:
        save(store, 1)
        (tmp_path / "store" / "lock").unlink()
        for _ in range(2):  # the second attempt finds the lock file that the first one made
            with pytest.raises(StoreInUse, match="is being written by"):
                Store.open(tmp_path / "store")
        save(store, 2)
        check_kept(store, [2, 1])
    with Store.open(tmp_path / "store") as store:
        store.read()
        save(store, 3)


def test_another_process_is_kept_out_as_well(tmp_path: Path) -> None:
    program = f"from lastgood.core import Store\nStore.open({str(tmp_path / 'store')!r})"
    with create(tmp_path / "store") as store:
        save(store, 1)
        (tmp_path / "store" / "lock").unlink()
        found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "StoreInUse" in found.stderr.splitlines()[-1]


def test_where_directories_cannot_be_locked_the_file_alone_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(descriptor: int, operation: int) -> None:
        raise OSError(errno.EBADF, "as on some network file systems")

    monkeypatch.setattr(locks.fcntl, "flock", refused)
    with create(tmp_path / "store"), pytest.raises(StoreInUse, match="this process"):
        Store.open(tmp_path / "store")


def test_a_lock_file_that_may_not_be_opened_is_not_said_to_be_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path / "store").close()
    opened = os.open

    def refused(path: str, *rest: int) -> int:
        if path == str(tmp_path / "store" / "lock"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *rest)

    monkeypatch.setattr(locks.os, "open", refused)
    with pytest.raises(PermissionError) as caught:
        Store.open(tmp_path / "store")
    assert caught.value.filename == str(tmp_path / "store" / "lock")


@pytest.mark.parametrize("name", ["lock", "slot-0007", "header.new"])
def test_files_of_somebody_else_are_not_taken_for_leftovers(tmp_path: Path, name: str) -> None:
    """Their names alone made `create` remove them."""
    (tmp_path / name).write_bytes(b"notes of mine")
    with pytest.raises(NotAStore, match=name):
        create(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"notes of mine"}


def test_what_an_interrupted_creation_leaves_is_replaced(tmp_path: Path) -> None:
    left = {
        "lock": b"process 1 on host".ljust(200) + b"\n",
        "slot-0000": encode_empty(bytes(16), 0).tobytes(),
        "slot-0001": bytes(8192),
        "slot-0002": b"",
        "header.new": b"LASTGOOD",
    }
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
    with create(tmp_path) as store:
        save(store, 1)
        check_no_leak(store)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "store"
    create(path).close()
    for name in ("lock", "header"):
        (path / name).unlink()
        os.mkfifo(path / name)
        if name == "lock":  # it locks as well as a file does, and holds no name
            with Store.open(path) as store, Store.open(path, read_only=True) as reader:
                save(store, 1)
                assert reader.has_writer()
    for read_only in (False, True):
        with pytest.raises(OSError, match="not a regular file") as caught:
            Store.open(path, read_only=read_only)
        assert caught.value.filename == str(path / "header")


@pytest.mark.parametrize("device", ["auto", "buffered"])
@pytest.mark.parametrize("kind", ["pipe", "directory", "loop"])
def test_one_slot_that_cannot_be_opened_keeps_no_reader_from_the_others(tmp_path: Path, kind: str, device: str) -> None:
    """The newest is out of reach: a reader returns the older one with the reason, a writer refuses and touches nothing."""
    with create(tmp_path / "store", keep=2) as store:
        save(store, 1)
        save(store, 2)
        newest = tmp_path / "store" / f"slot-{store.records()[0].slot:04d}"
    newest.unlink()
    if kind == "pipe":
        os.mkfifo(newest)
    elif kind == "directory":
        newest.mkdir()
    else:
        newest.symlink_to(newest)
    with Store.open(tmp_path / "store", read_only=True, device=device) as store:
        check_kept(store, [1])
        assert [reason for reason in store.passed_over if newest.name in reason]
        assert [report.file for report in store.verify() if report.state == "damaged"] == [newest.name]
    with pytest.raises(OSError, match=newest.name):
        Store.open(tmp_path / "store", device=device)


def test_growth_that_no_disk_has_room_for_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """It was in the header already when the memory for it was refused: every later save failed, after reopening too."""
    with create(tmp_path / "store") as store:
        save(store, 1)
        before = (store.slot_bytes, (tmp_path / "store" / "header").read_bytes())
        for size in (5 * 10**10, 6 * 10**10):
            with pytest.raises(OSError, match="bytes more are needed") as caught:
                store.grow(size)
            assert caught.value.errno == errno.ENOSPC
        assert (store.slot_bytes, (tmp_path / "store" / "header").read_bytes()) == before
        save(store, 2)


def test_growth_without_memory_leaves_the_store_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(length: int) -> None:
        raise MemoryError(length)

    with create(tmp_path / "store") as store:
        save(store, 1)
        before = (store.slot_bytes, (tmp_path / "store" / "header").read_bytes())
        monkeypatch.setattr("lastgood.core.engine.aligned_buffer", refused)
        with pytest.raises(MemoryError):
            store.grow(50_000)
        monkeypatch.undo()
        assert (store.slot_bytes, (tmp_path / "store" / "header").read_bytes()) == before
        save(store, 2)
        store.grow(50_000)
        save(store, 3, 50_000)


def test_what_is_no_record_no_step_and_no_size_is_refused_in_one_line(tmp_path: Path) -> None:
    with create(tmp_path / "store") as store:
        save(store, 1)
        with pytest.raises(TypeError, match=r"5 is no record: give one of records\(\), or step= to `read`"):
            store.read(5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="step='x': give a whole number"):
            store.read(step="x")  # type: ignore[arg-type]
        with pytest.raises(WrongGeometry, match="total_bytes=-1: give 0 or more"):
            store.save(iter([b"x"]), step=2, total_bytes=-1)
        check_kept(store, [1])
        check_no_leak(store)


def test_a_store_that_was_moved_away_does_not_write_into_the_one_at_its_old_path(tmp_path: Path) -> None:
    """Its new header was published over that of the other store, whose acknowledged checkpoint was gone."""
    with create(tmp_path / "store") as moved, create(tmp_path / "idle") as idle:
        save(moved, 1)
        for name in ("store", "idle"):
            (tmp_path / name).rename(tmp_path / f"{name}-moved")
        for name in ("store", "idle"):
            with create(tmp_path / name) as other:
                save(other, 7)
        for attempt in (lambda: moved.grow(50_000), lambda: save(idle, 1)):  # a first save opens the header
            with pytest.raises(StoreError, match="was moved or replaced"):
                attempt()
        save(moved, 2)  # its own files are open
    for name, steps in (("store", [7]), ("idle", [7]), ("store-moved", [2, 1])):
        with Store.open(tmp_path / name, read_only=True) as store:
            check_kept(store, steps)


def test_a_growth_whose_name_is_not_durable_leaves_no_mark_in_a_file_that_is_gone(tmp_path: Path) -> None:
    """The header had been replaced and its directory could not be persisted: the mark of the first save went into the old
    file, which no name led to any more. With every slot lost, the store would have passed for one that was never used."""

    class Brittle(Directory):
        is_failing = False

        def persist(self) -> None:
            if self.is_failing:
                raise OSError(errno.EIO, "Input/output error", self.path)
            super().persist()

    directory = Brittle(tmp_path / "store")
    with create(directory) as store:
        store.grow(30_000)  # the engine is there
        directory.is_failing = True
        with pytest.raises(OSError, match="Input/output error"):
            store.grow(50_000)
        directory.is_failing = False
        save(store, 1)
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert store.marked
        check_kept(store, [1])


@pytest.mark.parametrize("in_flight", [1, 2, 4])
@pytest.mark.parametrize("ask", ["newest", "records", "read", "verify"])
def test_a_reader_whose_store_was_made_anew_is_told_so(tmp_path: Path, in_flight: int, ask: str) -> None:
    """A monitor goes on while the job starts afresh: it was told to restore the files of a store that is whole."""
    path = tmp_path / "store"
    with create(path) as store:
        save(store, 1)
    with Store.open(path, read_only=True) as reader:
        assert is_payload_of(1, reader.read())
        shutil.rmtree(path)
        with create(path, in_flight=in_flight) as store:
            save(store, 7)
            with pytest.raises(StoreError, match="was moved or replaced: another store is there now"):
                getattr(reader, ask)()
        shutil.rmtree(path)
        with pytest.raises(NoStore, match="the path does not exist"):
            getattr(reader, ask)()


def test_a_header_that_is_removed_is_missed_before_the_next_save_is_acknowledged(tmp_path: Path) -> None:
    """Saves went on and were acknowledged, and nothing could be opened afterwards."""
    path = tmp_path / "store"
    with create(path) as store:
        save(store, 1)
        (path / "header").rename(tmp_path / "header")
        (tmp_path / "header").unlink()
        with pytest.raises(SaveFailed, match=r"the file was removed while the store was open: '.*/header'"):
            save(store, 2)
        with pytest.raises(SaveFailed, match="step 2"):
            store.close()


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused_in_one_line(path: str) -> None:
    with pytest.raises(StoreError, match="is no path: say where the store is"):
        Store.create(path, slot_bytes=1)


def test_a_payload_that_could_not_be_read_once_is_looked_at_again(tmp_path: Path) -> None:
    """A network that stuttered: every save of this job was refused until the store was opened again."""
    with create(tmp_path / "store") as store:
        for step in (1, 2):
            save(store, step)
    failing = [True]

    class Stuttering(BufferedFile):
        def read(self, offset: int, into: Any) -> None:
            if failing and offset > 0:
                failing.clear()
                raise OSError(errno.EIO, "Input/output error", self.path)
            super().read(offset, into)

    class Remote(Directory):
        def open(self, name: str, *, create: bool = False, writable: bool = True) -> Any:
            return Stuttering(self.join(name), create=create, writable=writable)

    with Store.open(Remote(tmp_path / "store", "buffered")) as store:
        assert is_payload_of(1, store.read())
        assert "Input/output error" in store.passed_over[0]
        save(store, 3)
        check_kept(store, [3, 2])


def test_one_file_that_cannot_be_removed_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation that fails takes away what it can."""
    remove = Directory.remove

    def sticks(directory: Directory, name: str) -> None:
        if name == "slot-0001":
            raise OSError(errno.EBUSY, "Device or resource busy", name)
        remove(directory, name)

    def fails(directory: Directory, name: str, content: bytes) -> None:
        raise OSError(errno.EIO, "Input/output error", name)

    monkeypatch.setattr(Directory, "remove", sticks)
    monkeypatch.setattr(Directory, "publish", fails)
    with pytest.raises(OSError, match="Input/output error"):
        create(tmp_path / "store")
    assert os.listdir(tmp_path / "store") == ["slot-0001"]


def test_a_file_system_without_locks_is_told_of_and_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system without its lock daemon: a new directory stayed, with a file `lock` in it."""

    def fails(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks.fcntl, "fcntl", fails)
    with pytest.raises(OSError, match=r"No locks available: a writer needs a file system with locks: '.*/lock'"):
        create(tmp_path / "new" / "store")
    assert os.listdir(tmp_path) == []
