"""numpy's element types as data: numbers, text, time and structures of them; never Python objects.

    "<f4"                                                    a plain type, as numpy spells it
    ["struct", item bytes, aligned, [[name, offset, type], ...]]
    ["sub", type, [length, ...]]                             a field that is an array itself

Titles of fields and metadata hung on a type are not data of any element; titles are refused, metadata is left behind.
"""

from __future__ import annotations

import re
from typing import Any

import numpy

from .errors import NotAState

ARRAY_KINDS = "biufcSUMmV"
PLAIN = re.compile(r"[<>|][biufcSUMmV][0-9]{1,9}(\[[0-9]*[A-Za-z\u03bc]{1,7}(/[0-9]+)?\])?", re.ASCII)
DEEPEST = 20


def described(dtype: numpy.dtype[Any]) -> Any:
    """A dtype as JSON; None when it is one that cannot be saved."""
    if dtype.hasobject or dtype.kind not in ARRAY_KINDS:
        return None
    if dtype.subdtype is not None:
        inner = described(dtype.subdtype[0])
        return None if inner is None else ["sub", inner, list(dtype.subdtype[1])]
    if dtype.names is None or dtype.fields is None:
        return dtype.str
    rows = []
    for name in dtype.names:
        field = dtype.fields[name]
        inner = described(field[0])
        if inner is None or len(field) > 2:
            return None
        rows.append([name, int(field[1]), inner])
    return ["struct", dtype.itemsize, bool(dtype.isalignedstruct), rows]


def array_type(node: Any, depth: int = 0) -> numpy.dtype[Any]:
    """The dtype that `described` was given. Raises NotAState for anything else."""
    if isinstance(node, str) and PLAIN.fullmatch(node):
        return numpy.dtype(node)
    if type(node) is list and node and depth < DEEPEST:
        if node[0] == "sub" and len(node) == 3:
            return numpy.dtype((array_type(node[1], depth + 1), tuple(int(length) for length in node[2])))
        if node[0] == "struct" and len(node) == 4:
            names, offsets, inner = zip(*node[3], strict=True) if node[3] else ((), (), ())
            formats = [array_type(each, depth + 1) for each in inner]
            spec = {"names": list(names), "formats": formats, "offsets": list(offsets), "itemsize": int(node[1])}
            return numpy.dtype(spec, align=bool(node[2]))  # type: ignore[call-overload,no-any-return]
    raise NotAState(f"not readable here: {node!r:.40} is not an array type that can be saved")
