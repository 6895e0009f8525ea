"""Devices on real files: `DirectFile` past the page cache, `BufferedFile` through it. Trusted: the kernel's promises.

`DirectFile` writes aligned buffers with O_DIRECT into preallocated blocks and persists with fdatasync. The page cache,
not the disk, is what limits buffered writing, so this is the default wherever the file system allows it.

`BufferedFile` is for file systems without O_DIRECT. It starts writing back as it goes (`sync_file_range`; that call
promises nothing) so that the fdatasync at the end has little left to do.

Both follow the device rules D1–D4. EINTR is retried by the interpreter (PEP 475). Every OSError carries the path.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device import aligned_buffer, is_aligned
from .rules import align_up

_SYNC_FILE_RANGE_WRITE = 2


_sync_file_range: Any = getattr(ctypes.CDLL(None), "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]


_NO_FALLOCATE = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class naming:
    """Let an OSError that comes from inside carry the path. Around every transfer, so not a generator, which costs more."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            error.filename = self._path


class BufferedFile:
    """A file through the page cache."""

    flags = 0

    def __init__(self, path: str, *, create: bool = False, writable: bool = True) -> None:
        """Open `path`, a regular file; with `create` it must not exist. Files get the mode a plain `open` would give."""
        self.path = path
        access = os.O_RDWR if writable else os.O_RDONLY
        extra = os.O_CREAT | os.O_EXCL if create else 0
        self._descriptor = os.open(path, access | extra | os.O_CLOEXEC | os.O_NONBLOCK | self.flags, 0o666)
        try:
            with naming(path):
                kind = os.fstat(self._descriptor).st_mode
            if not stat.S_ISREG(kind):  # a pipe would have us wait for its other end
                raise OSError(errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL, "not a regular file", path)
        except BaseException:
            self.close()
            raise

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """See Device."""
        self._transfer(offset, data)
        if _sync_file_range is not None:
            _sync_file_range(self._descriptor, offset, data.size, _SYNC_FILE_RANGE_WRITE)

    def _transfer(self, offset: int, data: NDArray[np.uint8]) -> None:
        view = data.data
        done = 0
        while done < len(view):
            with naming(self.path):
                count = os.pwrite(self._descriptor, view[done:], offset + done)
            if count == 0:
                raise OSError(errno.EIO, "the device took no bytes", self.path)
            done += count

    def persist(self) -> None:
        """See Device. A second call after a failure proves nothing: the kernel has marked the pages clean."""
        with naming(self.path):
            os.fdatasync(self._descriptor)

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        """See Device."""
        self._fetch(offset, into.data, into.size)

    def _fetch(self, offset: int, view: memoryview, needed: int) -> None:
        """Read until `needed` bytes are there; what the view has beyond them may come or not."""
        done = 0
        while done < needed:
            with naming(self.path):
                count = os.preadv(self._descriptor, [view[done:]], offset + done)
            done += count
            if done < needed and (count == 0 or offset + done >= self.size()):
                raise EOFError(f"{self.path} ends at byte {offset + done}, {needed - done} bytes early")

    def size(self) -> int:
        """See Device. A file that was removed takes writes as before and keeps none of them: that is an error here."""
        status = os.fstat(self._descriptor)
        if status.st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the file was removed while the store was open", self.path)
        return status.st_size

    def allocate(self, length: int) -> None:
        """See Device."""
        if not self._reserve(length):  # only written bytes are
            self._extend(length)

    def try_size(self, length: int, room: int) -> None:
        """Make this file `length` bytes long, `room` of them reserved where that takes no writing; else raise OSError."""
        with naming(self.path):
            os.ftruncate(self._descriptor, length)
        self._reserve(room)

    def _reserve(self, length: int) -> bool:
        """Have so many bytes reserved; False on a file system without fallocate."""
        try:
            with naming(self.path):
                os.posix_fallocate(self._descriptor, 0, length)
        except OSError as error:
            if error.errno not in _NO_FALLOCATE:
                raise
            return False
        return True

    def _extend(self, length: int) -> None:
        zeros = aligned_buffer(align_up(1 << 20))
        for offset in range(self.size(), length, zeros.size):
            self._transfer(offset, zeros[: min(zeros.size, length - offset)])

    def close(self) -> None:
        """See Device."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class DirectFile(BufferedFile):
    """A file past the page cache; memory, offsets and lengths in whole pages."""

    flags = getattr(os, "O_DIRECT", 0)

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """See Device."""
        assert is_aligned(data), "O_DIRECT needs memory and lengths in whole pages"
        self._transfer(offset, data)

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        """See Device. Memory that is not aligned is filled by way of an aligned copy."""
        if is_aligned(into):
            self._fetch(offset, into.data, into.size)
            return
        bounce = aligned_buffer(align_up(into.size))
        self._fetch(offset, bounce.data, into.size)
        into[:] = bounce[: into.size]
