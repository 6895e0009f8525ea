"""Files and directories of a store have the mode and the group that a plain open and mkdir give there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lastgood.core import Store


def plain_file(directory: Path) -> tuple[int, int]:
    """Mode and group that `open` gives here now."""
    path = directory / "plain"
    with open(path, "w"):
        status = path.stat()
    path.unlink()
    return status.st_mode, status.st_gid


def plain_directory(directory: Path) -> tuple[int, int]:
    path = directory / "plain"
    path.mkdir()
    status = path.stat()
    path.rmdir()
    return status.st_mode, status.st_gid


def other_group(path: Path) -> int:
    """A group that is not the one files get by default; only root, or a member of several, can give one away."""
    groups = [12345] if os.geteuid() == 0 else [group for group in os.getgroups() if group != os.getegid()]
    for group in groups:
        os.chown(path, -1, group)
        return group
    pytest.skip("this user has one group only")


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o027, 0o077], ids=oct)
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("inherits_group", [False, True], ids=["own group", "group of the directory"])
def test_modes_and_groups(mask: int, inherits_group: bool, swift: Path) -> None:
    place = swift / "place"
    place.mkdir()
    if inherits_group:
        group = other_group(place)
        place.chmod(0o2775)
        assert plain_file(place)[1] == group
    path = place / "new" / "store"
    with Store.create(path, slot_bytes=100, in_flight=2, keep=1) as store:
        store.save(np.zeros(100, np.uint8), step=1).wait()
    (path / "slot-0002").unlink()
    (path / "lock").unlink()
    with Store.open(path) as store:  # makes the missing files again
        store.read()
        store.save(np.zeros(100, np.uint8), step=2).wait()
    for directory in (path, path.parent):
        found = directory.stat()
        assert (found.st_mode, found.st_gid) == plain_directory(place), directory
    files = sorted(path.iterdir())
    assert [file.name for file in files] == ["header", "lock", "slot-0000", "slot-0001", "slot-0002"]
    for file in files:
        found = file.stat()
        assert (found.st_mode, found.st_gid) == plain_file(path), file


def test_a_reader_needs_no_right_to_write(swift: Path) -> None:
    """Read-only opening works on files and in a directory that nobody may write."""
    path = swift / "store"
    with Store.create(path, slot_bytes=100, in_flight=2, keep=1) as store:
        store.save(b"x", step=1).wait()
    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)
    reading = [flags for flags in opened(path) if flags & os.O_ACCMODE != os.O_RDONLY]
    assert reading == []
    path.chmod(0o755)


def opened(path: Path) -> list[int]:
    """The flags of every os.open that reading takes."""
    flags: list[int] = []
    real = os.open

    def noted(name: str, how: int, *mode: int, **named: int) -> int:
        flags.append(how)
        return real(name, how, *mode, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", noted)
        with Store.open(path, read_only=True) as store:
            assert bytes(store.read()) == b"x"
            store.verify()
    assert flags
    return flags
