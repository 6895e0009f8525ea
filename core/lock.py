"""One writer for a store, told by name. Trusted: open-file-description locks of the kernel.

L1 exclusive    while one writer holds the lock no other can take it, in this process or another
L2 never-stale  the kernel drops it when the process ends, however it ends. A forked child gives its share back at once, so a
                data loader worker that outlives its killed parent does not keep the store shut
L3 own-file     other descriptors of the lock file may come and go, also in this process: copying a live store's directory
                does not drop the lock, as it would with a classic record lock
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

_FLOCK = "hhqqi4x"
_held: set[int] = set()
"""Descriptors of the locks held by this process; a fork inherits descriptors, and with them a share of each lock."""


_no_fork = threading.Lock()
"""Held for an instant where a descriptor is locked but not yet in the table, or no longer: a fork there would keep it."""


class WriterLock:
    """The lock file of one store, held from construction to `release`. Raises StoreInUse, naming the holder."""

    def __init__(self, path: str, store: str) -> None:
        """Take the lock at `path` for the store named `store`."""
        self._process = os.getpid()
        with _no_fork:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
            except OSError as error:
                name = os.pread(self._descriptor, 200, 0).decode(errors="replace").strip()
                os.close(self._descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    error.filename = path
                    raise
                raise StoreInUse(f"{store} is being written by {_holder(name)}") from None
            _held.add(self._descriptor)
        with contextlib.suppress(OSError):  # telling others who we are is a courtesy; a full disk must not refuse us
            os.pwrite(self._descriptor, _own_name().ljust(200).encode() + b"\n", 0)

    def release(self) -> None:
        """Give the lock back. In a forked child it was given back at the fork."""
        if self._descriptor >= 0 and os.getpid() == self._process:
            with _no_fork:
                _held.discard(self._descriptor)
                os.close(self._descriptor)
        self._descriptor = -1


def _own_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


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
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_WRLCK))
    finally:
        os.close(descriptor)
    return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)
