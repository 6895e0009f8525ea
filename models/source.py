"""Where a whole payload lies, whatever file holds it: a slot of a store, or a state file of its own.

A `Source` says which bytes of which file, and the digests that they must have. Its chunks are handed out in order, each
verified, while the next one is being read already (`never-wrong`: no byte is used before its chunk's digest was right).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy

from lastgood.core import Damaged, Record, Store
from lastgood.core.device import aligned_buffer
from lastgood.core.digest import digest
from lastgood.core.files import BufferedFile, DirectFile
from lastgood.core.layout import slot_name
from lastgood.core.rules import align_up, chunk_length

AHEAD = 2
"""Chunks that are being read while one is looked at."""


@dataclass(frozen=True)
class Source:
    """A payload in a file."""

    path: str
    offset: int
    total_bytes: int
    chunk_bytes: int
    digests: tuple[int, ...]
    step: int
    saved_at_ns: int
    run: bytes
    past_the_cache: bool

    @property
    def saved_at(self) -> float:
        """Seconds since 1970 when it was saved."""
        return self.saved_at_ns / 1e9

    def chunks(self) -> Iterator[tuple[int, numpy.ndarray]]:
        """Each chunk's offset in the payload and its verified bytes, in memory that is used again once the next is asked for.

        Raises Damaged when a digest is wrong or the file ends early, OSError when the medium fails.
        """
        device = (DirectFile if self.past_the_cache else BufferedFile)(self.path, writable=False)
        buffers = [aligned_buffer(align_up(min(self.chunk_bytes, max(self.total_bytes, 1)))) for _ in range(AHEAD + 1)]
        pool = ThreadPoolExecutor(1)
        try:
            starts = [index * self.chunk_bytes for index in range(len(self.digests))]
            pieces = [
                buffers[index % len(buffers)][: chunk_length(self.total_bytes, self.chunk_bytes, index)]
                for index in range(len(starts))
            ]
            reading: list[Any] = []
            for index, start in enumerate(starts):
                while len(reading) < min(index + 1 + AHEAD, len(starts)):
                    ahead = len(reading)
                    reading.append(pool.submit(device.read, self.offset + starts[ahead], pieces[ahead]))
                try:
                    reading[index].result()
                except EOFError as problem:
                    raise Damaged(f"step {self.step}: {problem}") from problem
                if digest(pieces[index]) != self.digests[index]:
                    raise Damaged(f"step {self.step}: chunk {index} of {len(starts)} of {self.path} is damaged")
                yield start, pieces[index]
        finally:
            pool.shutdown(cancel_futures=True)
            device.close()

    def front(self, length: int) -> numpy.ndarray:
        """The first bytes, at least `length` of them where there are so many, without reading more than their chunks."""
        found = numpy.empty(0, numpy.uint8)
        for _, piece in self.chunks():
            found = numpy.concatenate([found, piece])
            if found.size >= length:
                break
        return found


def source_of(store: Store, record: Record) -> Source | None:
    """The payload of a record of an open store; None when its slots are not plain files."""
    path = os.path.join(store.path, slot_name(record.slot))
    if not os.path.isfile(path):
        return None
    return Source(
        path,
        record.payload_offset,
        record.payload_bytes,
        record.chunk_bytes,
        record.digests,
        record.step,
        record.saved_at_ns,
        record.run,
        store.device.startswith("direct"),
    )
