"""A store's directory on a file system: its files by name, durable names, and the choice of device. Trusted: POSIX.

N1 names-last       a name is durable once `persist` returned; `publish` makes a whole file appear under its name or not
N2 mode-as-open     files and directories get the mode and group that a plain open or mkdir would give
N3 told-apart       a file system that cannot persist directories (EINVAL, ENOTSUP) is not a disk that failed (EIO)
N4 same-place      a writer opens and publishes nothing in another directory that has come to lie at its path
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import closing, suppress
from typing import Protocol

import numpy as np

from .device import Device, aligned_buffer
from .errors import NoStore, NotAStore, StoreError
from .files import BufferedFile, DirectFile, naming
from .layout import HEADER, LOCK
from .lock import WriterLock, writer_alive
from .mapped import MappedFile
from .rules import PAGE_BYTES

DEVICES = ("auto", "direct", "buffered", "mapped", "pmem", "emulated-pmem")
_ANOTHER_PATH = "a store is a directory: give another path"
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class Lock(Protocol):
    """What a writer holds."""

    def release(self) -> None:
        """Let the next writer in."""


class Directory:
    """One directory of files, each reached as a Device of one kind."""

    def __init__(self, path: str | os.PathLike[str], device: str = "auto") -> None:
        """Name the directory; nothing is touched yet. `device` is one of DEVICES."""
        name = os.fsdecode(path)
        if not name or "\0" in name:  # an unset variable must not mean the directory one is in
            raise StoreError(f"{name!r} is no path: say where the store is")
        self.path = os.path.abspath(name)
        if device not in DEVICES:
            raise StoreError(f"device={device!r}: choose one of {', '.join(DEVICES)}")
        self._wanted = device
        self._writer: WriterLock | None = None
        self.device_kind = "buffered"
        self.device_reason = "not chosen yet"

    def join(self, name: str) -> str:
        """The path of a file."""
        return os.path.join(self.path, name)

    def make(self) -> list[str]:
        """Create the directory (and its parents) where missing, durably; returns those that were made."""
        missing = []
        path = self.path
        while not _is_there(path):
            missing.append(path)
            path = os.path.dirname(path)
        if not os.path.isdir(path):
            raise NotAStore(f"{path} is a file; {_ANOTHER_PATH}")
        try:
            with suppress(PermissionError):  # who made it may have been killed before its name was durable
                persist_directory(os.path.dirname(path))
            for path in reversed(missing):
                os.makedirs(path, exist_ok=True)
                persist_directory(os.path.dirname(path))
        except BaseException:
            self.unmake(missing)
            raise
        return missing

    def unmake(self, made: list[str]) -> None:
        """Remove the directories that `make` made, as far as they are empty."""
        for path in made:
            with suppress(OSError):
                os.rmdir(path)

    def require(self) -> None:
        """Raise NoStore or NotAStore, in one line, when there is no directory here; OSError when that cannot be told:
        it must not look like a fresh start."""
        try:
            os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise NoStore(f"no store at {self.path}: the path does not exist") from None
        if not stat.S_ISDIR(os.stat(self.path).st_mode):
            raise NotAStore(f"{self.path} is a file; {_ANOTHER_PATH}")

    def lock(self) -> Lock:
        """Become the one writer. Raises StoreInUse, naming the holder."""
        self._writer = WriterLock(self.join(LOCK), self.path)
        return self._writer

    def _check_still_here(self) -> None:
        """N4. Raises StoreError when the path leads to another directory than the one that was locked, or nowhere."""
        if self._writer is not None and not self._writer.is_at(self.path):
            raise StoreError(
                f"{self.path} was moved or replaced while it was open for writing: open it where it is now"
            )

    def writer_alive(self) -> bool:
        """Whether a writer is at work, in any process."""
        return writer_alive(self.join(LOCK))

    def names(self) -> list[str]:
        """Files in the directory."""
        return sorted(os.listdir(self.path))

    def read_small(self, name: str, limit: int = -1) -> bytes:
        """All bytes of a small file, or its first ones."""
        path = self.join(name)
        if stat.S_ISFIFO(os.stat(path).st_mode):  # it would have us wait for its other end
            raise OSError(errno.EINVAL, "not a regular file", path)
        with open(path, "rb", buffering=0) as file:  # a bare descriptor would be lost by an interrupt
            return file.read(limit)

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Device:
        """One file, on the device kind that was chosen."""
        if writable:
            self._check_still_here()
        path = self.join(name)
        if self.device_kind == "direct":
            return DirectFile(path, create=create, writable=writable)
        if self.device_kind == "buffered":
            return BufferedFile(path, create=create, writable=writable)
        return MappedFile(path, self.device_kind, create=create, writable=writable)

    def publish(self, name: str, content: bytes) -> None:
        """Make a whole file appear under `name`, durably: write aside, persist, rename, persist the directory."""
        self._check_still_here()
        aside = f"{name}.new"
        self.remove(aside)
        device = BufferedFile(self.join(aside), create=True)
        try:
            device.write(0, np.frombuffer(content, np.uint8))
            device.persist()
        finally:
            device.close()
        os.rename(self.join(aside), self.join(name))
        self.persist()

    def require_room(self, needed: int, largest: int) -> None:
        """Raise OSError when there is no room for `needed` bytes more, or for a file of `largest`: ENOSPC says how much is
        needed; a quota and limits on file sizes are found by trying. The room may be taken by others yet.
        """
        found = os.statvfs(self.path)
        if found.f_blocks and found.f_bavail * found.f_frsize < needed:
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {needed:,} bytes more are needed", self.path)
        aside = f"{HEADER}.new"  # should this process die here, the next header takes it away
        self.remove(aside)
        device = BufferedFile(self.join(aside), create=True)
        try:
            device.try_size(largest, min(needed, largest))
        finally:
            device.close()
            self.remove(aside)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self.join(name))

    def persist(self) -> None:
        """Make the names in this directory durable."""
        persist_directory(self.path)

    def choose_device(self, probe: str, *, writable: bool) -> None:
        """Decide between O_DIRECT and the page cache by trying O_DIRECT on the file `probe`, and say why.

        Raises StoreError when a kind was asked for that this file system cannot give.
        """
        self.device_kind, self.device_reason = self._wanted, "asked for"
        if self._wanted == "auto":
            self.device_kind, self.device_reason = "direct", "O_DIRECT works here"
        try:  # a header that was cut short may be read, too
            with suppress(EOFError), closing(self.open(probe, writable=writable)) as device:
                device.read(0, aligned_buffer(PAGE_BYTES))
        except OSError as error:
            if self.device_kind != "direct" or error.errno not in _CANNOT:
                raise
            if self._wanted == "direct":
                raise StoreError(
                    f"device='direct' at {self.path}: this file system refuses O_DIRECT ({error.strerror});"
                    " use device='auto' or 'buffered'"
                ) from error
            self.device_kind, self.device_reason = "buffered", f"O_DIRECT refused here: {error.strerror}"


def _is_there(path: str) -> bool:
    """Whether something has this name. Raises OSError when that cannot be told: what is there already is not ours."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)
        return True
    return False


def persist_directory(path: str) -> None:
    """fsync a directory. Raises OSError with the path, except where the file system has no such thing."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with naming(path):
            os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    finally:
        os.close(descriptor)
