"""`MappedFile`: a file as memory, made durable by msync or, on persistent memory, by the processor alone.

mapped          writes are copies into the mapping; `persist` is msync(MS_SYNC). What the published system does on disks.
pmem            a DAX mapping with MAP_SYNC: writes are non-temporal stores, a cache line at a time, followed by a fence
                *of the same thread* before `write` returns. A fence orders only its own thread's stores, so it cannot
                be left to the thread that calls `persist`. Cache-line fences on a mapping that is not DAX make nothing
                durable, so anything else is refused.
emulated-pmem   the same instructions on any file. It promises nothing: for tests.

Device rules D1–D4 hold; lengths and offsets are whole pages. Trusted: MAP_SYNC, and that the platform drains its write
queues at power loss (ADR).
"""

from __future__ import annotations

import errno
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import StoreError
from .files import BufferedFile, naming
from .jit import JIT, kernel
from .rules import PAGE_BYTES

_MAP_SHARED_VALIDATE = 0x03
_MAP_SYNC = 0x80000

if JIT:
    from .instructions import LINE_BYTES, copy_line, fence

    @kernel
    def store_and_fence(source: Any, target: Any) -> None:
        """Copy whole lines past the cache, then wait until this thread's stores are out of its buffers."""
        for offset in range(0, source.size, LINE_BYTES):
            copy_line(source, target, offset)
        fence()

else:

    def store_and_fence(source: Any, target: Any) -> None:
        """The twin: a plain copy."""
        target[:] = source


class MappedFile(BufferedFile):
    """A file through a shared mapping. `kind` is "mapped", "pmem" or "emulated-pmem"."""

    def __init__(self, path: str, kind: str, *, create: bool = False, writable: bool = True) -> None:
        """Open and map `path`. Raises StoreError for "pmem" on a file system without DAX."""
        super().__init__(path, create=create, writable=writable)
        self._writable = writable
        self._kind = kind
        self._map: mmap.mmap | None = None
        self._bytes = np.empty(0, np.uint8)
        try:
            self._remap()
        except BaseException:
            self.close()
            raise

    def _remap(self) -> None:
        length = self.size()
        if length == 0:
            return
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if self._writable else 0)
        flags = mmap.MAP_SHARED
        if self._kind == "pmem":
            flags = _MAP_SHARED_VALIDATE | _MAP_SYNC
        try:
            with naming(self.path):
                self._map = mmap.mmap(self._descriptor, length, flags, protection)
        except OSError as error:
            if self._kind == "pmem" and error.errno in (errno.EOPNOTSUPP, errno.EINVAL):
                raise StoreError(
                    f"{self.path} is not on persistent memory (no DAX mapping): fences would make nothing durable there;"
                    " use device='mapped', 'direct' or 'auto'"
                ) from error
            raise
        self._bytes = np.frombuffer(self._map, np.uint8)

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """See Device."""
        if offset + data.size > self._bytes.size:
            raise OSError(errno.ENOSPC, "the file has no room there", self.path)
        target = self._bytes[offset : offset + data.size]
        if self._kind == "mapped":
            target[:] = data
        else:
            assert offset % PAGE_BYTES == 0
            assert data.size % PAGE_BYTES == 0
            store_and_fence(data, target)

    def persist(self) -> None:
        """See Device. On persistent memory every writer has fenced its own stores already."""
        if self._kind == "mapped" and self._map is not None:
            with naming(self.path):
                self._map.flush()

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        """See Device."""
        end = offset + into.size
        if end > self._bytes.size:
            self._remap()  # another process may have made the file longer
        there = min(self._bytes.size, os.fstat(self._descriptor).st_size)  # or shorter: beyond its end lies SIGBUS
        if end > there:
            raise EOFError(f"{self.path} ends at byte {there}, {end - there} bytes early")
        into[:] = self._bytes[offset:end]

    def allocate(self, length: int) -> None:
        """See Device. The size itself is made durable here: msync promises it for data only."""
        super().allocate(length)
        os.fsync(self._descriptor)
        self._remap()

    def close(self) -> None:
        """See Device. The mapping itself goes when the last array over it does."""
        self._bytes = np.empty(0, np.uint8)
        self._map = None
        super().close()
