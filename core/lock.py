"""One writer for a store, told by name. Trusted: open-file-description locks of the kernel.

L1 exclusive    while one writer holds the lock no other can take it, in this process or another
L2 never-stale  the kernel drops it when the process ends, however it ends. A forked child gives its share back at once, so a
                data loader worker that outlives its killed parent does not keep the store shut
L3 own-file     other descriptors of the lock file may come and go, also in this process: copying a live store's directory
                does not drop the lock, as it would with a classic record lock
L4 no-file      removing the lock file of a running writer lets nobody else in: the directory itself is locked, too, where
                its file system can do that
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
import threading

from .errors import StoreInUse

HOLDER = b"process "
"""What a lock file begins with."""
_FLOCK = "hhqqi4x"
_held: set[int] = set()
"""Descriptors of the locks held by this process; a fork inherits descriptors, and with them a share of each lock."""


_no_fork = threading.Lock()
"""Held for an instant where a descriptor is locked but not yet in the table, or no longer: a fork there would keep it."""


class WriterLock:
    """The lock file of one store, held from construction to `release`. Raises StoreInUse, naming the holder."""

    def __init__(self, path: str, store: str) -> None:
        """Take the lock at `path` for the store in the directory `store`."""
        self._process = os.getpid()
        with _no_fork:
            self._descriptors = [os.open(store, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
                self._descriptors.append(file)
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
                _lock_directory(self._descriptors[0])
            except OSError as error:
                name = _name_in(self._descriptors[-1])
                self._close()
                if error.errno != errno.EAGAIN:
                    error.filename = path
                    if len(self._descriptors) == 2:  # the file is there, and nobody can lock it
                        error.strerror = f"{error.strerror}: a writer needs a file system with locks"
                        if not name:
                            os.unlink(path)
                    raise
                raise StoreInUse(f"{store} is being written by {_holder(name)}") from None
            _held.update(self._descriptors)
        with contextlib.suppress(OSError):  # telling others who we are is a courtesy; a full disk must not refuse us
            os.pwrite(file, _own_name().ljust(200).encode() + b"\n", 0)

    def release(self) -> None:
        """Give the lock back. In a forked child it was given back at the fork."""
        if os.getpid() == self._process:
            with _no_fork:
                _held.difference_update(self._descriptors)
                self._close()
        self._descriptors = []

    def is_at(self, path: str) -> bool:
        """Whether the directory at `path` is the one that was locked; also true when the lock was given back."""
        if not self._descriptors:
            return True
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._descriptors[0]), os.stat(path))
        return False

    def _close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)


def _lock_directory(descriptor: int) -> None:
    """L4. Raises BlockingIOError where another writer has it; some network file systems cannot lock a directory at all."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise


def _name_in(descriptor: int) -> str:
    with contextlib.suppress(OSError):  # a courtesy, as writing it is
        return os.pread(descriptor, 200, 0).decode(errors="replace").strip()
    return ""


def _own_name() -> str:
    return f"{HOLDER.decode()}{os.getpid()} on {socket.gethostname()}"


def _holder(name: str) -> str:
    if name == _own_name():
        return f"this process ({os.getpid()}): it is open already, close it first"
    return f"{name or 'an unknown process'}: wait for it, stop it, or open read-only"


def _whole_file(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)


def _give_back_in_child() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()
    _no_fork.release()


os.register_at_fork(before=_no_fork.acquire, after_in_parent=_no_fork.release, after_in_child=_give_back_in_child)


def writer_alive(path: str) -> bool:
    """Whether any writer holds the lock at `path` now. Changes nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_WRLCK))
    finally:
        os.close(descriptor)
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)
