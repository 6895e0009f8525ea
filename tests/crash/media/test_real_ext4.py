"""The model of ext4 against ext4: whatever a real one holds after losing power, the model allows.

Each litmus program runs on a fresh file system in a loop device. Its pages are written back at some moments and its journal is
made durable at others; then the disk is copied as it is, which is what a power loss leaves, the copy is mounted, so that its
journal is replayed, and read. Needs root, a loop device and mkfs.ext4; what it sees are images in which the disk kept
the order of its writes, so it can refute the model and cannot confirm all of it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.media.calls import Call, parse
from tests.crash.media.running import on_files
from tests.crash.media.tables import FILES, Row

PAGE = 4096
HELPER = ".journal"
"""A file that is there from the beginning: writing to it and persisting it makes the journal durable."""

ROWS = [row for row in FILES if ":" not in row.program]
SEEN: set[tuple[str, str]] = set()

libc = ctypes.CDLL(None, use_errno=True)


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def can_mount() -> bool:
    """Whether this process may mount a file as a file system."""
    return os.geteuid() == 0 and Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4") is not None


pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not can_mount(), reason="needs root, a loop device and mkfs.ext4"),
]


@contextmanager
def mounted(disk: Path, on: Path) -> Iterator[Path]:
    on.mkdir(exist_ok=True)
    run("mount", "-o", "loop", disk, on)
    try:
        yield on
    finally:
        run("umount", on)


def make(call: Call, root: Path) -> None:
    """Make one call of a litmus program for real."""
    first, *rest = [root / word.lstrip("/") for word in call.arguments] or [root]
    if call.name == "create":
        first.touch(exist_ok=False)
    elif call.name == "mkdir":
        first.mkdir()
    elif call.name == "sync":
        with opened(root) as descriptor:
            assert libc.syncfs(descriptor) == 0
    elif call.name in ("append", "write"):
        with opened(first, os.O_WRONLY) as descriptor:
            begin = os.fstat(descriptor).st_size if call.name == "append" else int(call.arguments[1]) * PAGE
            data = b"".join(letter.encode() * PAGE for letter in call.arguments[-1])
            assert os.pwrite(descriptor, data, begin) == len(data)
    elif call.name == "truncate":
        os.truncate(first, int(call.arguments[1]) * PAGE)
    elif call.name in ("fsync", "fdatasync"):
        with opened(first) as descriptor:
            (os.fsync if call.name == "fsync" else os.fdatasync)(descriptor)
    else:
        does: dict[str, Callable[..., None]] = {"rename": os.rename, "link": os.link, "unlink": os.unlink}
        does[call.name](first, *rest)


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_back(root: Path) -> None:
    """Have every page written, without the journal: what the kernel does by itself, up to half a minute later."""
    for path in (each for each in root.rglob("*") if each.is_file() and each.name != HELPER):
        with opened(path) as descriptor:
            assert libc.sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), 7) == 0


def make_journal_durable(root: Path) -> None:
    with opened(root / HELPER, os.O_WRONLY) as descriptor:
        os.pwrite(descriptor, b"x", 0)
        os.fsync(descriptor)


def tree(root: Path) -> str:
    """What a mounted copy holds, in the words of the model."""
    found = []
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if name in (HELPER, "lost+found"):
            continue
        found.append(f"{name}/" if path.is_dir() else f"{name}={pages(path.read_bytes())}")
    return " ".join(sorted(found))


def pages(data: bytes) -> str:
    assert len(data) % PAGE == 0
    cut = [set(data[begin : begin + PAGE]) for begin in range(0, len(data), PAGE)]
    assert all(len(each) == 1 for each in cut)
    return "".join(chr(*each) if each != {0} else "0" for each in cut)


def images(program: str, folder: Path, *, eager: bool) -> Iterator[str]:
    """What the disk holds at four moments after the program; `eager` writes pages back between its calls too."""
    disk, copy = folder / "disk", folder / "copy"
    with disk.open("wb") as new:
        new.truncate(24 << 20)
    run("mkfs.ext4", "-q", "-F", "-b", PAGE, disk)
    scene, _, after = program.rpartition("//")
    with mounted(disk, folder / "real") as root:
        (root / HELPER).write_bytes(b"-")
        for call in parse(f"{scene}; sync"):
            make(call, root)
        for call in parse(after):
            make(call, root)
            if eager:
                write_back(root)
        for moment in (None, make_journal_durable, write_back, make_journal_durable):
            if moment is not None:
                moment(root)
            shutil.copyfile(disk, copy)
            with mounted(copy, folder / "copied") as copied:
                yield tree(copied)
            copy.unlink()
    disk.unlink()


@pytest.mark.parametrize("eager", [False, True], ids=["lazy", "eager"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_a_real_file_system_leaves_nothing_that_the_model_does_not(row: Row, eager: bool, tmp_path: Path) -> None:
    allowed = on_files(MEDIA["ext4"](), row.program)
    for image in images(row.program, tmp_path, eager=eager):
        assert image in allowed, f"{image!r} after {row.program}: the model knows {sorted(allowed)}"
        SEEN.add((row.name, image))


def test_the_model_is_no_stricter_than_it_has_to_be() -> None:
    """A new file, empty, and the old one gone: that happens, so the model must allow it."""
    assert not SEEN or ("previous removed before the new one is durable", "b=") in SEEN
