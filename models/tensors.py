"""Tensors as rows of a table over regions of raw bytes: what shares memory when saved shares memory when loaded.

A *region* is a run of bytes that is written once. A tensor that fills its extent (any contiguous, transposed or
channels-last tensor) is a row that points into a region, with its own offset and strides; tensors of one storage whose
extents overlap, tied weights above all, point into the same region. A small view of a large storage therefore costs its
own bytes, not the storage's.

A tensor with holes (`w[:, ::2]`) that lies inside a region written anyway becomes a row into it. Otherwise its values
are packed into a region of their own: values, shape and dtype are kept, its strides become contiguous, and what it
shares with others is not shared after loading. Dimensions of stride 0 (`expand`) cost one element and stay of stride 0.

    row = [dtype, shape, region]                                    contiguous, at the start of its region
        | [dtype, shape, region, offset, strides or null, flags]    in elements

Kept: bits, dtype, shape, strides (but for holes), sharing, `requires_grad`, being a Parameter, being the same object.
Not kept: device (all come back on the CPU), gradients, hooks, attributes, pinned or shared-memory placement.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from .capture import LiveBytes, PackedBytes
from .skeleton import PARAMETER, REQUIRES_GRAD

INTEGERS = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
BARE = (
    "float4_e2m1fn_x2",
    *(f"{sign}int{width}" for sign in ("", "u") for width in range(1, 8)),
    *("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
)
"""Types that torch stores and computes nothing with, not even a copy with strides."""

DTYPE_NAMES = (*INTEGERS, *FLOATS, *SMALL_FLOATS, *BARE)

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in DTYPE_NAMES if hasattr(torch, name)}
"""The element types that can be saved, by name. Quantised ones are saved by their integers (`layouts.py`)."""

COMPUTED = frozenset(dtype for name, dtype in DTYPES.items() if name not in BARE)
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FREED = "the tensor's storage has been freed or resized; gather or materialise it before saving"
INTEGER_OF_BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Refused(Exception):
    """A value that cannot be written; the message says why and what to do, the encoder adds the key path."""


def flags_of(tensor: torch.Tensor) -> int:
    """`requires_grad` and being a Parameter, as a number."""
    return REQUIRES_GRAD * tensor.requires_grad | PARAMETER * (type(tensor) is torch.nn.Parameter)


def flagged(tensor: torch.Tensor, flags: int) -> torch.Tensor:
    """The tensor with these flags; a Parameter is a new object over the same memory."""
    if flags & PARAMETER:
        return torch.nn.Parameter(tensor, requires_grad=bool(flags & REQUIRES_GRAD))
    return tensor.requires_grad_() if flags & REQUIRES_GRAD else tensor


def refuse_unfit(tensor: torch.Tensor) -> None:
    """Raise `Refused` unless the tensor is ordinary: strided, materialised, of a known dtype and no subclass."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        if torch.nn.parameter.is_lazy(tensor):
            raise Refused(f"{kind.__name__} has no values yet; run the module once before saving")
        raise Refused(
            f"{kind.__module__}.{kind.__name__} is a tensor subclass; save a plain tensor made from it,"
            " or register the type with lastgood.models.register"
        )
    if tensor.device.type == "meta":
        raise Refused("a tensor on the meta device has no values; materialise it first")
    if tensor.layout != torch.strided:
        raise Refused(
            f"a tensor of layout {tensor.layout} is not supported; save its indices and values, or to_dense()"
        )
    if tensor.dtype not in NAMES:
        raise Refused(f"a tensor of {tensor.dtype} is not supported; save its int_repr() and scale, or convert it")


class Extent(NamedTuple):
    """Where a tensor's elements lie: bytes [start, stop) of its storage; the shape has 1 for expanded dimensions."""

    start: int
    stop: int
    shape: tuple[int, ...]
    filled: bool
    contiguous: bool
    storage: tuple[int, int]
    """Where the storage lies and how long it is: the same for two tensors that share it."""


def extent_of(tensor: torch.Tensor) -> Extent:
    """The extent of a tensor, checked against its storage."""
    shape: tuple[int, ...] = tensor.shape
    size = tensor.itemsize
    start = tensor.storage_offset() * size
    contiguous = tensor.is_contiguous()
    if contiguous:
        elements, filled = tensor.numel(), True
    else:
        strides = tensor.stride()
        numel = 1
        elements = 1
        for length, stride in zip(shape, strides, strict=True):
            if stride == 0 and length:
                continue
            numel *= length
            elements += (length - 1) * stride
        shape = tuple(1 if stride == 0 else length for length, stride in zip(shape, strides, strict=True))
        elements = elements if numel else 0
        filled = elements <= numel
    stop = start + elements * size
    storage = tensor.untyped_storage()
    length = storage.nbytes()
    if elements and stop > length:
        raise Refused(FREED)
    return Extent(start, stop, shape, filled, contiguous, (storage.data_ptr(), length))


class TensorTable:
    """Collects the tensors of one state, then lays them out. Writes nothing and copies nothing by itself."""

    def __init__(self) -> None:
        self._rows_by_id: dict[int, int] = {}
        self._tensors: list[torch.Tensor] = []
        self._extents: list[Extent] = []
        self._flags: list[int] = []
        self._alive: list[torch.Tensor] = []
        self.on_host = True

    def add(self, tensor: torch.Tensor) -> int:
        """Take a tensor in and return its row; the same object gets the same row. Raises `Refused`."""
        row = self._rows_by_id.get(id(tensor))
        if row is not None:
            return row
        if (  # nothing needs a closer look; very many tensors are asked, so in few and cheap questions
            type(tensor) is torch.Tensor
            and tensor.is_cpu
            and tensor.dtype in NAMES
            and tensor.is_contiguous()
            and not tensor.is_conj()
            and not tensor.is_neg()
        ):
            plain = tensor.detach()
            storage = plain.untyped_storage()
            start, length = plain.storage_offset() * plain.itemsize, storage.nbytes()
            extent = Extent(start, start + plain.nbytes, plain.shape, True, True, (storage.data_ptr(), length))
            if extent.stop > length and plain.nbytes:
                raise Refused(FREED)
            flags = REQUIRES_GRAD if tensor.requires_grad else 0
        else:
            refuse_unfit(tensor)
            plain = tensor.detach()
            if plain.is_conj() or plain.is_neg():
                plain = plain.resolve_conj().resolve_neg()
            extent, flags = extent_of(plain), flags_of(tensor)
            if not plain.is_cpu:
                self.on_host = False
        row = len(self._tensors)
        self._rows_by_id[id(tensor)] = row
        self._alive.append(tensor)  # an id is good only while its object lives
        self._tensors.append(plain)
        self._extents.append(extent)
        self._flags.append(flags)
        return row

    def items(self) -> Iterator[tuple[torch.Tensor, int]]:
        """Every tensor, detached, and its flags, by row."""
        return zip(self._tensors, self._flags, strict=True)

    def lay_out(self, add_region: Callable[[int, Callable[[], Any]], int]) -> list[list[Any]]:
        """Place every tensor in a region and return the table's rows.

        `add_region(length, read)` takes a region and returns its index; `read()` gives its bytes when they are wanted.
        """
        rows: list[Any] = [None] * len(self._tensors)
        storages: dict[tuple[Any, ...], list[int]] = {}
        for index, tensor in enumerate(self._tensors):
            extent = self._extents[index]
            if extent.start == extent.stop:
                rows[index] = self._row(index, add_region(0, _no_bytes), 0, None)
                continue
            storage = extent.storage if tensor.is_cpu else (tensor.device, *extent.storage)
            members = storages.get(storage)
            if members is None:
                storages[storage] = [index]
            else:
                members.append(index)
        for members in storages.values():
            first = members[0]
            extent = self._extents[first]
            if len(members) == 1 and extent.filled:
                tensor = self._tensors[first]
                region = add_region(extent.stop - extent.start, LiveBytes(tensor, extent.start, extent.stop))
                rows[first] = self._row(first, region, 0, None if extent.contiguous else list(tensor.stride()))
            else:
                self._lay_out_storage(members, rows, add_region)
        return rows

    def _lay_out_storage(self, members: list[int], rows: list[Any], add_region: Callable[..., int]) -> None:
        """Place the tensors of one storage: overlapping filled extents merge, the rest fits in or is packed."""
        filled = sorted((index for index in members if self._extents[index].filled), key=self._start_and_stop)
        groups: list[list[int]] = []
        reach = 0
        for index in filled:
            if not groups or self._extents[index].start >= reach:
                groups.append([])
            groups[-1].append(index)
            reach = max(reach, self._extents[index].stop)
        starts: list[int] = []
        placed: list[tuple[int, int, int]] = []  # start, stop, region
        for group in groups:
            start = self._extents[group[0]].start
            stop = max(self._extents[index].stop for index in group)
            # So that every member begins at a whole number of its own elements, whatever its type.
            start -= start % max(self._tensors[index].element_size() for index in group)
            region = add_region(stop - start, LiveBytes(self._tensors[group[0]], start, stop))
            starts.append(start)
            placed.append((start, stop, region))
            for index in group:
                rows[index] = self._placed_row(index, region, start)
        packed: dict[Any, int] = {}
        for index in members:
            if rows[index] is not None:
                continue
            extent = self._extents[index]
            at = bisect_right(starts, extent.start) - 1
            if at >= 0 and extent.stop <= placed[at][1] and self._whole_elements(index, placed[at][0]):
                rows[index] = self._placed_row(index, placed[at][2], placed[at][0])
            else:
                rows[index] = self._packed_row(index, packed, add_region)

    def _packed_row(self, index: int, packed: dict[Any, int], add_region: Callable[..., int]) -> list[Any]:
        """A tensor with holes in a region of its own values; identical views share it."""
        tensor, extent = self._tensors[index], self._extents[index]
        key = (tensor.dtype, extent.start, extent.shape, tensor.stride())
        narrow = tensor
        for dimension, stride in enumerate(tensor.stride()):
            if stride == 0:
                narrow = narrow.narrow(dimension, 0, 1)
        if tensor.dtype not in COMPUTED:
            narrow = narrow.view(INTEGER_OF_BYTES[tensor.itemsize])
        if key not in packed:
            packed[key] = add_region(narrow.numel() * narrow.element_size(), PackedBytes(narrow))
        strides = list(torch.empty(extent.shape, device="meta").stride())
        strides = [0 if stride == 0 else new for stride, new in zip(tensor.stride(), strides, strict=True)]
        return self._row(index, packed[key], 0, strides)

    def _placed_row(self, index: int, region: int, region_start: int) -> list[Any]:
        tensor = self._tensors[index]
        offset = (self._extents[index].start - region_start) // tensor.element_size()
        return self._row(index, region, offset, None if tensor.is_contiguous() else list(tensor.stride()))

    def _row(self, index: int, region: int, offset: int, strides: list[int] | None) -> list[Any]:
        tensor, flags = self._tensors[index], self._flags[index]
        row = [NAMES[tensor.dtype], list(tensor.shape), region]
        if offset or strides is not None or flags:
            row += [offset, strides, flags]
        return row

    def _whole_elements(self, index: int, region_start: int) -> bool:
        return (self._extents[index].start - region_start) % self._tensors[index].element_size() == 0

    def _start_and_stop(self, index: int) -> tuple[int, int]:
        return self._extents[index].start, self._extents[index].stop


def _no_bytes() -> bytes:
    return b""
