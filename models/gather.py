"""Very many small regions as a few buffers: copied by one compiled loop, not by a call of Python for each.

    regions     64 │ 12 │ 12 │ 70,000 │ 8 │ ...
    buffers    [64 12·· 12··] [70,000] [·· 8··] ...          each region padded to the alignment

A region below `SMALL_BYTES` is copied into a block together with its neighbours; a larger one is a buffer of its own. A
hundred thousand tiny tensors are seven blocks, and what reads a block is one reader among the others (`capture.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy
from numba import types

from lastgood.core.jit import JIT, kernel

from .capture import SMALL_BYTES
from .skeleton import ALIGNMENT

Reader = Callable[[], Any]
LATER = 1
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

    def __init__(self, lead: int, lengths: numpy.ndarray, sources: Sequence[Any], first: int) -> None:
        """The regions from number `first` on: each lies in host memory at an address, or is read by calling."""
        padded = aligned(lengths)
        ends = lead + numpy.cumsum(padded)
        self.length = int(ends[-1]) if len(ends) else lead
        addresses = numpy.array([each if type(each) is int else 0 for each in sources], numpy.uint64)
        here = (addresses != 0) & (lengths > 0)
        self._near = first + numpy.nonzero(here)[0]
        self._offsets, self._addresses = (ends - padded)[here].astype(numpy.uint64), addresses[here]
        self._lengths = lengths[here].astype(numpy.uint64)
        self._others = [
            (int(ends[index] - padded[index]), int(lengths[index]), sources[index])
            for index in numpy.nonzero(~here & (lengths > 0))[0].tolist()
        ]

    def of(self, tensors: Sequence[Any], addresses: numpy.ndarray) -> Block:
        """The same block, of these tensors, with the regions at these addresses."""
        block = copy(self)
        block._addresses = addresses[self._near]
        block._others = [(offset, length, source.of(tensors, addresses)) for offset, length, source in self._others]
        return block

    def __call__(self) -> numpy.ndarray:
        """The bytes as they are now, in memory of their own."""
        block = numpy.zeros(self.length, numpy.uint8)
        copy_many(block.ctypes.data + self._offsets, self._addresses, self._lengths)
        for offset, length, read in self._others:
            block[offset : offset + length] = numpy.frombuffer(read(), numpy.uint8)
        return block


def parts_of(lengths: Sequence[int], sources: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The buffers of a payload behind its head, in order: the length of each, and what reads it.

    A source is a reader, or the address of a few bytes in host memory; or, for regions of tensors that are yet to come, what
    gives a reader `of` them, or `LATER` for an address.
    """
    sizes = numpy.array(lengths, numpy.int64)
    ends = numpy.cumsum(aligned(sizes))
    large = [*numpy.nonzero(sizes >= SMALL_BYTES)[0].tolist(), len(sizes)]
    lead = first = 0
    for index in large:
        while first < index:
            begin = int(ends[first - 1]) if first else 0
            last = min(int(numpy.searchsorted(ends, begin + BLOCK_BYTES)) + 1, index)
            block = Block(lead, sizes[first:last], sources[first:last], first)
            yield block.length, block
            lead, first = 0, last
        if lead:
            yield lead, PADDINGS[lead]
        if index < len(sizes):
            length = int(sizes[index])
            yield length, sources[index]
            lead, first = -length % ALIGNMENT, index + 1


PADDINGS = [partial(bytes, length) for length in range(ALIGNMENT)]
"""What reads the zeros between two large regions."""
