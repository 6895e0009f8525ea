"""Tensors as a table over regions of raw bytes: what shares memory when saved shares memory when loaded.

A *region* is a run of bytes that is written once. A tensor that fills its extent (any contiguous, transposed or
channels-last tensor) points into a region, with its own offset and strides; tensors of one storage whose
extents overlap, tied weights above all, point into the same region. A small view of a large storage therefore costs its
own bytes, not the storage's.

A tensor with holes (`w[:, ::2]`) that lies inside a region written anyway points into it too. Otherwise its values
are packed into a region of their own: values, shape and dtype are kept, its strides become contiguous, and what it
shares with others is not shared after loading. Dimensions of stride 0 (`expand`) cost one element and stay of stride 0.

A *kind* is what tensors may have in common: [dtype, shape, offset, strides or null, flags], in elements. Most tensors
are *ordinary*: a run of host memory that nobody shares. There may be a hundred thousand of them, so they are asked few and
cheap questions, and cost three numbers each; everything else goes by extents.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import count
from typing import Any

import torch

from .capture import SMALL_BYTES, LiveBytes, PackedBytes
from .skeleton import REQUIRES_GRAD
from .tensors import COMPUTED, FREED, INTEGER_OF_BYTES, NAMES, Extent, Refused, extent_of, flags_of, refuse_unfit

STRIDED = torch.strided


class TensorTable:
    """Collects the tensors of one state, then lays them out. Writes nothing and copies nothing by itself."""

    def __init__(self) -> None:
        self.kinds: list[list[Any]] = []
        self._kinds: dict[Any, int] = {}
        self._numbers: dict[int, int] = {}  # by identity, which is good only while the object lives
        self._alive: list[torch.Tensor] = []
        self._tensors: list[torch.Tensor] = []
        self._kind_of: list[int] = []
        self._region_of: list[int] = []
        self._storages: list[Any] = []  # the same for two tensors that share one
        self._lengths: list[int] = []
        self._reads: list[Any] = []
        self._flags: dict[int, int] = {}
        self._extents: dict[int, Extent] = {}  # of those that are not ordinary

    def add(self, tensor: torch.Tensor) -> int:
        """Take a tensor in and return its number; the same object has the same one. Raises `Refused`."""
        number = self._numbers.get(id(tensor))
        if number is None and type(tensor) is torch.Tensor:
            number = self.add_ordinary([tensor])
        if number is not None:
            return number
        refuse_unfit(tensor)
        plain = tensor.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        extent, flags, number = extent_of(plain), flags_of(tensor), len(self._tensors)
        length = extent.stop - extent.start
        storage = extent.storage if plain.is_cpu else (plain.device, extent.storage)
        self._extents[number] = extent
        if flags:
            self._flags[number] = flags
        self._take([tensor], [plain], [-1], [storage if length else -1 - number], [length], [no_bytes])
        return number

    def add_ordinary(self, tensors: list[torch.Tensor]) -> int | None:
        """Take these in and return the number of the first, if all are new and ordinary; else None, and nothing is done.

        Raises `Refused`.
        """
        kinds, storages, lengths, reads, flags = [], [], [], [], {}
        first = number = len(self._tensors)
        for tensor in tensors:
            dtype = tensor.dtype
            if (
                dtype not in NAMES
                or tensor.layout is not STRIDED
                or not tensor.is_cpu
                or tensor.is_nested
                or not tensor.is_contiguous()
                or tensor.is_neg()
                or tensor.is_conj()
            ):
                return None
            storage, address, length = tensor.untyped_storage(), tensor.data_ptr(), tensor.nbytes
            base = storage.data_ptr()
            if length and address + length > base + storage.nbytes():
                raise Refused(FREED)
            if tensor.requires_grad:
                flags[number] = REQUIRES_GRAD
            key = dtype, tensor.shape, number in flags
            kind = self._kinds.get(key)
            kinds.append(self._new_kind(key, tensor, flags.get(number, 0)) if kind is None else kind)
            storages.append(base if length else -1 - number)
            lengths.append(length)
            reads.append((address if length else no_bytes) if length < SMALL_BYTES else live_bytes(tensor))
            number += 1
        if not self._numbers.keys().isdisjoint(map(id, tensors)) or len(set(map(id, tensors))) < len(tensors):
            return None
        self._flags |= flags
        self._take(tensors, tensors, kinds, storages, lengths, reads)
        return first

    def _take(self, objects: Any, tensors: Any, kinds: Any, storages: Any, lengths: Any, reads: Any) -> None:
        self._numbers.update(zip(map(id, objects), count(len(self._tensors)), strict=False))
        self._alive += objects
        self._tensors += tensors
        self._kind_of += kinds
        self._storages += storages
        self._lengths += lengths
        self._reads += reads

    def _new_kind(
        self, key: Any, tensor: torch.Tensor, flags: int, offset: int = 0, strides: list[int] | None = None
    ) -> int:
        self._kinds[key] = len(self.kinds)
        self.kinds.append([NAMES[tensor.dtype], list(tensor.shape), offset, strides, flags])
        return self._kinds[key]

    def items(self) -> Iterator[tuple[torch.Tensor, int]]:
        """Every tensor, detached, and its flags, by number."""
        return ((tensor.detach(), self._flags.get(number, 0)) for number, tensor in enumerate(self._tensors))

    def lay_out(self, lengths: list[int], reads: list[Any]) -> list[list[int]]:
        """Place every tensor in a region; returns the kind of each and the region of each.

        Regions are added at the ends of the two lists. What reads a region is called when its bytes are wanted; of a few
        bytes in host memory it is the address.
        """
        together = self._sharing()
        closely = {number for members in together.values() for number in members}
        self._region_of = [-1] * len(self._tensors)
        for number, length in enumerate(self._lengths):
            if number not in closely:
                self._region_of[number] = len(lengths)
                lengths.append(length)
                reads.append(self._reads[number])
                if number in self._extents:
                    self._place(number, self._region_of[number], 0, None)
            elif number in together:
                self._lay_out_storage(together[number], lengths, reads)
        return [self._kind_of, self._region_of]

    def _sharing(self) -> dict[int, list[int]]:
        """The tensors that must be looked at closely: those of one storage together, by the first of them."""
        together: dict[int, list[int]] = {}
        if len(set(self._storages)) < len(self._storages):
            first_of: dict[Any, int] = {}
            for number, storage in enumerate(self._storages):
                first = first_of.setdefault(storage, number)
                if first != number:
                    together.setdefault(first, [first]).append(number)
        found = {number for members in together.values() for number in members}
        return together | {
            number: [number] for number in self._extents if self._lengths[number] and number not in found
        }

    def _lay_out_storage(self, members: list[int], lengths: list[int], reads: list[Any]) -> None:
        """Place the tensors of one storage: overlapping filled extents merge, the rest fits in or is packed."""
        extents = {number: self._extents.get(number) or extent_of(self._tensors[number]) for number in members}
        filled = sorted(
            (number for number in members if extents[number].filled), key=lambda number: extents[number][:2]
        )
        groups: list[list[int]] = []
        reach = 0
        for number in filled:
            if not groups or extents[number].start >= reach:
                groups.append([])
            groups[-1].append(number)
            reach = max(reach, extents[number].stop)
        placed: list[tuple[int, int, int]] = []  # start, stop, region
        for group in groups:
            start = extents[group[0]].start
            stop = max(extents[number].stop for number in group)
            # So that every member begins at a whole number of its own elements, whatever its type.
            start -= start % max(self._tensors[number].element_size() for number in group)
            placed.append((start, stop, len(lengths)))
            lengths.append(stop - start)
            # Memory of other libraries may have two storages at one address, of different lengths.
            longest = max((self._tensors[number] for number in group), key=lambda each: each.untyped_storage().nbytes())
            reads.append(LiveBytes(longest, start, stop))
        packed: dict[Any, int] = {}
        for number in members:
            tensor, extent = self._tensors[number], extents[number]
            at = bisect_right(placed, extent.start, key=lambda place: place[0]) - 1
            offset = extent.start - placed[at][0] if at >= 0 else 0
            if at >= 0 and extent.stop <= placed[at][1] and offset % tensor.element_size() == 0:
                strides = None if extent.contiguous else list(tensor.stride())
                self._place(number, placed[at][2], offset // tensor.element_size(), strides)
            else:
                self._pack(number, extent, packed, lengths, reads)

    def _pack(self, number: int, extent: Extent, packed: dict[Any, int], lengths: list[int], reads: list[Any]) -> None:
        """A tensor with holes in a region of its own values; identical views share it."""
        tensor = self._tensors[number]
        key = (tensor.dtype, extent.start, extent.shape, tensor.stride())
        if key not in packed:
            narrow = tensor
            for dimension, stride in enumerate(tensor.stride()):
                if stride == 0:
                    narrow = narrow.narrow(dimension, 0, 1)
            if tensor.dtype not in COMPUTED:
                narrow = narrow.view(INTEGER_OF_BYTES[tensor.itemsize])
            packed[key] = len(lengths)
            lengths.append(narrow.numel() * narrow.element_size())
            reads.append(PackedBytes(narrow))
        strides = list(torch.empty(extent.shape, device="meta").stride())
        strides = [0 if stride == 0 else new for stride, new in zip(tensor.stride(), strides, strict=True)]
        self._place(number, packed[key], 0, strides)

    def _place(self, number: int, region: int, offset: int, strides: list[int] | None) -> None:
        tensor, flags = self._tensors[number], self._flags.get(number, 0)
        key = tensor.dtype, tensor.shape, offset, None if strides is None else tuple(strides), flags
        kind = self._kinds.get(key)
        self._kind_of[number] = self._new_kind(key, tensor, flags, offset, strides) if kind is None else kind
        self._region_of[number] = region


def live_bytes(tensor: torch.Tensor) -> LiveBytes:
    """A reader of a contiguous tensor."""
    start = int(tensor.storage_offset()) * tensor.itemsize
    return LiveBytes(tensor, start, start + tensor.nbytes)


def no_bytes() -> bytes:
    """What reads an empty region."""
    return b""
