"""One pass over a state: builds the skeleton's nodes, collects tensors and byte regions, refuses what is not data.

Types are matched exactly: a subclass may carry more than its base, so it is refused rather than narrowed. A refusal costs
nothing but its line: the walk goes on, so that one error names every key path at once, and never runs the value's own code.
Tensors keep their sharing (`tensors.py`), what can be changed in place its identity (`reached.py`).
"""

from __future__ import annotations

import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch

from . import skeleton as tags
from .array_types import described
from .errors import NotPlainData
from .gather import Reader
from .hints import hint_for
from .key_path import Step, told
from .kinds import BY_TYPE as KINDS_BY_TYPE
from .kinds import FACTORIES, Kind
from .layouts import parts_of
from .met import Met, is_strided
from .reached import Reached, once
from .registry import BY_TYPE as OWN_BY_TYPE
from .registry import own_node
from .tensors import Refused

LISTED_PROBLEMS = 4
ONLY_TENSORS = {torch.Tensor}

Node = Any


def plain_float(value: float) -> Node:
    """A float that reads back to the same bits: finite ones by their shortest digits, the others by their bytes."""
    return value if math.isfinite(value) else [tags.FLOAT, struct.pack(">d", value).hex()]


def plain_text(text: str) -> Node:
    """Text as it is, unless it holds lone surrogates, which a JSON reader would join."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return [tags.TEXT, text.encode("utf-8", "surrogatepass").hex()]
    return text


def all_plain_text(keys: Iterable[Any]) -> bool:
    """Whether all keys are text that is written as it is. Asked of very many at once."""
    if not set(map(type, keys)) <= {str}:
        return False
    return all(map(str.isascii, keys)) or all(plain_text(key) is key for key in keys)


class Walk:
    """What one state is made of, and every problem in it by its path."""

    def __init__(self, *, asks: bool, after: Walk | None = None) -> None:
        """With `asks` each tensor is looked at as it is met; without, they are only collected (`met.py`). A walk `after`
        another knows from it which values are reached again (`reached.py`)."""
        self.met = Met(asks=asks)
        self.reached = Reached(after.reached if after is not None else None)
        self.lengths: list[int] = []
        self.readers: list[Reader] = []
        self.problems: list[str] = []
        self._path: list[Any] = []  # keys and positions as they are; told only when something is refused

    def root(self, value: Any, name: str) -> Node:
        """Encode one root value."""
        self._path = [Step(name)]
        return self._node(value)

    def add_region(self, length: int, read: Reader) -> int:
        """Take a run of bytes in and return its index."""
        self.lengths.append(length)
        self.readers.append(read)
        return len(self.lengths) - 1

    def raise_problems(self) -> None:
        """Raise one `NotPlainData` for everything that was refused."""
        if not self.problems:
            return
        more = len(self.problems) - LISTED_PROBLEMS
        tail = f"; and {more} more" if more > 0 else ""
        raise NotPlainData("; ".join(self.problems[:LISTED_PROBLEMS]) + tail)

    def _refuse(self, reason: str) -> Node:
        self.problems.append(f"{told(self._path)}: {reason}")
        return None

    def _node(self, value: Any) -> Node:
        kind = type(value)
        encode_value = BY_TYPE.get(kind)
        if encode_value is not None:
            return encode_value(self, value)
        if kind in OWN_BY_TYPE:
            return own_once(self, value)
        small = KINDS_BY_TYPE.get(kind)
        if small is not None:
            return self._small(small, value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, numpy.generic):
            return self._scalar(value)
        if isinstance(value, numpy.dtype):
            return self._described(value, lambda dtype: [tags.ARRAY_TYPE, dtype])
        return self._refuse(hint_for(value))

    def _child(self, value: Any, step: Any) -> Node:
        self._path.append(step)
        node = self._node(value)
        self._path.pop()
        return node

    def _enter(self, container: Any) -> bool:
        if id(container) in self.reached.open:
            self._refuse(f"this {type(container).__name__} contains itself; break the cycle before saving")
            return False
        if len(self._path) > tags.DEPTH_LIMIT:
            self._path, kept = [*self._path[:4], Step("...")], self._path
            self._refuse(f"nested deeper than {tags.DEPTH_LIMIT} levels; flatten it before saving")
            self._path = kept
            return False
        self.reached.open.add(id(container))
        return True

    def _items(self, nodes: list[Node], value: Any) -> Node:
        if not self._enter(value):
            return None
        for position, item in enumerate(value):
            nodes.append(self._child(item, position))
        self.reached.open.discard(id(value))
        return nodes

    def _members(self, tag: str, value: Any) -> Node:
        """A set, in an order that depends on its members only."""
        if not self._enter(value):
            return None
        self.reached.open_sets += 1
        nodes = [self._child(item, Step("{...}")) for item in value]
        self.reached.open_sets -= 1
        self.reached.open.discard(id(value))
        return [tag, *sorted(nodes, key=repr)]

    def _dict(self, value: dict[Any, Any]) -> Node:
        if not all_plain_text(value):
            return self._pairs([tags.DICT], value)
        run = self._run(value)
        if run is not None:
            return run
        if not self._enter(value):
            return None
        node = {key: self._child(item, key) for key, item in value.items()}
        self.reached.open.discard(id(value))
        return node

    def _run(self, value: dict[str, Any]) -> Node:
        """A dict of text to plain tensors, none of which was met before, as one node; None for any other."""
        if len(value) < 2 or set(map(type, value.values())) != ONLY_TENSORS:
            return None
        first = self.met.run(value.values())
        return None if first is None else [tags.TENSORS, first, *value]

    def _ordered_dict(self, value: OrderedDict[Any, Any]) -> Node:
        """An OrderedDict, with the version metadata that torch hangs on a module's state."""
        attributes = dict(vars(value))
        if not attributes:
            return self._pairs([tags.ORDERED_DICT], value)
        if set(attributes) != {"_metadata"}:
            return self._refuse("this OrderedDict has attributes besides its items; pass dict(...) of it")
        metadata = self._child(attributes["_metadata"], Step("._metadata"))
        return self._pairs([tags.MODULE_DICT, metadata], value)

    def _default_dict(self, value: defaultdict[Any, Any]) -> Node:
        factory = value.default_factory
        name = None if factory is None else getattr(factory, "__name__", "")
        if factory is not None and FACTORIES.get(name) is not factory:
            known = ", ".join(FACTORIES)
            return self._refuse(f"this defaultdict makes values with code; save dict(...) of it, or use one of {known}")
        return self._pairs([tags.DEFAULT_DICT, name], value)

    def _pairs(self, nodes: list[Node], value: dict[Any, Any]) -> Node:
        run = self._run(value) if all_plain_text(value) else None
        if run is not None:
            return [*nodes, run]
        if not self._enter(value):
            return None
        path, node_of = self._path, self._node
        for key, item in value.items():
            path.append(key)
            nodes += self._key(key), node_of(item)
            path.pop()
        self.reached.open.discard(id(value))
        return nodes

    def _key(self, key: Any) -> Node:
        if isinstance(key, torch.Tensor):
            return self._refuse("a tensor as a key is found by identity only; use its name or number")
        return self._node(key)

    def _small(self, kind: Kind, value: Any) -> Node:
        try:
            parts = kind.take_apart(value)
        except (ValueError, TypeError) as problem:
            return self._refuse(f"{type(value).__name__} is not plain data: {problem}")
        return [tags.KIND, kind.name, self._node(parts)]

    def _own(self, value: Any) -> Node:
        """A value of a registered type: its fields, or what its encoder makes of it."""
        own = OWN_BY_TYPE[type(value)]
        if not self._enter(value):
            return None
        try:
            parts = own.take_apart(value)
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}" if own.fields is None else str(problem)
            return self._refuse(f"{own.name} cannot be taken apart: {reason}".replace("\n", " "))
        if own.fields is None:
            node = own_node(own, self._node(parts))
        else:
            node = own_node(own, {name: self._child(part, Step(f".{name}")) for name, part in parts.items()})
        self.reached.open.discard(id(value))
        return node

    def _tensor(self, value: torch.Tensor) -> Node:
        try:
            parts = parts_of(value) if self.met.asks and not is_strided(value) else None
            if parts is None:
                return [tags.TENSOR, self.met.number(value)]
            return [parts.tag, parts.facts, *([tags.TENSOR, self.met.number(each)] for each in parts.tensors)]
        except Refused as problem:
            return self._refuse(str(problem))

    def _described(self, dtype: numpy.dtype[Any], node_of: Callable[[Any], Node]) -> Node:
        description = described(dtype)
        if description is None:
            return self._refuse(f"numpy's {dtype} is not plain data; use arrays of numbers, text or structures of them")
        return node_of(description)

    def _scalar(self, value: numpy.generic) -> Node:
        if isinstance(value, (str, bytes)) and value[-1:] in ("\0", b"\0"):
            return self._refuse(f"numpy drops the zeros that this {type(value).__name__} ends in; pass str or bytes")
        size = value.dtype.itemsize
        return self._described(value.dtype, lambda dtype: [tags.SCALAR, dtype, value.tobytes()[:size].hex()])

    def _array(self, value: numpy.ndarray) -> Node:
        """A numpy array: row-major or column-major as it is, anything else as row-major values."""
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        row_major = value.T if order == "F" else value

        def node_of(dtype: Any) -> Node:
            region = self.add_region(value.nbytes, lambda: _array_bytes(row_major))
            return [tags.ARRAY, dtype, list(value.shape), order, region]

        return self._described(value.dtype, node_of)


own_once = once(Walk._own)

BY_TYPE: dict[type, Callable[[Walk, Any], Node]] = {
    type(None): lambda walk, value: value,
    bool: lambda walk, value: value,
    int: lambda walk, value: value if value.bit_length() <= 64 else [tags.INT, hex(value)],
    float: lambda walk, value: plain_float(value),
    str: lambda walk, value: plain_text(value),
    dict: once(Walk._dict),
    list: once(lambda walk, value: walk._items([tags.LIST], value)),
    tuple: lambda walk, value: walk._items([tags.TUPLE], value),
    OrderedDict: once(Walk._ordered_dict),
    Counter: once(lambda walk, value: walk._pairs([tags.COUNTER], value)),
    defaultdict: once(Walk._default_dict),
    deque: once(lambda walk, value: walk._items([tags.DEQUE, value.maxlen], value)),
    set: once(lambda walk, value: walk._members(tags.SET, value)),
    frozenset: lambda walk, value: walk._members(tags.FROZEN_SET, value),
    complex: lambda walk, value: [tags.COMPLEX, struct.pack(">dd", value.real, value.imag).hex()],
    bytes: lambda walk, value: [tags.BYTES, walk.add_region(len(value), lambda: value)],
    bytearray: once(lambda walk, value: [tags.BYTE_ARRAY, walk.add_region(len(value), lambda: value)]),
    torch.Size: lambda walk, value: [tags.SIZE, *value],
    torch.dtype: lambda walk, value: [tags.DTYPE, str(value).removeprefix("torch.")],
    torch.device: lambda walk, value: [tags.DEVICE, str(value)],
    torch.Tensor: Walk._tensor,
    torch.nn.Parameter: Walk._tensor,
    numpy.ndarray: once(Walk._array),
}
"""How each exact type is written. One table for all walks: a walk that held it would be a cycle, and outlive its use."""


def _array_bytes(array: numpy.ndarray) -> Any:
    """The bytes of an array in row-major order; a view when it is contiguous."""
    if not array.nbytes:
        return b""
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
