"""From a payload back to nested values. Never runs anything that the payload names. Checked by `tests/models/`.

Every restored tensor, array and byte string owns memory of its own, so training may change what was restored, and the
payload's buffer may be reused or dropped, without either seeing the other (`regions.py`; a mapped file is the exception).

Nothing in the payload is believed: lengths are held against the payload (F1), every row and node against its region
before any memory is made from it. Anything wrong raises `NotAState`, with the key path, and returns nothing.
"""

from __future__ import annotations

import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from . import skeleton as tags
from .array_types import array_type
from .collector import without_collecting
from .errors import NotAState
from .kinds import FACTORIES, kind_from
from .layouts import put_together
from .ordinary import ordinary_tensors
from .regions import InMemory, Regions, count, lengths_in, starts_of
from .registry import own_from
from .tensors import DTYPES, flagged

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
    with misfits_told(), without_collecting():
        skeleton = tags.read_skeleton(view, header)
        lengths = lengths_in(skeleton)
        regions = InMemory(numpy.frombuffer(view, dtype=numpy.uint8), lengths, starts_of(lengths, header))
        return build(skeleton, regions)


def build(skeleton: dict[str, Any], regions: Regions) -> Decoded:
    """Both values of a skeleton, over regions whose bytes are there."""
    with misfits_told(), without_collecting():
        builder = Builder(skeleton, regions)
        return Decoded(builder.root(skeleton["state"], "state"), builder.root(skeleton["extra"], "extra"))


@contextmanager
def misfits_told() -> Iterator[None]:
    """What Python and torch say of pieces that do not fit together becomes one `NotAState`."""
    try:
        yield
    except NotAState:
        raise
    except MISFITS as problem:
        raise tags.not_readable(problem) from problem


class Builder:
    """Builds values from nodes over the regions of one payload."""

    def __init__(self, skeleton: dict[str, Any], regions: Regions) -> None:
        self._regions = regions
        self._lengths = lengths_in(skeleton)
        self._kinds = skeleton["kinds"]
        self._kind_of, self._region_of = skeleton["tensors"]
        self._tensors = ordinary_tensors(skeleton, self._lengths, regions)
        self._storages: dict[int, torch.Tensor] = {}
        self._shared: dict[int, Any] = {}

    def root(self, node: Node, name: str) -> Any:
        """The value of a root node; what is wrong with it is told with its key path."""
        try:
            return self.value(node)
        except NotAState as problem:
            if not problem.path:
                raise
            raise type(problem)(f"{name}{problem.path}: {problem}") from problem

    def value(self, node: Node) -> Any:
        """The value of one node."""
        kind = type(node)
        if kind is list:
            build_value = BY_TAG.get(node[0])
            if build_value is None:
                raise NotAState(f"not a readable state: no kind of value is called {node[0]!r:.40}")
            return build_value(self, node[1:])
        return self._text_dict(node) if kind is dict else node

    def _text_dict(self, node: dict[str, Node]) -> dict[str, Any]:
        result = {}
        for key, item in node.items():
            try:
                result[key] = self.value(item)
            except NotAState as problem:
                problem.path = f"[{key!r}]{problem.path}"
                raise
        return result

    def _items(self, nodes: list[Node]) -> list[Any]:
        result: list[Any] = []
        try:
            for node in nodes:
                result.append(self.value(node))
        except NotAState as problem:
            problem.path = f"[{len(result)}]{problem.path}"
            raise
        return result

    def _run(self, rest: list[Node]) -> dict[str, torch.Tensor]:
        """A dict of text to tensors that are numbered from `first` on."""
        first, *keys = rest
        found = self._tensors[count(first) : first + len(keys)]
        if any(tensor is None for tensor in found):
            found = [self._tensor(number) for number in range(first, first + len(keys))]
        made = dict(zip(keys, found, strict=True))
        if len(made) != len(keys) or set(map(type, keys)) - {str}:
            raise NotAState("not a readable state: a dict has the same key twice, or one that is not text")
        return made  # type: ignore[return-value]

    def _fill(self, mapping: dict[Any, Any], rest: list[Node]) -> Any:
        if len(rest) == 1 and rest[0][0] == tags.TENSORS:
            mapping.update(self._run(rest[0][1:]))
            return mapping
        for key, item in zip(rest[::2], rest[1::2], strict=True):
            made = self.value(key)
            try:
                mapping[made] = self.value(item)
            except NotAState as problem:
                problem.path = f"[{made!r:.60}]{problem.path}"
                raise
        if 2 * len(mapping) != len(rest):
            raise NotAState("not a readable state: a dict has the same key twice")
        return mapping

    def _module_dict(self, rest: list[Node]) -> OrderedDict[Any, Any]:
        metadata = self.value(rest[0])
        mapping: OrderedDict[Any, Any] = self._fill(OrderedDict(), rest[1:])
        mapping._metadata = metadata  # type: ignore[attr-defined]
        return mapping

    def _first(self, rest: list[Node]) -> Any:
        """A value that is reached again, which is possible only once it is whole: no cycle can be made."""
        number, node = rest
        made = self.value(node)
        if self._shared.setdefault(count(number), made) is not made:
            raise NotAState(f"not a readable state: two values are number {number} of those reached again")
        return made

    def _again(self, rest: list[Node]) -> Any:
        if count(rest[0]) not in self._shared:
            raise NotAState(f"not a readable state: value {rest[0]} is reached again before it is there")
        return self._shared[rest[0]]

    def _layout(self, tag: str, rest: list[Node]) -> torch.Tensor:
        facts, *nodes = rest
        return put_together(tag, facts, [self.value(node) for node in nodes])

    def _known(self, index: Any) -> int:
        if count(index) >= len(self._lengths):
            raise NotAState(f"not a whole state: region {index} of {len(self._lengths)}")
        return int(index)

    def _region(self, index: Any) -> numpy.ndarray:
        return self._regions.view(self._known(index))

    def _array(self, rest: list[Node]) -> numpy.ndarray:
        name, shape, order, region = rest
        dtype = array_type(name)
        shape = tuple(count(length) for length in shape)
        length = self._lengths[self._known(region)]
        if math.prod(shape) * dtype.itemsize != length:
            raise NotAState(f"not a whole state: an array of {shape} needs other than {length} bytes")
        memory = self._regions.owned(region) if length else None  # without one, text of length 0 is kept
        array: numpy.ndarray = numpy.ndarray(shape[::-1] if order == "F" else shape, dtype, buffer=memory)
        return array.T if order == "F" else array

    def _scalar(self, rest: list[Node]) -> Any:
        dtype, data = array_type(rest[0]), bytes.fromhex(rest[1])
        if len(data) != dtype.itemsize:
            raise NotAState(f"not a whole state: a scalar of {dtype} from {len(data)} bytes")
        return numpy.frombuffer(bytearray(data), dtype)[0] if data else numpy.zeros((), dtype)[()]

    def _storage(self, index: int) -> torch.Tensor:
        """The region's bytes in memory for tensors, made once for all that share it."""
        storage = self._storages.get(index)
        if storage is None:
            storage = self._storages[index] = self._regions.storage(self._known(index))
        return storage

    def _tensor(self, number: Any) -> torch.Tensor:
        tensor = self._tensors[count(number)]
        if tensor is None:
            kind, region = self._kinds[count(self._kind_of[number])], self._region_of[number]
            tensor = self._tensors[number] = self._build_tensor(*kind, self._known(region))
        return tensor

    def _build_tensor(
        self, name: Any, shape: list[int], offset: int, strides: list[int] | None, flags: int, region: int
    ) -> torch.Tensor:
        """A tensor over its region's storage, after its reach was held against the region's length."""
        dtype = known_dtype(name)
        for length in shape:
            count(length)
        strides = contiguous_strides(shape) if strides is None else [count(stride) for stride in strides]
        elements = count(offset) + 1
        for length, stride in zip(shape, strides, strict=True):
            elements += (length - 1) * stride
        elements = 0 if 0 in shape else elements
        if elements * dtype.itemsize > self._lengths[region]:
            raise NotAState(f"not a whole state: a tensor of {shape} reaches outside its {self._lengths[region]} bytes")
        tensor = torch.empty(0, dtype=dtype, device="cpu")
        tensor.set_(self._storage(region).untyped_storage(), offset if elements else 0, shape, strides)
        return flagged(tensor, count(flags)) if flags else tensor


BY_TAG: dict[str, Callable[[Builder, list[Node]], Any]] = {
    tags.LIST: Builder._items,
    tags.TUPLE: lambda builder, rest: tuple(builder._items(rest)),
    tags.DICT: lambda builder, rest: builder._fill({}, rest),
    tags.ORDERED_DICT: lambda builder, rest: builder._fill(OrderedDict(), rest),
    tags.COUNTER: lambda builder, rest: builder._fill(Counter(), rest),
    tags.DEFAULT_DICT: lambda builder, rest: builder._fill(defaultdict(known_factory(rest[0])), rest[1:]),
    tags.MODULE_DICT: Builder._module_dict,
    tags.DEQUE: lambda builder, rest: deque(builder._items(rest[1:]), None if rest[0] is None else count(rest[0])),
    tags.SET: lambda builder, rest: set(builder._items(rest)),
    tags.FROZEN_SET: lambda builder, rest: frozenset(builder._items(rest)),
    tags.SIZE: lambda builder, rest: torch.Size([count(node) for node in rest]),
    tags.INT: lambda builder, rest: int(rest[0], 16),
    tags.FLOAT: lambda builder, rest: struct.unpack(">d", bytes.fromhex(rest[0]))[0],
    tags.COMPLEX: lambda builder, rest: complex(*struct.unpack(">dd", bytes.fromhex(rest[0]))),
    tags.TEXT: lambda builder, rest: bytes.fromhex(rest[0]).decode("utf-8", "surrogatepass"),
    tags.BYTES: lambda builder, rest: builder._region(rest[0]).tobytes(),
    tags.BYTE_ARRAY: lambda builder, rest: bytearray(builder._region(rest[0]).tobytes()),
    tags.TENSOR: lambda builder, rest: builder._tensor(rest[0]),
    tags.TENSORS: Builder._run,
    tags.ARRAY: Builder._array,
    tags.SCALAR: Builder._scalar,
    tags.DTYPE: lambda builder, rest: known_dtype(rest[0]),
    tags.DEVICE: lambda builder, rest: torch.device(rest[0]),
    tags.ARRAY_TYPE: lambda builder, rest: array_type(rest[0]),
    tags.KIND: lambda builder, rest: kind_from(rest[0], builder.value(rest[1])),
    tags.OWN: lambda builder, rest: own_from(rest[0], rest[1], builder.value),
    tags.SHARED: Builder._first,
    tags.AGAIN: Builder._again,
    tags.SPARSE: lambda builder, rest: builder._layout(tags.SPARSE, rest),
    tags.QUANTISED: lambda builder, rest: builder._layout(tags.QUANTISED, rest),
    tags.JAGGED: lambda builder, rest: builder._layout(tags.JAGGED, rest),
}
"""How each node is built. One table for all builders: one that held it would be a cycle, and outlive its use."""


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


def known_factory(name: Any) -> Any:
    """What a defaultdict makes its missing values with, from the fixed table."""
    if name is not None and name not in FACTORIES:
        raise NotAState(f"not readable here: no default of a dict is called {name!r:.40}")
    return None if name is None else FACTORIES[name]
