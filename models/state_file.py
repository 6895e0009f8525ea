"""A whole checkpoint in one file of its own, `*.lastgood`: a hard copy that no slot is ever reused for.

    0        8        12       16              24             32           36               64
    +--------+--------+--------+---------------+--------------+------------+-----------------+
    | magic  | version| crc    | facts' bytes  | payload bytes| chunk bytes|        0        |
    +--------+--------+--------+---------------+--------------+------------+-----------------+
    | facts: JSON with step, time, origin, the digest of every chunk; zeros up to a whole page |
    +------------------------------------------------------------------------------------------+
    | payload, as `skeleton.py` describes it                                                   |
    +------------------------------------------------------------------------------------------+

The CRC32C is of front and facts, itself taken as zero. The file appears whole or not at all: it is written beside its
name, persisted, and renamed (`whole_file.py`).
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from lastgood.core import FormatTooNew, Record
from lastgood.core.digest import digest
from lastgood.core.files import BufferedFile
from lastgood.core.reading import verified_chunks
from lastgood.core.rules import align_up, chunk_count

from . import skeleton as tags
from .decode import Decoded, build, misfits_told
from .errors import NotAState
from .regions import Mapped, lengths_in, starts_of
from .whole_file import writing

MAGIC = b"LG file\0"
VERSION = 1
FRONT = struct.Struct("<8sIIQQI28x")
SUFFIX = ".lastgood"
assert FRONT.size == 64


@dataclass(frozen=True)
class StateFile:
    """A payload in a file of its own."""

    path: str
    offset: int
    total_bytes: int
    chunk_bytes: int
    digests: tuple[int, ...]
    step: int
    saved_at_ns: int
    store: str
    sequence: int

    @property
    def saved_at(self) -> float:
        """Seconds since 1970 when it was saved."""
        return self.saved_at_ns / 1e9

    def is_overtaken_by(self, record: Record) -> bool:
        """Whether a save of another store or a later one of the same store, of whatever run, is in `record`."""
        return self.store != record.store.hex() or self.sequence < record.sequence

    def chunks(self) -> Iterator[tuple[int, numpy.ndarray]]:
        """As `Store.chunks`: each chunk's offset in the payload and its verified bytes, in memory that is used again."""
        device = BufferedFile(self.path, writable=False)
        try:
            yield from verified_chunks(
                device, self.offset, self.total_bytes, self.chunk_bytes, self.digests, f"{self.path}, step {self.step}"
            )
        finally:
            device.close()


def write_copy(record: Record, pieces: Iterable[tuple[int, Any]], path: str, *, replace: bool = False) -> None:
    """Copy a checkpoint, which comes in verified pieces, into a state file. Raises what they raise, and what `writing` does."""
    facts = {
        "step": record.step,
        "saved_at_ns": record.saved_at_ns,
        "run": record.run.hex(),
        "store": record.store.hex(),
        "sequence": record.sequence,
        "digests": list(record.digests),
    }
    content = (piece for _, piece in pieces)
    write_file(path, facts, record.payload_bytes, record.chunk_bytes, content, replace=replace)


def write_payload(buffers: Iterable[Any], path: str, *, step: int, saved_at_ns: int, replace: bool = False) -> None:
    """Write an encoded state into a state file."""
    payload = numpy.frombuffer(b"".join(bytes(memoryview(buffer)) for buffer in buffers), numpy.uint8)
    chunk = 4 * 2**20
    digests = [digest(payload[start : start + chunk]) for start in range(0, payload.size, chunk)]
    facts = {"step": step, "saved_at_ns": saved_at_ns, "run": bytes(16).hex(), "digests": digests}
    write_file(path, facts, payload.size, chunk, [payload], replace=replace)


def write_file(
    path: str, facts: dict[str, Any], total: int, chunk: int, pieces: Iterable[numpy.ndarray], *, replace: bool
) -> None:
    """Write front, facts and payload."""
    text = json.dumps(facts, separators=(",", ":")).encode("ascii")
    blank = FRONT.pack(MAGIC, VERSION, 0, len(text), total, chunk) + text
    crc = digest(numpy.frombuffer(blank, numpy.uint8))
    head = FRONT.pack(MAGIC, VERSION, crc, len(text), total, chunk) + text
    with writing(path, replace=replace) as file:
        file.write(head + bytes(align_up(len(head)) - len(head)))
        for piece in pieces:
            file.write(piece.data)


def is_state_file(path: str) -> bool:
    """Whether the file begins as a state file does."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_state_file(path: str) -> StateFile:
    """The payload in a state file. Raises NotAState when the file is none or its facts are damaged."""
    with open(path, "rb") as file:
        front = file.read(FRONT.size)
        if len(front) < FRONT.size or not front.startswith(MAGIC):
            raise NotAState(f"{path} is not a state file of lastgood")
        _, version, crc, length, total, chunk = FRONT.unpack(front)
        if version > VERSION:
            raise FormatTooNew(f"{path} is of format {version}, this lastgood reads up to {VERSION}: upgrade lastgood")
        if length > os.fstat(file.fileno()).st_size:
            raise NotAState(f"{path} ends within its facts")
        text = file.read(length)
        blank = FRONT.pack(MAGIC, version, 0, length, total, chunk) + text
        if front[36:] != bytes(28) or digest(numpy.frombuffer(blank, numpy.uint8)) != crc:
            raise NotAState(f"{path}: what it says of itself is damaged")
        size = os.fstat(file.fileno()).st_size
    facts = json.loads(text)
    start = align_up(FRONT.size + length)
    if size != start + total or len(facts["digests"]) != chunk_count(total, chunk):
        raise NotAState(f"{path} has {size} bytes where {start + total} were written")
    origin = facts.get("store", ""), facts.get("sequence", 0)  # a copy of an older lastgood, or a part, does not say it
    return StateFile(path, start, total, chunk, tuple(facts["digests"]), facts["step"], facts["saved_at_ns"], *origin)


def mapped(source: StateFile) -> Decoded:
    """The state with its tensors mapped: only the skeleton is read now, and only it is verified."""
    header, front = tags.read_front(source.chunks(), source.total_bytes)
    with misfits_told():
        skeleton = tags.read_skeleton(front, header)
        lengths = lengths_in(skeleton)
        starts = starts_of(lengths, header)
    return build(skeleton, Mapped(private_bytes(source.path)[source.offset :], lengths, starts))


def private_bytes(path: str) -> numpy.ndarray:
    """The file's bytes, mapped for this process alone: read when touched, copied when written to."""
    with open(path, "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return numpy.frombuffer(mapping, numpy.uint8)
