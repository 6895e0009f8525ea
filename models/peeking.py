"""What a checkpoint holds, without reading it: keys, types, shapes, step, bytes, age.

Only the skeleton is read (and verified), which lies in front of all values; for a store torch is not even loaded. The
table that `lastgood inspect` prints is made here.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lastgood.core import Damaged, NoStore, NothingUsable, Record, Store, StoreError

from . import skeleton as tags

KINDS = {
    tags.LIST: "list", tags.TUPLE: "tuple", tags.DICT: "dict", tags.ORDERED_DICT: "OrderedDict", tags.SET: "set",
    tags.MODULE_DICT: "OrderedDict", tags.COUNTER: "Counter", tags.FROZEN_SET: "frozenset", tags.INT: "int",
    tags.FLOAT: "float", tags.COMPLEX: "complex", tags.TEXT: "str", tags.SIZE: "torch.Size",
    tags.DTYPE: "torch.dtype", tags.DEVICE: "torch.device", tags.DEQUE: "deque", tags.DEFAULT_DICT: "defaultdict",
    tags.ARRAY_TYPE: "numpy.dtype",
}  # fmt: skip
MAPPINGS = {tags.DICT: 1, tags.ORDERED_DICT: 1, tags.COUNTER: 1, tags.MODULE_DICT: 2, tags.DEFAULT_DICT: 2}
SEQUENCES = {tags.LIST: 1, tags.TUPLE: 1, tags.DEQUE: 2}


@dataclass(frozen=True)
class Leaf:
    """One value of a state: where it is, what it is, and its bytes (of the values; shared ones count everywhere)."""

    key: str
    kind: str
    dtype: str | None
    shape: tuple[int, ...] | None
    bytes: int


@dataclass(frozen=True)
class Peek:
    """A checkpoint from outside. `payload_bytes` is what it takes, sharing counted once."""

    path: str
    step: int
    saved_at: float
    payload_bytes: int
    skeleton_bytes: int
    leaves: tuple[Leaf, ...]

    @property
    def age_seconds(self) -> float:
        """How long ago it was saved."""
        return max(0.0, time.time() - self.saved_at)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key path of every value."""
        return tuple(leaf.key for leaf in self.leaves)


def peek(path: str | os.PathLike[str], step: int | None = None) -> Peek:
    """Look into the newest checkpoint of a store (or that of `step`), or into a file that was exported or pinned.

    Raises NoStore, NothingUsable, NotAState, FormatTooNew or OSError, as `load` does.
    """
    if isinstance(path, str | os.PathLike) and os.path.isfile(path):
        return peek_file(os.fspath(path))
    with Store.open(path, read_only=True) as store:
        return peek_store(store, step)


def peek_store(store: Store, step: int | None = None) -> Peek:
    """Look into a checkpoint of an open store; a damaged one is passed over for the next older one."""
    records = store.records()
    fitting = [record for record in records if step is None or record.step == step]
    reasons: list[str] = []
    for record in fitting:
        try:
            return peek_record(store, record)
        except (Damaged, OSError) as problem:
            reasons.append(str(problem))
        except StoreError as problem:
            raise type(problem)(f"step {record.step} of {store.path}: {problem}") from problem
    if reasons:
        raise NothingUsable(f"{store.path}: {reasons[0]}")
    if step is not None and records:
        raise NoStore(f"no checkpoint of step {step} in {store.path}: it holds {sorted({r.step for r in records})}")
    if store.marked:
        raise NothingUsable(f"checkpoints were acknowledged in {store.path} and none is usable now")
    raise NoStore(f"nothing was ever saved into the store at {store.path}")


def peek_record(store: Store, record: Record) -> Peek:
    """Look into one checkpoint."""
    header, front = tags.read_front(store.chunks(record), record.payload_bytes)
    leaves = leaves_in(header, front)
    return Peek(store.path, record.step, record.saved_at, record.payload_bytes, header.skeleton_bytes, leaves)


def peek_file(path: str) -> Peek:
    """Look into a file of any of the forms; its tensors are mapped, not read."""
    from .encode import encode  # these need torch, as such files do
    from .exports import read_file

    found = read_file(path, lazy=True)
    encoded = encode(found.decoded.state)
    header = tags.read_header(memoryview(encoded.head), encoded.total_bytes)
    leaves = leaves_in(header, encoded.head)
    return Peek(path, found.step, found.saved_at_ns / 1e9, encoded.total_bytes, header.skeleton_bytes, leaves)


def leaves_in(header: tags.Header, front: Any) -> tuple[Leaf, ...]:
    """The leaves of a skeleton."""
    skeleton = tags.read_skeleton(front, header)
    try:
        return tuple(_leaves(skeleton["state"], "state", skeleton | {"paths": {}}))
    except (KeyError, IndexError, TypeError, ValueError, RecursionError) as problem:
        raise tags.not_readable(problem) from problem


def _leaves(node: Any, path: str, skeleton: dict[str, Any]) -> Iterator[Leaf]:
    if type(node) is dict:
        for key, item in node.items():
            yield from _leaves(item, f"{path}[{key!r}]", skeleton)
    elif type(node) is not list:
        yield Leaf(path, type(node).__name__, None, None, 0)
    elif node[0] == tags.TENSORS:
        for position, key in enumerate(node[2:]):
            yield _leaf([tags.TENSOR, node[1] + position], f"{path}[{key!r}]", skeleton)
    elif node[0] in MAPPINGS:
        pairs = node[MAPPINGS[node[0]] :]
        if len(pairs) == 1:
            yield from _leaves(pairs[0], path, skeleton)
            return
        for key, item in zip(pairs[::2], pairs[1::2], strict=True):
            shown = repr(key) if type(key) is not list else f"{KINDS.get(key[0], key[0])} key"
            yield from _leaves(item, f"{path}[{shown}]", skeleton)
    elif node[0] in SEQUENCES:
        for position, item in enumerate(node[SEQUENCES[node[0]] :]):
            yield from _leaves(item, f"{path}[{position}]", skeleton)
    elif node[0] == tags.SHARED:
        skeleton["paths"][node[1]] = path
        yield from _leaves(node[2], path, skeleton)
    elif node[0] == tags.AGAIN:
        yield Leaf(path, f"the same as {skeleton['paths'][node[1]]}", None, None, 0)
    elif node[0] == tags.OWN and type(node[2]) is dict:
        for field, item in node[2].items():
            yield from _leaves(item, f"{path}.{field}", skeleton)
    else:
        yield _leaf(node, path, skeleton)


def _leaf(node: list[Any], path: str, skeleton: dict[str, Any]) -> Leaf:
    tag = node[0]
    if tag == tags.TENSOR:
        dtype, shape, _, _, flags = _tensor_kind(node, skeleton)
        kind = "Parameter" if flags & tags.PARAMETER else "Tensor"
        return Leaf(path, kind, dtype, tuple(shape), math.prod(shape) * item_bytes(dtype))
    if tag in tags.WITH_FACTS:
        rows = [_tensor_kind(each, skeleton) for each in node[2:]]
        held = sum(math.prod(row[1]) * item_bytes(row[0]) for row in rows)
        shape = tuple(node[1][1]) if tag == tags.SPARSE else tuple(rows[0][1])
        dtype = node[1][0] if tag == tags.QUANTISED else rows[-1 if tag == tags.SPARSE else 0][0]
        return Leaf(path, "Tensor, " + (node[1][0] if tag == tags.SPARSE else tag), dtype, shape, held)
    if tag == tags.ARRAY:
        dtype = node[1] if isinstance(node[1], str) else "structure"
        return Leaf(path, "ndarray", dtype, tuple(node[2]), skeleton["regions"][node[4]])
    if tag in (tags.BYTES, tags.BYTE_ARRAY):
        kind = "bytes" if tag == tags.BYTES else "bytearray"
        return Leaf(path, kind, None, None, skeleton["regions"][node[1]])
    if tag == tags.SCALAR:
        return Leaf(path, "numpy scalar", node[1] if isinstance(node[1], str) else "structure", (), len(node[2]) // 2)
    return Leaf(path, node[1] if tag in (tags.KIND, tags.OWN) else KINDS.get(tag, str(tag)), None, None, 0)


def _tensor_kind(node: list[Any], skeleton: dict[str, Any]) -> list[Any]:
    kind: list[Any] = skeleton["kinds"][skeleton["tensors"][0][node[1]]]
    return kind


def item_bytes(dtype: str) -> int:
    """Bytes of one element of a torch type, from its name; below a byte it is stored in one."""
    if dtype == "bool":
        return 1
    digits = re.search(r"\d+", dtype)
    return max(1, int(digits.group()) // 8) if digits else 1


def table(peeked: Peek, rows: int | None = None) -> list[str]:
    """The lines of a table: tensors and arrays first come, plain values counted."""
    large = [leaf for leaf in peeked.leaves if leaf.shape is not None]
    shown = large if rows is None else large[:rows]
    width = max((len(leaf.key) for leaf in shown), default=0)
    types = max((len(leaf.dtype or "") for leaf in shown), default=0)
    shapes = {leaf.key: "x".join(map(str, leaf.shape or ())) or "-" for leaf in shown}
    across = max((len(shape) for shape in shapes.values()), default=0)
    lines = [
        f"{leaf.key:<{width}}  {leaf.dtype or '':<{types}}  {shapes[leaf.key]:>{across}}  {leaf.bytes:>15,}  {leaf.kind}"
        for leaf in shown
    ]
    if len(large) > len(shown):
        lines.append(f"… and {len(large) - len(shown)} more")
    plain = len(peeked.leaves) - len(large)
    total = sum(leaf.bytes for leaf in large)
    lines.append(f"{len(large)} tensors and arrays of {total:,} bytes, {plain} plain values")
    return lines
