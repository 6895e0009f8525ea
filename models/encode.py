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
from .facts import facts_of
from .gather import Reader, parts_of
from .tensor_table import TensorTable
from .tensors import Refused
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


class Encoder:
    """Encodes the states of one job, save after save: what is true of all of them is found out once.

    Where the tensors go depends on their facts alone (`facts.py`), so the table of the save before serves again when all
    facts are the same. Nothing else is kept, and no tensor: what an encoder gives is what a new one would give.
    """

    def __init__(self) -> None:
        self._table: TensorTable | None = None
        self._table_text = ""
        self._lengths_text = ""

    def encode(self, state: Any, *, extra: Any = None, name: str = "state") -> Encoded:
        """Encode nested plain values. `extra` travels beside the state, for whoever keeps more than the user's own."""
        with without_collecting():
            walk = Walk(asks=False)
            nodes = walk.root(state, name), walk.root(extra, "extra")
            found = None if walk.reached.again else self._table_for(walk)
            if found is None:
                walk = Walk(asks=True, after=walk)
                nodes = walk.root(state, name), walk.root(extra, "extra")
                walk.raise_problems()
                found = self._table_for(walk)
                assert found is not None
            table, storages = found
            lengths = ",".join(filter(None, (",".join(map(str, walk.lengths)), self._lengths_text)))
            texts = f'"state":{_text(nodes[0])},"extra":{_text(nodes[1])},{self._table_text},"regions":[{lengths}]'
            data = f"{{{texts}}}".encode("ascii")
            parts = [*parts_of(walk.lengths, walk.readers), *table.parts(walk.met.tensors, storages)]
            version = tags.VERSION if walk.reached.again else tags.VERSION_WITHOUT_SHARED
            header = tags.Header(len(data), sum(length for length, _ in parts), version)
            head = header.pack() + data + bytes(-len(data) % tags.ALIGNMENT)
            part_lengths, readers = zip(*parts, strict=True) if parts else ((), ())
            return Encoded(head, part_lengths, readers, header.total_bytes, walk.met.tensors)

    def _table_for(self, walk: Walk) -> tuple[TensorTable, list[int]] | None:
        """The table for the tensors that a walk has met, and where their storages are; None when it has to ask each of them."""
        if walk.problems or len(set(map(id, walk.met.tensors))) < len(walk.met.tensors):
            return None
        found = facts_of(walk.met.tensors)
        if found is None:
            return None
        facts, storages = found
        table = self._table
        if table is None or table.facts != facts or table.first_region != len(walk.lengths):
            try:
                table = TensorTable(facts, len(walk.lengths))
            except Refused:
                return None
            self._table = table
            self._table_text = f'"tensors":{_text([table.kind_of, table.region_of])},"kinds":{_text(table.kinds)}'
            self._lengths_text = ",".join(map(str, table.lengths))
        return table, storages


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))


def encode(state: Any, *, extra: Any = None, name: str = "state") -> Encoded:
    """Encode one state; who encodes many keeps an `Encoder`."""
    return Encoder().encode(state, extra=extra, name=name)
