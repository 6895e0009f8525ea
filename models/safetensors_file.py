"""States in the safetensors form: any reader of it finds the tensors by name, ours finds the whole state again.

    8 bytes: length of the header | header: JSON | the tensors' bytes, row-major, one after the other

Every tensor of the state is one entry under its key path, joined by dots: `model.0.weight`. Tensors that are one and the
same are one entry; the other names are in the metadata, as the form's own library does it. What else the state holds is
in the metadata under `lastgood`: nodes as in `skeleton.py`, which name entries. Kept: everything but the strides of
tensors, the sharing between views that only overlap, and the identity of lists and dicts that are reached twice. Written by
hand: the form is simpler than a dependency.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator
from typing import Any

import torch

from . import skeleton as tags
from .capture import host_bytes
from .decode import Decoded, build, misfits_told
from .errors import NotAState
from .regions import InMemory, Mapped, count
from .state_file import private_bytes
from .tensors import COMPUTED, DTYPES, INTEGER_OF_BYTES, NAMES, flags_of
from .walk import Walk
from .whole_file import writing

CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "complex64": "C64", "bool": "BOOL",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16",
    "uint8": "U8", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip
"""Element types that the form has; tensors of others are entries of plain bytes, whose type is in the metadata."""

NAMES_OF_CODES = {code: name for name, code in CODES.items()}
ARRAY_CODES = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
               "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "b1": "BOOL"}  # fmt: skip
OURS = "lastgood"
LONGEST_HEADER_BYTES = 100 * 2**20


class Entry:
    """One entry to be written."""

    def __init__(self, name: str, code: str, shape: list[int], length: int, read: Any) -> None:
        self.name, self.code, self.shape, self.length, self.read = name, code, shape, length, read


def leaf_names(node: Any, path: str = "") -> Iterator[tuple[list[Any], str]]:
    """Every tensor, array and byte node of a skeleton's node, with a name made of the keys that lead to it."""
    if type(node) is dict:
        for key, item in node.items():
            yield from leaf_names(item, f"{path}.{key}" if path else key)
    elif type(node) is list and node:
        if node[0] in (tags.TENSOR, tags.ARRAY, tags.BYTES, tags.BYTE_ARRAY):
            yield node, path or "state"
        elif node[0] == tags.TENSORS:
            for position, key in enumerate(node[2:]):
                yield [tags.TENSOR, node[1] + position], f"{path}.{key}" if path else key
        elif node[0] in (tags.DICT, tags.ORDERED_DICT, tags.MODULE_DICT, tags.DEFAULT_DICT):
            pairs = node[2:] if node[0] in (tags.MODULE_DICT, tags.DEFAULT_DICT) else node[1:]
            if len(pairs) == 1:
                yield from leaf_names(pairs[0], path)
                return
            for key, item in zip(pairs[::2], pairs[1::2], strict=True):
                step = str(key) if type(key) in (str, int) else json.dumps(key)
                yield from leaf_names(item, f"{path}.{step}" if path else step)
        elif node[0] not in (tags.ARRAY_TYPE, tags.SCALAR):
            for position, item in enumerate(node[2:] if node[0] in tags.WITH_FACTS else node[1:]):
                yield from leaf_names(item, f"{path}.{position}" if path else str(position))


def write_safetensors(path: str, state: Any, extra: Any, facts: dict[str, Any], *, replace: bool = False) -> None:
    """Write a state. Raises NotPlainData, FileExistsError or OSError."""
    walk = Walk(asks=True)
    nodes = {"state": walk.root(state, "state"), "extra": walk.root(extra, "extra")}
    walk.raise_problems()
    entries, aliases, ours = _entries_of(walk, nodes)
    entries.sort(key=lambda entry: -_item_bytes(entry.code))  # so that each lies at a multiple of its elements
    header: dict[str, Any] = {"__metadata__": {"format": "pt", **aliases, OURS: json.dumps(facts | ours)}}
    position = 0
    for entry in entries:
        span = [position, position + entry.length]
        header[entry.name] = {"dtype": entry.code, "shape": entry.shape, "data_offsets": span}
        position = span[1]
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    with writing(path, replace=replace) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for entry in entries:
            data = memoryview(entry.read()).cast("B") if entry.length else b""
            assert len(data) == entry.length
            file.write(data)


def _entries_of(walk: Walk, nodes: dict[str, Any]) -> tuple[list[Entry], dict[str, str], dict[str, Any]]:
    """Entries for every tensor and byte region, other names of the same tensor, and what our own reader needs."""
    tensor_names: dict[int, str] = {}
    arrays: dict[int, tuple[str, list[Any]]] = {}
    taken = {"__metadata__"}

    def free(name: str) -> str:
        number, wanted = 1, name
        while name in taken:
            number += 1
            name = f"{wanted}#{number}"
        taken.add(name)
        return name

    aliases: dict[str, str] = {}
    for root, prefix in ((nodes["state"], ""), (nodes["extra"], OURS)):
        for node, path in leaf_names(root, prefix):
            if node[0] != tags.TENSOR:
                arrays[node[4] if node[0] == tags.ARRAY else node[1]] = (free(path), node)
            elif node[1] not in tensor_names:
                tensor_names[node[1]] = free(path)
            else:
                aliases[free(path)] = tensor_names[node[1]]
    entries, rows, same = [], [], {}
    for index, each in enumerate(walk.met.tensors):
        tensor, flags = each.detach(), flags_of(each)
        key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()) if tensor.numel() else index
        name = same.setdefault(key, tensor_names[index])
        if name == tensor_names[index]:
            entries.append(_tensor_entry(name, tensor))
        else:
            aliases[tensor_names[index]] = name
        rows.append([name, flags, NAMES[tensor.dtype], list(tensor.shape)])
    regions = []
    for index, (length, read) in enumerate(zip(walk.lengths, walk.readers, strict=True)):
        name, node = arrays[index]
        regions.append(name)
        entries.append(_array_entry(name, node, length, read))
    return entries, aliases, {**nodes, "tensors": rows, "regions": regions}


def _item_bytes(code: str) -> int:
    return DTYPES[NAMES_OF_CODES[code]].itemsize


def _tensor_entry(name: str, tensor: torch.Tensor) -> Entry:
    code = CODES.get(NAMES[tensor.dtype])
    shape = list(tensor.shape) if code else [tensor.numel() * tensor.itemsize]

    def read() -> Any:
        plain = tensor if tensor.dtype in COMPUTED else tensor.view(INTEGER_OF_BYTES[tensor.itemsize])
        packed = plain.contiguous()
        start = packed.storage_offset() * packed.itemsize
        return host_bytes(packed, start, start + packed.nbytes)

    return Entry(name, code or "U8", shape, tensor.numel() * tensor.itemsize, read)


def _array_entry(name: str, node: list[Any], length: int, read: Any) -> Entry:
    if node[0] == tags.ARRAY and node[3] == "C" and isinstance(node[1], str) and node[1][0] in "<|":
        code = ARRAY_CODES.get(node[1][1:])
        if code:
            return Entry(name, code, node[2], length, read)
    return Entry(name, "U8", [length], length, read)


def read_safetensors(path: str, *, lazy: bool = False) -> tuple[Decoded, dict[str, Any]]:
    """The state in a file of this form, of ours or of anybody's (then a dict of tensors by name), and facts about it.

    With `lazy`, tensors are mapped. Raises NotAState when the file is not whole or not of this form.
    """
    header, start = read_header(path)
    metadata = header.pop("__metadata__", {})
    data = private_bytes(path)[start:]
    with misfits_told():
        names = list(header)
        index_of = {name: index for index, name in enumerate(names)}
        spans = [_span(name, header[name], data.size) for name in names]
        ours = json.loads(metadata[OURS]) if OURS in metadata else _foreign(header, metadata)
        rows = [[dtype, shape, index_of[name], 0, None, flags] for name, flags, dtype, shape in ours.pop("tensors")]
        # Regions are numbered as the file's entries are, so nodes of arrays and bytes are told the new numbers.
        numbers = [index_of[name] for name in ours.pop("regions")]
        nodes = {key: ours.pop(key) for key in ("state", "extra")}
        for node, _ in (*leaf_names(nodes["state"]), *leaf_names(nodes["extra"])):
            if node[0] == tags.ARRAY:
                node[4] = numbers[count(node[4])]
            elif node[0] != tags.TENSOR:
                node[1] = numbers[count(node[1])]
        lengths, starts = [stop - begin for begin, stop in spans], [begin for begin, _ in spans]
        skeleton = {**nodes, **tags.table_of(rows), "regions": lengths}
        return build(skeleton, (Mapped if lazy else InMemory)(data, lengths, starts)), ours


def read_header(path: str) -> tuple[dict[str, Any], int]:
    """The header as it is, and where the data begins."""
    with open(path, "rb") as file:
        first = file.read(8)
        size = os.fstat(file.fileno()).st_size
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 2 <= length <= min(size - 8, LONGEST_HEADER_BYTES):
            raise NotAState(f"{path} is no whole file of lastgood, safetensors or torch")
        text = file.read(length)
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise NotAState(f"{path} is not a safetensors file: its header is not readable")
    return header, 8 + length


def _span(name: str, entry: dict[str, Any], size: int) -> tuple[int, int]:
    """Where an entry's bytes are, held against its type and shape."""
    begin, stop = (count(offset) for offset in entry["data_offsets"])
    elements = math.prod(count(length) for length in entry["shape"])
    if entry["dtype"] not in NAMES_OF_CODES:
        raise NotAState(f"{name}: no element type is called {entry['dtype']!r:.20} here")
    if not begin <= stop <= size or stop - begin != elements * _item_bytes(entry["dtype"]):
        raise NotAState(f"not a whole file: {name} has bytes {begin} to {stop} of {size}")
    return begin, stop


def _foreign(header: dict[str, Any], metadata: dict[str, str]) -> dict[str, Any]:
    """Nodes for a file that somebody else wrote: a dict of tensors by name."""
    rows = [[name, 0, NAMES_OF_CODES.get(entry["dtype"]), entry["shape"]] for name, entry in header.items()]
    state = {name: [tags.TENSOR, index] for index, name in enumerate(header)}
    state |= {alias: state[name] for alias, name in metadata.items() if name in state and alias not in state}
    return {"state": state, "extra": None, "tensors": rows, "regions": []}
