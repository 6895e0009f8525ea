"""One writer for a store, told by name. Trusted: POSIX record locks.

L1 exclusive    while a process holds the lock no other process can take it
L2 never-stale  the kernel drops it when the process ends, however it ends, and a fork does not inherit it: a data loader
                worker that outlives its killed parent does not keep the store shut
L3 in-process   record locks do not see a second attempt by the same process, and closing any descriptor of the file drops
                them; so a table of held files is asked first, and the file is never opened again while held
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import threading

from .errors import StoreInUse

_held: dict[tuple[int, int], int] = {}
"""(device, inode) of a held lock file -> the process that holds it: a fork inherits the table, not the locks."""

_table = threading.Lock()


class WriterLock:
    """The lock file of one store, held from construction to `release`. Raises StoreInUse, naming the holder."""

    def __init__(self, path: str, store: str) -> None:
        """Take the lock at `path` for the store named `store`."""
        self._process = os.getpid()
        with _table:
            if _held_here(path):
                raise StoreInUse(
                    f"{store} is already open for writing in this process ({self._process}): close it first"
                )
            self._descriptor = _take(path, store)
            self._key = _identity(path)
            _held[self._key] = self._process

    def release(self) -> None:
        """Give the lock back. In a forked child it was never ours: only the descriptor is closed."""
        if self._descriptor >= 0:
            if os.getpid() == self._process:
                with _table:
                    _held.pop(self._key, None)
            os.close(self._descriptor)
            self._descriptor = -1


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _held_here(path: str) -> bool:
    return os.path.exists(path) and _held.get(_identity(path)) == os.getpid()


def _take(path: str, store: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        name = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "an unknown process"
        os.close(descriptor)
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        raise StoreInUse(f"{store} is being written by {name}: wait for it, stop it, or open read-only") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    return descriptor


def writer_alive(path: str) -> bool:
    """Whether any process holds the lock at `path` now. Changes nothing."""
    with _table:
        if _held_here(path):
            return True
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind = struct.unpack("hhqqi4x", fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[0]
        finally:
            os.close(descriptor)
    return bool(kind != fcntl.F_UNLCK)
