"""The bytes of a saved state: a header, a skeleton, and regions of raw bytes. Checked by `tests/models/`.

    0        8        12       16                24               32                64
    +--------+--------+--------+-----------------+----------------+-----------------+
    | magic  | version|   0    | skeleton bytes  |  region bytes  |        0        |
    +--------+--------+--------+-----------------+----------------+-----------------+
    | skeleton: JSON, ASCII, padded with zeros to 64                                |
    +-------------------------------------------------------------------------------+
    | region 0, padded to 64 | region 1, padded to 64 | ...                         |
    +-------------------------------------------------------------------------------+

The skeleton is an object of `state` and `extra`, a node each; `regions`, the byte lengths; and the table of tensors:

    "kinds"      [[dtype, shape, offset, strides or null, flags], ...]      each that occurs, once; in elements
    "tensors"    [[kind of each tensor, ...], [region of each, ...]]        by their numbers

Regions follow one another in the order of their lengths, each at the next multiple of 64, so no offset is stored and
none can point astray. A *node* is one value:

    null true false 12 0.5 "text"    themselves (floats are written so that they read back bit for bit)
    {"key": node}                    a dict whose keys are all text
    [tag, ...]                       anything else, by the tags below

Nothing in it names code: a reader maps tags to the fixed constructors of `decode.py`, and names of own types to what
the program has registered itself, so loading never runs anything that a file asks for.

F1 whole       header, skeleton and regions cover the payload exactly; a reader checks it before using a byte
F2 data        no tag, dtype, type or key is looked up as a name in any module
F3 versioned   a reader meets a higher version with `FormatTooNew` and touches nothing
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lastgood.core import FormatTooNew

from .errors import NotAState

MAGIC = b"LG state"
VERSION, VERSION_WITHOUT_SHARED = 4, 3
"""2 added everything from DEQUE on, structured arrays and tensors that are not strided; 3 TENSORS, and kinds in the place
of a row for each tensor; 4 SHARED and AGAIN: a state without them is still written as 3."""

ALIGNMENT = 64
HEADER = struct.Struct("<8sIIQQ32x")
assert HEADER.size == ALIGNMENT

DEPTH_LIMIT = 100
"""Deepest nesting of containers; far beyond any training state, far below what the JSON reader can take."""

# Tags of nodes. One letter for the containers that every state has, words for the rest.
LIST = "l"
TUPLE = "t"
DICT = "d"  # [DICT, key, value, key, value, ...]: some key is not text
ORDERED_DICT = "o"  # as DICT
MODULE_DICT = "m"  # [MODULE_DICT, metadata, key, value, ...]: an OrderedDict with torch's version metadata
COUNTER = "counter"  # as DICT
SET = "set"
FROZEN_SET = "frozenset"
SIZE = "size"  # torch.Size
INT = "i"  # hexadecimal, when beyond 64 bits
FLOAT = "f"  # eight bytes in hexadecimal, when not finite
COMPLEX = "c"  # two of them
TEXT = "s"  # hexadecimal UTF-8 when it holds lone surrogates
BYTES = "b"  # [BYTES, region]
BYTE_ARRAY = "B"
TENSOR = "T"  # [TENSOR, number in the table of tensors]
TENSORS = (
    "TT"  # [TENSORS, number, key, key, ...]: a dict of text to tensors, numbered from there on; [ORDERED_DICT, this]
)
ARRAY = "a"  # [ARRAY, dtype, shape, "C" or "F", region]
SCALAR = "n"  # a numpy scalar: [SCALAR, dtype, hexadecimal]
DTYPE = "dtype"
DEVICE = "device"
DEQUE = "deque"  # [DEQUE, longest length or null, item, ...]
DEFAULT_DICT = "defaultdict"  # [DEFAULT_DICT, name of a known factory or null, key, value, ...]
ARRAY_TYPE = "numpy.dtype"  # as in ARRAY, see `array_types.py`
KIND = "k"  # [KIND, name, node]: a small value of the standard library, numpy or torch, see `kinds.py`
OWN = "own"  # [OWN, name, node]: of a type that the user registers, see `registry.py`
SPARSE = "sparse"  # these three: [tag, facts, tensor, ...], see `layouts.py`
QUANTISED = "quantised"
JAGGED = "jagged"
SHARED = "shared"  # [SHARED, number, node]: a value that is reached again, [AGAIN, number]
AGAIN = "again"
WITH_FACTS = (SPARSE, QUANTISED, JAGGED)

# Flags of a tensor row.
REQUIRES_GRAD = 1
PARAMETER = 2


def aligned(length: int) -> int:
    """The next multiple of the alignment."""
    return (length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


@dataclass(frozen=True)
class Header:
    """The lengths that a payload begins with."""

    skeleton_bytes: int
    region_bytes: int
    version: int = VERSION

    @property
    def regions_start(self) -> int:
        """Where region 0 begins."""
        return ALIGNMENT + aligned(self.skeleton_bytes)

    @property
    def total_bytes(self) -> int:
        """The length of the payload."""
        return self.regions_start + self.region_bytes

    def pack(self) -> bytes:
        """The header's 64 bytes."""
        return HEADER.pack(MAGIC, self.version, 0, self.skeleton_bytes, self.region_bytes)


def read_header(payload: memoryview, total_bytes: int | None = None) -> Header:
    """Read the header from a payload, or its front, and hold it against the payload's real length (F1, F3)."""
    total_bytes = len(payload) if total_bytes is None else total_bytes
    if len(payload) < HEADER.size:
        raise NotAState(f"not a saved state: {len(payload)} bytes are less than its header")
    magic, version, _, skeleton_bytes, region_bytes = HEADER.unpack_from(payload)
    if magic != MAGIC:
        raise NotAState(
            "not a saved state: this checkpoint was not written by lastgood.models; read it with Store.read"
        )
    if version > VERSION:
        raise FormatTooNew(f"the state is of format {version}, this lastgood reads up to {VERSION}: upgrade lastgood")
    header = Header(skeleton_bytes, region_bytes, version)
    if header.total_bytes != total_bytes:
        raise NotAState(f"not a whole state: {total_bytes} bytes where its header says {header.total_bytes}")
    return header


def read_front(pieces: Iterable[tuple[int, Any]], total_bytes: int) -> tuple[Header, bytearray]:
    """The header, and a payload's bytes from its beginning at least to its regions, out of pieces that follow one another."""
    front, header = bytearray(), None
    for _, piece in pieces:
        front += piece.data
        if header is None and len(front) >= HEADER.size:
            header = read_header(memoryview(front), total_bytes)
        if header is not None and len(front) >= header.regions_start:
            break
    return header or read_header(memoryview(front), total_bytes), front


def read_skeleton(front: Any, header: Header) -> dict[str, Any]:
    """The skeleton out of a payload's front, in the form of this version. Raises NotAState when it is none."""
    try:
        skeleton = json.loads(bytes(front[ALIGNMENT : ALIGNMENT + header.skeleton_bytes]))
    except (ValueError, RecursionError) as problem:
        raise not_readable(problem) from problem
    if type(skeleton) is not dict:
        raise NotAState("not a readable state: its skeleton is not an object")
    if header.version < 3:
        try:
            skeleton |= table_of(skeleton["tensors"])
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise not_readable(problem) from problem
    return skeleton


def table_of(rows: list[list[Any]]) -> dict[str, Any]:
    """`kinds` and `tensors` from a row for each: dtype, shape, region, and, unless ordinary, offset, strides, flags."""
    kinds, regions = [], []
    for row in rows:
        dtype, shape, region, *rest = row
        offset, strides, flags = rest or (0, None, 0)
        kinds.append([dtype, shape, offset, strides, flags])
        regions.append(region)
    return {"kinds": kinds, "tensors": [list(range(len(kinds))), regions]}


def not_readable(problem: Exception) -> NotAState:
    """The error for pieces of a skeleton that do not fit together, in one line."""
    return NotAState(f"not a readable state: {type(problem).__name__}: {problem}".split("\n")[0])
