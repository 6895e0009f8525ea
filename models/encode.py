"""From nested values to buffers: one walk over the state, nothing large copied.

`encode(state)` either raises `NotPlainData`, naming every key path it could not write, or returns an `Encoded` whose
`buffers()` give the payload in order. Large tensors and arrays are views of their own memory; small ones, and the
padding, are gathered into blocks, so that a hundred thousand tiny tensors do not make a hundred thousand buffers.

What can be written, and how it is refused otherwise, is in `walk.py` and the modules that it asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from ctypes import string_at
from dataclasses import dataclass
from typing import Any

from . import skeleton as tags
from .capture import SMALL_BYTES, LiveBytes
from .collector import without_collecting
from .walk import Reader, Walk

GATHER_BELOW_BYTES = SMALL_BYTES
"""Regions smaller than this are copied into blocks; larger ones are buffers of their own."""

PADDING = bytes(tags.ALIGNMENT)
BLOCK_BYTES = 1024 * 1024


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
            if length < GATHER_BELOW_BYTES and type(read) is LiveBytes and read.tensor.is_cpu:
                # As `read` does it, without the calls: there may be a hundred thousand of them.
                region = string_at(read.tensor.untyped_storage().data_ptr() + read.start, length)
            else:
                region = read()
            assert len(region) == length, "F1 whole"
            if length < GATHER_BELOW_BYTES:
                block += region if type(region) is bytes else memoryview(region)
                block += PADDING[: -length % tags.ALIGNMENT]
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
    with without_collecting():
        walk = Walk()
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
