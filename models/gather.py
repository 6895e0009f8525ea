"""Very many small regions as a few buffers: copied by one compiled loop, not by a call of Python for each.

    regions     64 │ 12 │ 12 │ 70,000 │ 8 │ ...
    buffers    [64 12·· 12··] [70,000] [·· 8··] ...          each region padded to the alignment

A region below `SMALL_BYTES` is copied into a block together with its neighbours; a larger one is a buffer of its own. A
hundred thousand tiny tensors are seven blocks, and what reads a block is one reader among the others (`capture.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
from numba import types

from lastgood.core.jit import JIT, kernel

from .capture import SMALL_BYTES
from .skeleton import ALIGNMENT

Reader = Callable[[], Any]
BLOCK_BYTES = 1024 * 1024
"""A block ends with the region that reaches this size."""

_move = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


@kernel
def _copy_compiled(targets: Any, sources: Any, lengths: Any) -> None:
    for index in range(targets.size):
        _move(targets[index], sources[index], lengths[index])


def _copy_interpreted(targets: Any, sources: Any, lengths: Any) -> None:
    for target, source, length in zip(targets.tolist(), sources.tolist(), lengths.tolist(), strict=True):
        ctypes.memmove(target, source, length)


_copy = _copy_compiled if JIT else _copy_interpreted


def copy_many(targets: Any, sources: Any, lengths: Any) -> None:
    """Copy memory from addresses to addresses; nothing is checked, so the caller must have done it."""
    _copy(*(numpy.asarray(each, numpy.uint64) for each in (targets, sources, lengths)))


def aligned(lengths: numpy.ndarray) -> numpy.ndarray:
    """Each length rounded up to the alignment."""
    return (lengths + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


class Block:
    """A reader of neighbouring small regions, each padded; in front of them the padding of what came before."""

    def __init__(self, lead: int, lengths: numpy.ndarray, readers: Sequence[Reader | int]) -> None:
        """A region is read by calling, or lies in host memory at an address."""
        ends = lead + numpy.cumsum(aligned(lengths))
        self.length = int(ends[-1]) if len(ends) else lead
        self._offsets = ends - aligned(lengths)
        self._lengths = lengths
        self._readers = readers

    def __call__(self) -> numpy.ndarray:
        """The bytes as they are now, in memory of their own."""
        block = numpy.zeros(self.length, numpy.uint8)
        addresses = numpy.array([each if type(each) is int else 0 for each in self._readers], numpy.uint64)
        here = addresses != 0
        copy_many(block.ctypes.data + self._offsets[here], addresses[here], self._lengths[here])
        for index in numpy.nonzero(~here)[0].tolist():
            length, read = int(self._lengths[index]), self._readers[index]
            if length:
                assert callable(read)
                offset = int(self._offsets[index])
                block[offset : offset + length] = numpy.frombuffer(read(), numpy.uint8)
        return block


def parts_of(lengths: Sequence[int], readers: Sequence[Reader | int]) -> Iterator[tuple[int, Reader]]:
    """The buffers of a payload behind its head, in order: the length of each, and what reads it."""
    sizes = numpy.array(lengths, numpy.int64)
    ends = numpy.cumsum(aligned(sizes))
    large = [*numpy.nonzero(sizes >= SMALL_BYTES)[0].tolist(), len(sizes)]
    lead = first = 0
    for index in large:
        while first < index or lead:
            begin = int(ends[first - 1]) if first else 0
            last = min(int(numpy.searchsorted(ends, begin + BLOCK_BYTES)) + 1, index)
            block = Block(lead, sizes[first:last], readers[first:last])
            yield block.length, block
            lead, first = 0, last
        if index < len(sizes):
            read, length = readers[index], int(sizes[index])
            assert callable(read)
            yield length, read
            lead, first = -length % ALIGNMENT, index + 1
