"""From nested values to buffers: walks the state once, refuses what is not data, copies nothing large.

`encode(state)` either raises `NotPlainData`, naming every key path it could not write, or returns an `Encoded` whose
`buffers()` give the payload in order. Large tensors and arrays are views of their own memory; small ones, and the
padding, are gathered into blocks, so that a hundred thousand tiny tensors do not make a hundred thousand buffers.

Types are matched exactly: a subclass may carry more than its base, so it is refused rather than narrowed. The same list
or dict reached twice is written twice; tensors keep their sharing (`tensors.py`).
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from . import skeleton as tags
from .capture import SMALL_BYTES
from .errors import NotPlainData
from .hints import hint_for
from .tensors import Refused, TensorTable

GATHER_BELOW_BYTES = SMALL_BYTES
"""Regions smaller than this are copied into blocks; larger ones are buffers of their own."""

BLOCK_BYTES = 1024 * 1024
LISTED_PROBLEMS = 4
ARRAY_KINDS = "biufcSUMm"

Node = Any
Reader = Callable[[], Any]


@dataclass(frozen=True)
class Encoded:
    """A state ready to be written. Holds references to the live tensors: read `buffers()` before they change."""

    head: bytes
    lengths: tuple[int, ...]
    readers: tuple[Reader, ...]
    total_bytes: int
    on_host: bool

    def buffers(self) -> Iterator[Any]:
        """The payload's buffers in order, each as long as it was promised to be."""
        block = bytearray(self.head)
        written = 0
        for length, read in zip(self.lengths, self.readers, strict=True):
            region = read()
            assert len(region) == length, "F1 whole"
            if length < GATHER_BELOW_BYTES:
                block += memoryview(region)
                block += bytes(-length % tags.ALIGNMENT)
                if len(block) < BLOCK_BYTES:
                    continue
                region = b""
                length = 0
            if block:
                written += len(block)
                yield block
                block = bytearray()
            if length:
                written += length
                yield region
                block += bytes(-length % tags.ALIGNMENT)
        if block:
            written += len(block)
            yield block
        assert written == self.total_bytes, "F1 whole"

    def to_bytes(self) -> bytes:
        """The payload in one piece; for tests and small states."""
        return b"".join(bytes(memoryview(buffer)) for buffer in self.buffers())


def encode(state: Any, *, extra: Any = None, name: str = "state") -> Encoded:
    """Encode nested plain values. `extra` travels beside the state, for whoever keeps more than the user's own."""
    walk = _Walk()
    state_node = walk.root(state, name)
    extra_node = walk.root(extra, "extra")
    walk.raise_problems()
    rows = walk.tensors.lay_out(walk.add_region)
    skeleton = {"state": state_node, "extra": extra_node, "tensors": rows, "regions": walk.lengths}
    text = json.dumps(skeleton, ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))
    data = text.encode("ascii")
    header = tags.Header(len(data), sum(map(tags.aligned, walk.lengths)))
    head = header.pack() + data + bytes(-len(data) % tags.ALIGNMENT)
    return Encoded(head, tuple(walk.lengths), tuple(walk.readers), header.total_bytes, walk.tensors.on_host)


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


class _Walk:
    """One pass over a state: builds nodes, collects tensors and byte regions, and notes every problem by its path."""

    def __init__(self) -> None:
        self.tensors = TensorTable()
        self.lengths: list[int] = []
        self.readers: list[Reader] = []
        self.problems: list[str] = []
        self._path: list[str] = []
        self._open: set[int] = set()
        self._by_type: dict[type, Callable[[Any], Node]] = {
            type(None): lambda value: value,
            bool: lambda value: value,
            int: self._int,
            float: plain_float,
            str: plain_text,
            dict: self._dict,
            list: self._list,
            tuple: self._tuple,
            OrderedDict: self._ordered_dict,
            Counter: lambda value: self._pairs(tags.COUNTER, value),
            set: lambda value: self._members(tags.SET, value),
            frozenset: lambda value: self._members(tags.FROZEN_SET, value),
            complex: lambda value: [tags.COMPLEX, struct.pack(">dd", value.real, value.imag).hex()],
            bytes: lambda value: [tags.BYTES, self.add_region(len(value), lambda: value)],
            bytearray: lambda value: [tags.BYTE_ARRAY, self.add_region(len(value), lambda: value)],
            torch.Size: lambda value: [tags.SIZE, *value],
            torch.dtype: lambda value: [tags.DTYPE, str(value).removeprefix("torch.")],
            torch.device: lambda value: [tags.DEVICE, str(value)],
            torch.Tensor: self._tensor,
            torch.nn.Parameter: self._tensor,
            numpy.ndarray: self._array,
        }

    def root(self, value: Any, name: str) -> Node:
        """Encode one root value."""
        self._path = [name]
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
        self.problems.append(f"{''.join(self._path)}: {reason}")
        return None

    def _node(self, value: Any) -> Node:
        encode_value = self._by_type.get(type(value))
        if encode_value is not None:
            return encode_value(value)
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, numpy.generic) and value.dtype.kind in ARRAY_KINDS:
            return [tags.SCALAR, value.dtype.str, value.tobytes()[: value.dtype.itemsize].hex()]
        return self._refuse(hint_for(value))

    def _child(self, value: Any, step: str) -> Node:
        self._path.append(step)
        node = self._node(value)
        self._path.pop()
        return node

    def _enter(self, container: Any) -> bool:
        if id(container) in self._open:
            self._refuse(f"this {type(container).__name__} contains itself; break the cycle before saving")
            return False
        if len(self._path) > tags.DEPTH_LIMIT:
            self._path, kept = [*self._path[:4], "..."], self._path
            self._refuse(f"nested deeper than {tags.DEPTH_LIMIT} levels; flatten it before saving")
            self._path = kept
            return False
        self._open.add(id(container))
        return True

    def _int(self, value: int) -> Node:
        return value if value.bit_length() <= 64 else [tags.INT, hex(value)]

    def _list(self, value: Any, tag: str = tags.LIST) -> Node:
        if not self._enter(value):
            return None
        nodes = [tag]
        for position, item in enumerate(value):
            nodes.append(self._child(item, f"[{position}]"))
        self._open.discard(id(value))
        return nodes

    def _tuple(self, value: Any) -> Node:
        return self._list(value, tags.TUPLE)

    def _members(self, tag: str, value: Any) -> Node:
        """A set, in an order that depends on its members only."""
        if not self._enter(value):
            return None
        nodes = [self._child(item, "{...}") for item in value]
        self._open.discard(id(value))
        return [tag, *sorted(nodes, key=repr)]

    def _dict(self, value: dict[Any, Any]) -> Node:
        if not all(type(key) is str and plain_text(key) is key for key in value):
            return self._pairs(tags.DICT, value)
        if not self._enter(value):
            return None
        node = {key: self._child(item, f"[{key!r}]") for key, item in value.items()}
        self._open.discard(id(value))
        return node

    def _ordered_dict(self, value: OrderedDict[Any, Any]) -> Node:
        """An OrderedDict, with the version metadata that torch hangs on a module's state."""
        attributes = dict(vars(value))
        if not attributes:
            return self._pairs(tags.ORDERED_DICT, value)
        if set(attributes) != {"_metadata"}:
            return self._refuse("this OrderedDict has attributes besides its items; pass dict(...) of it")
        metadata = self._child(attributes["_metadata"], "._metadata")
        node = self._pairs(tags.MODULE_DICT, value)
        return None if node is None else [node[0], metadata, *node[1:]]

    def _pairs(self, tag: str, value: dict[Any, Any]) -> Node:
        if not self._enter(value):
            return None
        nodes: list[Node] = [tag]
        for key, item in value.items():
            step = f"[{key!r}]" if isinstance(key, (str, int)) else f"[{type(key).__name__} key]"
            self._path.append(step)
            nodes.append(self._key(key))
            nodes.append(self._node(item))
            self._path.pop()
        self._open.discard(id(value))
        return nodes

    def _key(self, key: Any) -> Node:
        if isinstance(key, torch.Tensor):
            return self._refuse("a tensor as a key is found by identity only; use its name or number")
        return self._node(key)

    def _tensor(self, value: torch.Tensor) -> Node:
        try:
            return [tags.TENSOR, self.tensors.add(value)]
        except Refused as problem:
            return self._refuse(str(problem))

    def _array(self, value: numpy.ndarray) -> Node:
        """A numpy array: row-major or column-major as it is, anything else as row-major values."""
        if value.dtype.kind not in ARRAY_KINDS or value.dtype.names is not None:
            return self._refuse(f"a numpy array of {value.dtype} is not plain data; split it into arrays of numbers")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        row_major = value.T if order == "F" else value
        region = self.add_region(value.nbytes, lambda: _array_bytes(row_major))
        return [tags.ARRAY, value.dtype.str, list(value.shape), order, region]


def _array_bytes(array: numpy.ndarray) -> Any:
    """The bytes of an array in row-major order; a view when it is contiguous."""
    if not array.nbytes:
        return b""
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
