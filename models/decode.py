"""From a payload back to nested values. Never runs anything that the payload names. Checked by `tests/models/`.

Every restored tensor, array and byte string owns memory of its own: bytes are copied out of the payload, so training
may change what was restored, and the payload's buffer may be reused or dropped, without either seeing the other. The
cost is a second copy of the state in memory while it is being decoded.

Nothing in the payload is believed: lengths are held against the payload (F1), every row and node against its region
before any memory is made from it. Anything wrong raises `NotAState` and returns nothing.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from . import skeleton as tags
from .errors import NotAState
from .tensors import DTYPES

ARRAY_DTYPE = re.compile(r"[<>|][biufcSUMm][0-9]{1,9}(\[[0-9]*[A-Za-z\u03bc]{1,7}(/[0-9]+)?\])?", re.ASCII)

MISFITS = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, RuntimeError, struct.error)
"""What Python and torch raise when the pieces of a skeleton do not fit together."""

Node = Any


@dataclass(frozen=True)
class Decoded:
    """What a payload held: the state, and what travelled beside it."""

    state: Any
    extra: Any


def decode(payload: Any) -> Decoded:
    """Decode a payload (bytes, or a uint8 array). Raises `NotAState`, or `FormatTooNew` for a later format."""
    view = memoryview(payload).cast("B")
    header = tags.read_header(view)
    try:
        skeleton = json.loads(bytes(view[tags.ALIGNMENT : tags.ALIGNMENT + header.skeleton_bytes]))
        reader = _Reader(view, header, skeleton)
        return Decoded(reader.value(skeleton["state"]), reader.value(skeleton["extra"]))
    except NotAState:
        raise
    except MISFITS as problem:
        raise NotAState(f"not a readable state: {type(problem).__name__}: {problem}".split("\n")[0]) from problem


def count(value: Any) -> int:
    """A length or an index from the skeleton: a whole number, not negative."""
    if type(value) is not int or value < 0:
        raise NotAState(f"not a readable state: {value!r:.40} where a count belongs")
    return value


class _Reader:
    """Builds values from nodes over one payload."""

    def __init__(self, view: memoryview, header: tags.Header, skeleton: dict[str, Any]) -> None:
        self._bytes = numpy.frombuffer(view, dtype=numpy.uint8)
        self._lengths = [count(length) for length in skeleton["regions"]]
        self._starts: list[int] = []
        position = header.regions_start
        for length in self._lengths:
            self._starts.append(position)
            position += tags.aligned(length)
        if position != header.total_bytes:
            raise NotAState(f"not a whole state: its regions end at {position} of {header.total_bytes} bytes")
        self._rows: list[Any] = skeleton["tensors"]
        self._storages: dict[int, torch.Tensor] = {}
        self._tensors: dict[int, torch.Tensor] = {}
        self._by_tag: dict[str, Callable[[list[Node]], Any]] = {
            tags.LIST: lambda rest: [self.value(node) for node in rest],
            tags.TUPLE: lambda rest: tuple(self.value(node) for node in rest),
            tags.DICT: lambda rest: self._fill({}, rest),
            tags.ORDERED_DICT: lambda rest: self._fill(OrderedDict(), rest),
            tags.COUNTER: lambda rest: self._fill(Counter(), rest),
            tags.MODULE_DICT: self._module_dict,
            tags.SET: lambda rest: {self.value(node) for node in rest},
            tags.FROZEN_SET: lambda rest: frozenset(self.value(node) for node in rest),
            tags.SIZE: lambda rest: torch.Size([count(node) for node in rest]),
            tags.INT: lambda rest: int(rest[0], 16),
            tags.FLOAT: lambda rest: struct.unpack(">d", bytes.fromhex(rest[0]))[0],
            tags.COMPLEX: lambda rest: complex(*struct.unpack(">dd", bytes.fromhex(rest[0]))),
            tags.TEXT: lambda rest: bytes.fromhex(rest[0]).decode("utf-8", "surrogatepass"),
            tags.BYTES: lambda rest: self._region(rest[0]).tobytes(),
            tags.BYTE_ARRAY: lambda rest: bytearray(self._region(rest[0]).tobytes()),
            tags.TENSOR: lambda rest: self._tensor(rest[0]),
            tags.ARRAY: self._array,
            tags.SCALAR: self._scalar,
            tags.DTYPE: lambda rest: known_dtype(rest[0]),
            tags.DEVICE: lambda rest: torch.device(rest[0]),
        }

    def value(self, node: Node) -> Any:
        """The value of one node."""
        if type(node) is dict:
            return {key: self.value(item) for key, item in node.items()}
        if type(node) is not list:
            return node
        build = self._by_tag.get(node[0])
        if build is None:
            raise NotAState(f"not a readable state: no kind of value is called {node[0]!r:.40}")
        return build(node[1:])

    def _fill(self, mapping: dict[Any, Any], rest: list[Node]) -> Any:
        for key, item in zip(rest[::2], rest[1::2], strict=True):
            mapping[self.value(key)] = self.value(item)
        if 2 * len(mapping) != len(rest):
            raise NotAState("not a readable state: a dict has the same key twice")
        return mapping

    def _module_dict(self, rest: list[Node]) -> OrderedDict[Any, Any]:
        mapping: OrderedDict[Any, Any] = self._fill(OrderedDict(), rest[1:])
        mapping._metadata = self.value(rest[0])  # type: ignore[attr-defined]
        return mapping

    def _region(self, index: Any) -> numpy.ndarray:
        index = count(index)
        return self._bytes[self._starts[index] : self._starts[index] + self._lengths[index]]

    def _array(self, rest: list[Node]) -> numpy.ndarray:
        name, shape, order, region = rest
        dtype = array_dtype(name)
        shape = tuple(count(length) for length in shape)
        data = self._region(region)
        if math.prod(shape) * dtype.itemsize != data.nbytes:
            raise NotAState(f"not a whole state: an array of {shape} needs other than {data.nbytes} bytes")
        array = numpy.ndarray(shape[::-1] if order == "F" else shape, dtype)  # unlike `empty`, keeps text of length 0
        if data.nbytes:
            array.reshape(-1).view(numpy.uint8)[:] = data
        return array.T if order == "F" else array

    def _scalar(self, rest: list[Node]) -> Any:
        dtype, data = array_dtype(rest[0]), bytes.fromhex(rest[1])
        if len(data) != dtype.itemsize:
            raise NotAState(f"not a whole state: a scalar of {dtype} from {len(data)} bytes")
        return numpy.frombuffer(data, dtype)[0] if data else numpy.zeros((), dtype)[()]

    def _storage(self, index: int) -> torch.Tensor:
        """The region's bytes in memory of their own, made once for all tensors that share it."""
        storage = self._storages.get(index)
        if storage is None:
            region = self._region(index)
            storage = torch.empty(region.nbytes, dtype=torch.uint8, device="cpu")
            ctypes.memmove(storage.data_ptr(), region.ctypes.data, region.nbytes)  # keeps the storage resizable
            self._storages[index] = storage
        return storage

    def _tensor(self, index: Any) -> torch.Tensor:
        tensor = self._tensors.get(count(index))
        if tensor is None:
            tensor = self._tensors[index] = self._build_tensor(self._rows[index])
        return tensor

    def _build_tensor(self, row: list[Any]) -> torch.Tensor:
        """A tensor over its region's storage, after its reach was held against the region's length."""
        name, shape, region, *rest = row
        offset, strides, flags = rest or (0, None, 0)
        dtype = known_dtype(name)
        shape = [count(length) for length in shape]
        strides = contiguous_strides(shape) if strides is None else [count(stride) for stride in strides]
        reach = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)) + 1
        elements = 0 if 0 in shape else count(offset) + reach
        storage = self._storage(count(region))
        if elements * dtype.itemsize > storage.numel():
            raise NotAState(f"not a whole state: a tensor of {shape} reaches outside its {storage.numel()} bytes")
        tensor = torch.empty(0, dtype=dtype, device="cpu")
        with torch.no_grad():
            tensor.set_(storage.untyped_storage(), offset if elements else 0, shape, strides)
        if count(flags) & tags.PARAMETER:
            return torch.nn.Parameter(tensor, requires_grad=bool(flags & tags.REQUIRES_GRAD))
        return tensor.requires_grad_() if flags & tags.REQUIRES_GRAD else tensor


def contiguous_strides(shape: list[int]) -> list[int]:
    """The strides of a row-major tensor, as torch counts them."""
    strides: list[int] = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return strides[::-1]


def known_dtype(name: Any) -> torch.dtype:
    """A torch dtype from the fixed table."""
    dtype = DTYPES.get(name)
    if dtype is None:
        raise NotAState(f"not readable here: this torch has no element type {name!r:.40} that can be saved")
    return dtype


def array_dtype(name: Any) -> numpy.dtype[Any]:
    """A numpy dtype of numbers, text or time; never objects, never structures."""
    if not isinstance(name, str) or not ARRAY_DTYPE.fullmatch(name):
        raise NotAState(f"not readable here: {name!r:.40} is not an array type that can be saved")
    return numpy.dtype(name)
