"""Staging memory: one block, allocated once, cut into chunk buffers that are reused last-in first-out.

A1 bounded        nothing here grows after construction, whatever the load (promise `bounded`)
A2 aligned        every buffer begins at a page and is whole pages long, as O_DIRECT asks; huge pages where the kernel has
                  them, since a transfer from scattered small ones is cut into many requests (half the bandwidth)
A3 hottest        the buffer given back last is handed out first: memory that lies idle for seconds goes cold at the host
                  of a virtual machine, and copying into it then costs four times as much
A4 oldest-first   of several savers that wait, the oldest save gets the next buffer: a younger one that filled the
                  arena would have its chunks written first, whatever the order of the writers' queue
A5 not-far-ahead  while an older save still holds buffers a younger one may bring those in use up to `ahead` only: what is
                  copied early waits for the device all the same, and is the older by as much once it is durable

Checked by the store's tests. Waiting for a buffer needs a lock: this is where a saver is made to wait for the device.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import sys
import threading
from bisect import insort
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .interrupt import WAKE_SECONDS
from .rules import PAGE_BYTES, SEQUENCE_LIMIT

_WIPE_ON_FORK = 18 if sys.platform == "linux" else None
"""MADV_WIPEONFORK, which Python's mmap does not name."""
_NOBODY = SEQUENCE_LIMIT
"""Who holds a free buffer: younger than any save."""


class Arena:
    """`count` buffers of `buffer_bytes` each."""

    def __init__(self, buffer_bytes: int, count: int, ahead: int) -> None:
        """Reserve the memory; pages are touched when first used.

        `ahead` is at least the number of saves under way, so that each can fill a buffer whatever the others hold (A5).
        """
        assert buffer_bytes % PAGE_BYTES == 0
        assert count >= 2, "one buffer fills while another is written"
        self.buffer_bytes = buffer_bytes
        self.count = count
        self.ahead = ahead
        try:
            self._memory = np.frombuffer(huge_memory(self.total_bytes), np.uint8)
        except (OSError, OverflowError) as error:
            reason = f"no memory for staging_bytes={self.total_bytes}: give less, at least two chunks are used"
            raise OSError(errno.ENOMEM, reason) from error
        self._free = list(range(count))
        self._holders = [_NOBODY] * count
        self._waiting: list[int] = []
        self._given_back = threading.Condition(threading.Lock())

    @property
    def total_bytes(self) -> int:
        """All of the staging memory."""
        return self.buffer_bytes * self.count

    @property
    def free_bytes(self) -> int:
        """Staging memory that nobody holds at this moment."""
        return self.buffer_bytes * len(self._free)

    def acquire(self, sequence: int, check: Callable[[], None]) -> int:
        """Index of a buffer that is now the caller's; waits until one is free (A5) and no older save is waiting.

        `check` is called now and then while waiting, where an exception loses nothing.
        """
        with self._given_back:
            if self._waiting or not self._may_take(sequence):
                insort(self._waiting, sequence)
                try:
                    while sequence != self._waiting[0] or not self._may_take(sequence):
                        self._given_back.wait(WAKE_SECONDS)
                        check()
                finally:
                    self._waiting.remove(sequence)
                    self._given_back.notify_all()  # the next in line may go, also when this one was interrupted
            index = self._free.pop()
            self._holders[index] = sequence
            return index

    def _may_take(self, sequence: int) -> bool:
        in_use = self.count - len(self._free)
        return in_use < self.count and (in_use < self.ahead or sequence <= min(self._holders))

    def buffer(self, index: int) -> NDArray[np.uint8]:
        """The memory of a buffer."""
        start = index * self.buffer_bytes
        return self._memory[start : start + self.buffer_bytes]

    def release(self, index: int) -> None:
        """Give a buffer back."""
        with self._given_back:
            assert self._holders[index] != _NOBODY, "a buffer is given back once"
            self._holders[index] = _NOBODY
            self._free.append(index)
            self._given_back.notify_all()


def huge_memory(length: int) -> mmap.mmap:
    """Anonymous memory in huge pages where possible, and empty in forked children: a data loader that forks must neither
    double it nor make the next writes here copy it.

    Empty, not absent: where nothing is mapped a child's own memory comes to lie, and would be unmapped together with the
    store that the child inherited.
    """
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for advice in (getattr(mmap, "MADV_HUGEPAGE", None), _WIPE_ON_FORK):
        if advice is not None:
            with contextlib.suppress(OSError):  # a kernel built without huge pages, or older than the advice
                memory.madvise(advice)
    return memory
