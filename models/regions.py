"""Where the bytes of a payload's regions come from, and whose memory restored tensors lie in. Checked by `tests/models/`.

    InMemory   a payload in memory: every region is copied into memory of its own
    Mapped     a file that is mapped: tensors and arrays are views of the mapping, read when they are touched
    Streamed   a payload that arrives piece by piece: large regions go straight into memory of their own

G1 own-memory   but for a mapping, nothing handed out aliases the payload: it may be reused or dropped
G2 resizable    memory of its own is torch's, one storage a region: sharded training resizes storages
G3 private      a mapping is copied when it is written to: what is changed never reaches the file
"""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy
import torch

from . import skeleton as tags
from .errors import NotAState

OWN_FROM_BYTES = 16 * 1024
"""Streamed regions from this size on get their memory while the payload arrives; smaller ones are gathered first."""


class Regions(Protocol):
    """The regions of one payload, by index."""

    def view(self, index: int) -> numpy.ndarray:
        """The bytes, to be looked at or copied."""

    def storage(self, index: int) -> torch.Tensor:
        """The bytes as a uint8 tensor whose storage is for the restored tensors."""

    def owned(self, index: int) -> numpy.ndarray:
        """The bytes as memory for a restored array."""

    @property
    def copied_below(self) -> int:
        """Regions shorter than this are to be copied out, from `addresses`; of the others `storage` gives the memory."""

    def addresses(self, indices: numpy.ndarray) -> numpy.ndarray:
        """Where the bytes of these regions are, which are shorter than `copied_below`."""


def starts_of(lengths: Sequence[int], header: tags.Header) -> list[int]:
    """Where each region begins. Raises NotAState unless they end where the payload does (F1)."""
    starts = list(accumulate(map(tags.aligned, lengths), initial=header.regions_start))
    if starts[-1] != header.total_bytes:
        raise NotAState(f"not a whole state: its regions end at {starts[-1]} of {header.total_bytes} bytes")
    return starts


def own_storage(data: numpy.ndarray) -> torch.Tensor:
    """A copy of some bytes in torch's own memory, which stays resizable (G2)."""
    storage = torch.empty(data.nbytes, dtype=torch.uint8, device="cpu")
    ctypes.memmove(storage.data_ptr(), data.ctypes.data, data.nbytes)
    return storage


class InMemory:
    """The regions of a payload that lies in memory."""

    copied_below = sys.maxsize

    def __init__(self, payload: numpy.ndarray, lengths: Sequence[int], starts: Sequence[int]) -> None:
        self._bytes = payload
        self._address = payload.ctypes.data
        self._lengths = lengths
        self._starts = starts

    def addresses(self, indices: numpy.ndarray) -> numpy.ndarray:
        """See Regions."""
        return self._address + numpy.array(self._starts, numpy.int64)[indices]

    def view(self, index: int) -> numpy.ndarray:
        """See Regions."""
        return self._bytes[self._starts[index] : self._starts[index] + self._lengths[index]]

    def storage(self, index: int) -> torch.Tensor:
        """See Regions."""
        return own_storage(self.view(index))

    def owned(self, index: int) -> numpy.ndarray:
        """See Regions."""
        return self.view(index).copy()


class Mapped(InMemory):
    """The regions of a payload in a private mapping: nothing is read before it is touched (G3)."""

    copied_below = 0

    def storage(self, index: int) -> torch.Tensor:
        """See Regions."""
        data = self.view(index)
        return torch.from_numpy(data) if data.nbytes else torch.empty(0, dtype=torch.uint8)

    def owned(self, index: int) -> numpy.ndarray:
        """See Regions."""
        return self.view(index)


class Streamed:
    """The regions of a payload that is handed over in order, piece by piece, with `add`."""

    copied_below = OWN_FROM_BYTES

    def __init__(self, lengths: Sequence[int], starts: Sequence[int]) -> None:
        self._lengths = lengths
        self._starts = starts
        self._large: dict[int, torch.Tensor] = {}
        self._small: list[tuple[int, numpy.ndarray]] = []  # runs of small regions between large ones
        self._targets: list[tuple[int, int, int]] = []  # first byte, end, address to go to
        run = starts[0]
        for index, length in enumerate(lengths):
            if length >= OWN_FROM_BYTES:
                self._end_run(run, starts[index])
                storage = torch.empty(length, dtype=torch.uint8, device="cpu")
                self._large[index] = storage
                self._targets.append((starts[index], starts[index] + length, storage.data_ptr()))
                run = starts[index + 1]
        self._end_run(run, starts[-1])
        self._first_bytes = [first for first, _, _ in self._targets]
        self._run_starts = [first for first, _ in self._small]

    def addresses(self, indices: numpy.ndarray) -> numpy.ndarray:
        """See Regions."""
        starts = numpy.array(self._starts, numpy.int64)[indices]
        ahead = numpy.array([memory.ctypes.data - first for first, memory in self._small] or [0], numpy.int64)
        return starts + ahead[numpy.searchsorted(self._run_starts, starts, "right") - 1]

    def _end_run(self, start: int, stop: int) -> None:
        if start < stop:
            memory = numpy.empty(stop - start, numpy.uint8)
            self._small.append((start, memory))
            self._targets.append((start, stop, memory.ctypes.data))

    def large(self) -> list[tuple[int, int]]:
        """Address and length of the memory that large regions will be in."""
        return [(each.data_ptr(), each.numel()) for each in self._large.values()]

    def add(self, offset: int, piece: numpy.ndarray) -> None:
        """Take the payload's bytes from `offset` on; what is before the regions or between them is left out."""
        address, end = piece.ctypes.data, offset + piece.size
        position = max(bisect_right(self._first_bytes, offset) - 1, 0)
        for first, stop, target in self._targets[position:]:
            if first >= end:
                return
            begin, finish = max(first, offset), min(stop, end)
            if begin < finish:
                ctypes.memmove(target + begin - first, address + begin - offset, finish - begin)

    def view(self, index: int) -> numpy.ndarray:
        """See Regions."""
        large = self._large.get(index)
        if large is not None:
            return large.numpy()
        length, start = self._lengths[index], self._starts[index]
        if not length:
            return numpy.empty(0, numpy.uint8)
        first, memory = self._small[bisect_right(self._run_starts, start) - 1]
        return memory[start - first : start - first + length]

    def storage(self, index: int) -> torch.Tensor:
        """See Regions."""
        large = self._large.get(index)
        return own_storage(self.view(index)) if large is None else large

    def owned(self, index: int) -> numpy.ndarray:
        """See Regions."""
        return self.view(index).copy()


def lengths_in(skeleton: dict[str, Any]) -> list[int]:
    """The lengths of the regions, each a whole number."""
    return [count(length) for length in skeleton["regions"]]


def count(value: Any) -> int:
    """A length or an index from the skeleton: a whole number, not negative."""
    if type(value) is not int or value < 0:
        raise NotAState(f"not a readable state: {value!r:.40} where a count belongs")
    return value
