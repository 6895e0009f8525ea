"""The seam to storage: one file of a store, six methods. Implemented by real files, by memory and by simulation.

What an implementation promises:

D1 whole      `write` and `read` move every byte asked for, or raise OSError; short transfers are looped inside
D2 durable    when `persist` returns, everything written to this file before the call survives power loss; when it
              raises, nothing is known, and calling it again proves nothing
D3 room       `allocate` reserves the bytes on the medium (ENOSPC now rather than later) and makes the size durable
              together with the next `persist` that returns, also when one before it failed: sizes are journalled
D4 threads    `write` may be called from several threads at once for ranges that do not overlap
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .rules import PAGE_BYTES


class Device(Protocol):
    """One file of a store. Offsets and lengths are in bytes; for aligned devices, multiples of PAGE_BYTES."""

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """Make `data` visible at `offset`; says nothing of durability."""

    def persist(self) -> None:
        """Return once all that was written before the call survives power loss."""

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        """Fill `into` from `offset`; raises EOFError when the file ends before."""

    def size(self) -> int:
        """Bytes in the file."""

    def allocate(self, length: int) -> None:
        """Make the file `length` bytes long, all of them reserved."""

    def close(self) -> None:
        """Give back the descriptor; forces nothing."""


def aligned_buffer(length: int) -> NDArray[np.uint8]:
    """Fresh zeroed memory that begins at a page, as O_DIRECT asks."""
    raw = np.zeros(length + PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % PAGE_BYTES
    return raw[start : start + length]


def is_aligned(data: NDArray[np.uint8]) -> bool:
    """Whether memory may be handed to O_DIRECT as it is."""
    return bool(data.ctypes.data % PAGE_BYTES == 0 and data.size % PAGE_BYTES == 0)
