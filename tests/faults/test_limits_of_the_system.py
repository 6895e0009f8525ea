"""Refusals by the real kernel: a small file system, a limit on file sizes, a directory that may not be written."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastgood.core import SaveFailed, Store, StoreError
from tests.faults.children import run
from tests.store.small import check_kept, check_no_leak, create, files_of, save

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system or become somebody else")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 120 kB."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"cannot mount a file system here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@needs_root
def test_a_store_that_does_not_fit_is_refused_with_the_bytes_it_needs_and_leaves_nothing(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught:
        create(small_disk / "new" / "store", in_flight=4)
    error = caught.value
    assert error.errno == errno.ENOSPC
    assert "this store needs 159,744 bytes (6 slots of 24,576)" in str(error)
    assert str(small_disk / "new" / "store") in str(error)
    assert os.listdir(small_disk) == []
    with create(small_disk / "new" / "store", in_flight=1) as store:  # a smaller one fits
        save(store, 1)


@needs_root
def test_a_store_is_used_and_reopened_on_a_disk_that_others_have_filled(small_disk: Path) -> None:
    """All its bytes were reserved at creation: a full disk is nobody's problem but the others'."""
    with create(small_disk / "store", in_flight=1, keep=1) as store:
        save(store, 1, 20_000)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(120 * 1024))
    assert os.statvfs(small_disk).f_bavail == 0
    for step in (2, 3, 4):
        with Store.open(small_disk / "store") as store:
            store.read()
            save(store, step, 20_000)
            check_kept(store, [step])
            check_no_leak(store)


@needs_root
def test_growing_on_a_full_disk_fails_a_save_and_harms_nothing(small_disk: Path) -> None:
    with create(small_disk / "store", in_flight=1, keep=1) as store:
        save(store, 1, 20_000)
        with pytest.raises(OSError, match=r"No space left on device: .* bytes more are needed"):
            store.grow(10**6)
        with Store.open(small_disk / "store", read_only=True) as reader:
            assert (store.slot_bytes, reader.slot_bytes) == (20_000, 20_000)
        store.grow(30_000)
        (small_disk / "filler").write_bytes(bytes(os.statvfs(small_disk).f_bavail * 4096))
        with pytest.raises(SaveFailed, match=r"No space left on device: '.*/slot-0001'"):
            save(store, 2, 29_000)
        check_kept(store, [1])
        check_no_leak(store)
        subprocess.run(["mount", "-o", "remount,size=400k", str(small_disk)], check=True)
        with pytest.raises(SaveFailed, match="step 2") as told:
            store.save(bytes(29_000), step=3)
        assert told.value.ticket.wait(60).step == 3
        check_no_leak(store)


SPARSE = """
import shutil, subprocess
original, copy, device = sys.argv[1:]
with create(original, in_flight=1, keep=1) as store:
    save(store, 1, 20_000)
subprocess.run(["cp", "-r", "--sparse=always", original, copy], check=True)
with open(copy + "/../filler", "wb") as filler:
    room = os.statvfs(copy).f_bavail * 4096
    filler.write(bytes(room - 4096))
with Store.open(copy, device=device) as store:
    store.read()
    found = {"save": told(lambda: save(store, 2, 20_000))}
    check_kept(store, [1])
    os.truncate(copy + "/../filler", 0)
    save(store, 3, 20_000)
    check_kept(store, [3])
print(json.dumps(found))
"""


@needs_root
@pytest.mark.parametrize("device", ["buffered", "mapped", "emulated-pmem"])
def test_a_copy_has_holes_where_the_store_had_room(small_disk: Path, tmp_path: Path, device: str) -> None:
    """`cp --sparse`, then a disk that fills up: the job died of SIGBUS in its first save where files are mapped."""
    found = run(SPARSE, tmp_path / "store", small_disk / "store", device)
    kind, number, message = found["save"]
    assert (kind, number) == ("OSError", errno.ENOSPC)
    assert "/slot-0001" in message


LIMITED = """
import resource
path = sys.argv[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 10**6))
found = {"large": told(lambda: create(path + "/large", slot_bytes=50_000)), "left": os.listdir(path)}
with create(path + "/store") as store:
    save(store, 1, 20_000)
    found["grow"] = told(lambda: store.grow(50_000))
    found["files"] = sorted(os.listdir(path + "/store"))
    save(store, 2, 20_000)
    check_kept(store, [2, 1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 10**6))
    store.grow(50_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 10**6))
    found["save"] = told(lambda: save(store, 3, 50_000))
    found["kept"] = [record.step for record in store.records()]
    check_kept(store, [2, 1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
    found["next"] = told(lambda: store.save(b"", step=4))
print(json.dumps(found))
"""


def test_a_limit_on_file_sizes(tmp_path: Path) -> None:
    found = run(LIMITED, tmp_path)
    kind, number, message = found["large"]
    assert (kind, number) == ("OSError", errno.EFBIG)
    assert "this store needs" in message
    assert found["left"] == []
    kind, number, message = found["grow"]  # it had succeeded, and not the smallest save fitted any more, ever again
    assert (kind, number) == ("OSError", errno.EFBIG)
    assert "/store/header.new" in message
    assert found["files"] == ["header", "lock", "slot-0000", "slot-0001", "slot-0002", "slot-0003"]
    kind, _, message = found["save"]
    assert kind == "SaveFailed"
    assert "File too large" in message
    assert "slot-000" in message
    assert found["kept"] == [2, 1]
    assert found["next"][0] == "SaveFailed"
    assert "step 3" in found["next"][2]


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that anybody may pass to; pytest's own may be entered by their owner only."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


UNPRIVILEGED = """
path = sys.argv[1]
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
found = {
    "create": told(lambda: create(path + "/locked/store")),
    "open": told(lambda: Store.open(path + "/store")),
    "unreadable": told(lambda: Store.open(path + "/secret", read_only=True)),
    "below": told(lambda: Store.open(path + "/secret/a", read_only=True)),
}
with Store.open(path + "/store", read_only=True) as store:
    check_kept(store, [2, 1])
    found["steps"] = [record.step for record in store.records()]
    found["states"] = sorted({report.state for report in store.verify()})
    found["writer"] = store.has_writer()
print(json.dumps(found))
"""


@needs_root
def test_somebody_who_may_only_read(open_place: Path) -> None:
    """Told in one line with the path; reading works without a single right to write."""
    with create(open_place / "store") as store:
        save(store, 1)
        save(store, 2)
    shutil.copytree(open_place / "store", open_place / "secret")
    (open_place / "secret").chmod(0o700)
    (open_place / "locked").mkdir(mode=0o755)
    before = files_of(open_place / "store")
    found = run(UNPRIVILEGED, open_place)
    for name, path in (("create", "locked/store"), ("open", "store"), ("unreadable", "secret"), ("below", "secret/a")):
        kind, number, message = found[name]
        assert (kind, number) == ("PermissionError", errno.EACCES), name
        assert str(open_place / path) in message
        assert "\n" not in message
    assert (found["steps"], found["states"], found["writer"]) == ([2, 1], ["empty", "whole"], False)
    assert files_of(open_place / "store") == before
    assert os.listdir(open_place / "locked") == []


NO_DESCRIPTORS = """
import resource
path = sys.argv[1]
with create(path + "/store", in_flight=4) as store:
    save(store, 1)
limit = len(os.listdir("/proc/self/fd")) + 3
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
before = sorted(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
found = {
    "create": told(lambda: create(path + "/new")),
    "open": told(lambda: Store.open(path + "/store")),
    "read": told(lambda: Store.open(path + "/store", read_only=True)),
    "left": os.path.exists(path + "/new"),
}
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
found["leaked"] = len(os.listdir("/proc/self/fd")) - len(before)
with Store.open(path + "/store") as store:
    store.read()
    save(store, 2)
    check_kept(store, [2, 1])
print(json.dumps(found))
"""


def test_too_many_open_files(tmp_path: Path) -> None:
    """Whatever was opened before the limit was met is closed again, the lock too, and a new store is not left half made."""
    found = run(NO_DESCRIPTORS, tmp_path)
    for name in ("create", "open", "read"):
        kind, number, message = found[name]
        assert (kind, number) == ("OSError", errno.EMFILE)
        assert str(tmp_path) in message
    assert (found["left"], found["leaked"]) == (False, 0)


@pytest.mark.parametrize("device", ["direct", "buffered", "mapped"])
def test_a_store_that_is_removed_while_it_is_open_takes_no_more_saves(tmp_path: Path, device: str) -> None:
    """`loud`: writes into removed files succeed, and are gone with the process; a reader would say that nothing is there."""
    path = tmp_path / "store"
    store = create(path, device=device)
    save(store, 1)
    shutil.rmtree(path)
    ticket = store.save(b"x" * 5000, step=2)
    with pytest.raises(SaveFailed, match="removed while the store was open") as failed:
        ticket.wait(60)
    assert str(path) in str(failed.value)
    with pytest.raises(SaveFailed, match="step 2"):
        store.close()


def test_a_slot_that_is_there_although_it_was_not_seen_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`no-harm`: a stale look-up on a network file system hid the newest checkpoint; making its file anew removed it."""
    path = tmp_path / "store"
    with create(path) as store:
        save(store, 1)
        newest = save(store, 2)
    before = files_of(path)
    plain = os.open
    hidden = [f"slot-{newest.slot:04d}"]

    def stale(name: str, *arguments: int, **more: int) -> int:
        if hidden and str(name).endswith(hidden[0]):
            hidden.clear()
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)
        return plain(name, *arguments, **more)

    monkeypatch.setattr(os, "open", stale)
    told = pytest.raises(StoreError, match="was missing a moment ago and is there now")
    with Store.open(path, new_run=True) as store, told:
        store.save(b"x", step=3)
    assert files_of(path) == before
    with Store.open(path) as store:
        check_kept(store, [2, 1])


def test_names_are_made_durable_again_before_a_slot_is_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`newest-survives`: a creation was killed between the header's rename and the directory's fsync.

    The next process saw the name in the cache, saved and acknowledged; a power loss took the name, and with it the store.
    """
    path = tmp_path / "store"
    create(path).close()
    happened: list[str] = []
    plain_fsync, plain_write = os.fsync, os.pwrite

    def fsync(descriptor: int) -> None:
        happened.append(f"persist {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        plain_fsync(descriptor)

    def write(descriptor: int, *arguments: object) -> int:
        happened.append(f"write {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        return plain_write(descriptor, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "pwrite", write)
    with Store.open(path) as store:
        save(store, 1)
    slots = [index for index, what in enumerate(happened) if what.startswith("write slot-")]
    assert happened.index("persist store") < slots[0]


def test_the_name_of_the_directory_itself_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, one level up: whoever made the empty directory may have been killed before its name was durable."""
    path = tmp_path / "store"
    path.mkdir()
    persisted: list[str] = []
    plain = os.fsync

    def fsync(descriptor: int) -> None:
        persisted.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    create(path).close()
    assert persisted[0] == str(tmp_path)
