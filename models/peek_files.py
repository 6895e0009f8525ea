"""Looking into files that were exported, pinned or brought from elsewhere; the torch half of `peeking.py`."""

from __future__ import annotations

import json
import os
from typing import Any

from .encode import encode
from .exports import is_torch_file
from .peeking import Leaf, Peek, front_of, leaves_in
from .safetensors_file import NAMES_OF_CODES, OURS, read_header
from .skeleton import read_header as read_state_header
from .state_file import is_state_file, open_state_file
from .torch_file import read_torch_file


def peek_file(path: str) -> Peek:
    """Look into a file of any of the forms; its tensors are not read."""
    changed, size = os.stat(path).st_mtime, os.path.getsize(path)
    if is_state_file(path):
        source = open_state_file(path)
        header, front = front_of(source)
        leaves = leaves_in(header, front)
        return Peek(path, source.step, source.saved_at, source.total_bytes, header.skeleton_bytes, leaves)
    if is_torch_file(path):
        encoded = encode(read_torch_file(path, lazy=True))
        front = memoryview(encoded.head)
        leaves = leaves_in(read_state_header(front, encoded.total_bytes), front)
        return Peek(path, 0, changed, size, 0, leaves)
    header, start = read_header(path)
    ours = _facts(header.pop("__metadata__", {}))
    leaves = tuple(
        Leaf(name, "Tensor", NAMES_OF_CODES.get(entry["dtype"], entry["dtype"]), tuple(entry["shape"]), _length(entry))
        for name, entry in header.items()
    )
    return Peek(path, ours.get("step", 0), ours.get("saved_at_ns", changed * 1e9) / 1e9, size - start, start, leaves)


def _facts(metadata: dict[str, Any]) -> dict[str, Any]:
    """Step and time, when the file is an export of ours."""
    try:
        facts = json.loads(metadata.get(OURS, "{}"))
    except (TypeError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _length(entry: dict[str, Any]) -> int:
    begin, stop = entry["data_offsets"]
    return int(stop) - int(begin)
