"""From nested values to buffers: one walk over the state, nothing large copied.

`encode(state)` either raises `NotPlainData`, naming every key path it could not write, or returns an `Encoded` whose
`buffers()` give the payload in order. Large tensors and arrays are views of their own memory; small ones, and the
padding, are copied into blocks when their turn comes (`gather.py`).

What can be written, and how it is refused otherwise, is in `walk.py` and the modules that it asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import skeleton as tags
from .collector import without_collecting
from .gather import Reader, parts_of
from .walk import Walk


@dataclass(frozen=True)
class Encoded:
    """A state ready to be written. Holds references to the live tensors: read `buffers()` before they change."""

    head: bytes
    lengths: tuple[int, ...]
    readers: tuple[Reader, ...]
    total_bytes: int
    alive: Any = field(repr=False)

    def buffers(self) -> Iterator[Any]:
        """The payload's buffers in order, each as long as it was promised to be."""
        written = len(self.head)
        yield self.head
        for length, read in zip(self.lengths, self.readers, strict=True):
            buffer = read()
            assert len(buffer) == length, "F1 whole"
            written += length
            yield buffer
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
        table = {"tensors": walk.tensors.lay_out(walk.lengths, walk.readers), "kinds": walk.tensors.kinds}
        skeleton = {"state": state_node, "extra": extra_node, **table, "regions": walk.lengths}
        text = json.dumps(skeleton, ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))
        data = text.encode("ascii")
        parts = list(parts_of(walk.lengths, walk.readers))
        header = tags.Header(len(data), sum(length for length, _ in parts))
        head = header.pack() + data + bytes(-len(data) % tags.ALIGNMENT)
        lengths, readers = zip(*parts, strict=True) if parts else ((), ())
        return Encoded(head, lengths, readers, header.total_bytes, walk.tensors)
