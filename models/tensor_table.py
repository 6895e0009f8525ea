"""Tensors as a table over regions of raw bytes: what shares memory when saved shares memory when loaded.

A *region* is a run of bytes that is written once. A tensor that fills its extent (any contiguous, transposed or
channels-last tensor) points into a region, with its own offset and strides; tensors of one storage whose
extents overlap, tied weights above all, point into the same region. A small view of a large storage therefore costs its
own bytes, not the storage's.

A tensor with holes (`w[:, ::2]`) that lies inside a region written anyway points into it too. Otherwise its values
are packed into a region of their own: values, shape and dtype are kept, its strides become contiguous, and what it
shares with others is not shared after loading. Dimensions of stride 0 (`expand`) cost one element and stay of stride 0.

A *kind* is what tensors may have in common: [dtype, shape, offset, strides or null, flags], in elements. Small regions
come before large ones, so that they are gathered into few buffers (`gather.py`).

A table is made of facts alone and holds no tensor, so it serves every save whose tensors have the same facts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
import torch

from .capture import SMALL_BYTES, LiveBytes, PackedBytes
from .facts import Facts
from .gather import LATER, Block, Reader, parts_of
from .skeleton import PARAMETER, REQUIRES_GRAD
from .tensors import COMPUTED, FREED, INTEGER_OF_BYTES, NAMES, Refused, Span, span_of


class Piece(NamedTuple):
    """What a region is read from: bytes [start, stop) of the storage of a tensor, or, without those, its values packed."""

    number: int
    start: int = 0
    stop: int = -1

    def of(self, tensors: Sequence[torch.Tensor], addresses: Any) -> Reader:
        """The reader, once the tensors are known."""
        tensor = tensors[self.number]
        return LiveBytes(tensor, self.start, self.stop) if self.stop >= 0 else PackedBytes(narrowed(tensor.detach()))


class TensorTable:
    """Where the tensors with these facts go, in regions that are numbered from `first_region` on."""

    def __init__(self, facts: Facts, first_region: int) -> None:
        """Raises `Refused` when one of them cannot be saved; which one, and why, is for the caller to find out."""
        self.facts = facts
        self.first_region = first_region
        self.kinds: list[list[Any]] = []
        self.kind_of: list[int] = []
        self.region_of: list[int] = [-1] * len(facts.types)
        self.lengths: list[int] = []
        self._kinds: dict[Any, int] = {}
        self._pieces: list[Piece] = []
        self._spans: list[Span] = []
        self._ask_each()
        self._lay_out()
        order = sorted(range(len(self.lengths)), key=lambda region: self.lengths[region] >= SMALL_BYTES)
        place = {region: first_region + position for position, region in enumerate(order)}
        self.region_of = [place[region] for region in self.region_of]
        self.lengths = [self.lengths[region] for region in order]
        pieces = [self._pieces[region] for region in order]
        self._numbers = numpy.array([piece.number for piece in pieces], numpy.intp)
        self._starts = numpy.array([piece.start for piece in pieces], numpy.uint64)
        self._parts = list(parts_of(self.lengths, [LATER if self._is_near(piece) else piece for piece in pieces]))
        self._late = [(at, part) for at, (_, part) in enumerate(self._parts) if isinstance(part, (Piece, Block))]

    def parts(self, tensors: Sequence[torch.Tensor], storages: list[int]) -> list[tuple[int, Reader]]:
        """The buffers that these tensors' regions make up: the length of each, and what reads it."""
        addresses = numpy.array(storages, numpy.uint64)[self._numbers] + self._starts
        parts = list(self._parts)
        for position, source in self._late:
            parts[position] = parts[position][0], source.of(tensors, addresses)
        return parts

    def _is_near(self, piece: Piece) -> bool:
        """Whether it is a few bytes in host memory: enough to know where they are."""
        return 0 <= piece.stop - piece.start < SMALL_BYTES and self.facts.devices[piece.number].type == "cpu"

    def _ask_each(self) -> None:
        """The span of each; the kind, of those that are row-major and no parameters: nearly all."""
        facts = self.facts
        if not NAMES.keys() >= set(facts.dtypes) or any(device.type == "meta" for device in set(facts.devices)):
            raise Refused("")
        known: dict[Any, tuple[Span, int]] = {}
        for key in zip(facts.types, facts.dtypes, facts.shapes, facts.strides, facts.requires_grad, strict=True):
            found = known.get(key)
            if found is None:
                kind, dtype, shape, strides, requires_grad = key
                span, number = span_of(shape, strides, dtype.itemsize), -1
                if span.row_major and kind is torch.Tensor:
                    number = self._new_kind(dtype, shape, 0, None, REQUIRES_GRAD * requires_grad)
                found = known[key] = span, number
            self._spans.append(found[0])
            self.kind_of.append(found[1])
        for number, (span, length) in enumerate(zip(self._spans, facts.lengths, strict=True)):
            if span.length and self._start(number) + span.length > length:
                raise Refused(FREED)

    def _new_kind(self, dtype: torch.dtype, shape: Any, offset: int, strides: list[int] | None, flags: int) -> int:
        self.kinds.append([NAMES[dtype], list(shape), offset, strides, flags])
        return len(self.kinds) - 1

    def _region(self, length: int, piece: Piece) -> int:
        self.lengths.append(length)
        self._pieces.append(piece)
        return len(self.lengths) - 1

    def _live(self, number: int, start: int, stop: int) -> int:
        """A region of bytes of a tensor's storage."""
        return self._region(stop - start, Piece(number, start, stop))

    def _start(self, number: int) -> int:
        return self.facts.offsets[number] * self.facts.dtypes[number].itemsize

    def _lay_out(self) -> None:
        """Place every tensor in a region: alone, unless it shares its storage or has holes."""
        together = self._looked_at_closely()
        closely = {number for members in together.values() for number in members}
        for number, span in enumerate(self._spans):
            if number not in closely:
                start = self._start(number)
                region = self.region_of[number] = self._live(number, start, start + span.length)
                if self.kind_of[number] < 0:
                    self._place(number, region, 0, None)
            elif number in together:
                self._lay_out_storage(together[number])

    def _looked_at_closely(self) -> dict[int, list[int]]:
        """The tensors of one storage together, by the first of them, and those with holes."""
        facts, spans = self.facts, self._spans
        together = {number: [number] for number, span in enumerate(spans) if span.length and not span.row_major}
        first_of: dict[int, int] = {}
        for number, storage in enumerate(facts.sharing):
            if spans[number].length:
                first = first_of.setdefault(storage, number)
                if first != number:
                    together.pop(number, None)
                    together.setdefault(first, [first]).append(number)
        return together

    def _lay_out_storage(self, members: list[int]) -> None:
        """Place the tensors of one storage: overlapping filled extents merge, the rest fits in or is packed."""
        facts, spans = self.facts, self._spans
        starts = {number: self._start(number) for number in members}
        stops = {number: starts[number] + spans[number].length for number in members}
        filled = sorted((n for n in members if spans[n].filled), key=lambda n: (starts[n], stops[n]))
        groups: list[list[int]] = []
        reach = 0
        for number in filled:
            if not groups or starts[number] >= reach:
                groups.append([])
            groups[-1].append(number)
            reach = max(reach, stops[number])
        placed: list[tuple[int, int, int]] = []  # start, stop, region
        for group in groups:
            start, stop = starts[group[0]], max(stops[number] for number in group)
            # So that every member begins at a whole number of its own elements, whatever its type.
            start -= start % max(facts.dtypes[number].itemsize for number in group)
            # Memory of other libraries may have two storages at one address, of different lengths.
            longest = max(group, key=facts.lengths.__getitem__)
            placed.append((start, stop, self._live(longest, start, stop)))
        packed: dict[Any, int] = {}
        for number in members:
            item_bytes, strides = facts.dtypes[number].itemsize, facts.strides[number]
            at = bisect_right(placed, starts[number], key=lambda place: place[0]) - 1
            offset = starts[number] - placed[at][0] if at >= 0 else 0
            if at >= 0 and stops[number] <= placed[at][1] and offset % item_bytes == 0:
                kept = None if spans[number].row_major else list(strides)
                self._place(number, placed[at][2], offset // item_bytes, kept)
            else:
                self._pack(number, starts[number], packed)

    def _pack(self, number: int, start: int, packed: dict[Any, int]) -> None:
        """A tensor with holes in a region of its own values; identical views share it."""
        dtype, strides, shape = self.facts.dtypes[number], self.facts.strides[number], self._spans[number].shape
        key = dtype, start, shape, strides
        if key not in packed:
            packed[key] = self._region(torch.Size(shape).numel() * dtype.itemsize, Piece(number))
        row_major = torch.empty(shape, device="meta").stride()
        self._place(
            number, packed[key], 0, [0 if old == 0 else new for old, new in zip(strides, row_major, strict=True)]
        )

    def _place(self, number: int, region: int, offset: int, strides: list[int] | None) -> None:
        facts = self.facts
        flags = REQUIRES_GRAD * facts.requires_grad[number] | PARAMETER * (facts.types[number] is torch.nn.Parameter)
        kind = facts.dtypes[number], facts.shapes[number], offset, strides, flags
        key = facts.dtypes[number], facts.shapes[number], offset, None if strides is None else tuple(strides), flags
        if key not in self._kinds:
            self._kinds[key] = self._new_kind(*kind)
        self.kind_of[number] = self._kinds[key]
        self.region_of[number] = region


def narrowed(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with one element where it was expanded, of a type that torch can copy."""
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor if tensor.dtype in COMPUTED else tensor.view(INTEGER_OF_BYTES[tensor.itemsize])
