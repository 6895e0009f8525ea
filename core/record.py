"""A slot's record: what it says, its bytes, and what makes it unusable. Checked by round-trip and damage tests.

    offset  bytes  field (little-endian)
         0      8  magic "LGRECORD"
         8      4  format version
        12      4  bytes used, from magic to the end of the digests
        16     16  store id
        32     16  run id
        48      4  slot index
        52      4  bytes of meta
        56      8  bytes of a chunk
        64      8  sequence, at least 1
        72      8  step (signed)
        80      8  bytes of payload
        88      8  nanoseconds since 1970 when the save began
        96      4  number of chunks
       100      8  where in the file the payload begins
       108      4  CRC32C of the bytes used, this field taken as zero
       112      m  meta
     112+m     4n  CRC32C of each chunk

The rest of the record area is zero. An empty record, which every slot begins with, is

         0      8  magic "LGEMPTY\0"
         8      4  format version
        12      4  slot index
        16     16  store id
        32      4  CRC32C of the bytes before

Anything else is rejected, zeros too: they are what a lost or trimmed block reads as. A record torn by a power loss fails
its own CRC and counts as rejected: it was never acknowledged.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .digest import DIGEST_BYTES, digest
from .errors import FormatTooNew
from .rules import PAGE_BYTES, align_up, chunk_count, sequence_fits

MAGIC = b"LGRECORD"
FORMAT_VERSION = 1
FIXED = struct.Struct("<8sII16s16sIIQQqQQIQ")
EMPTY_MAGIC = b"LGEMPTY\0"
EMPTY = struct.Struct("<8sII16s")
DIGEST_OFFSET = FIXED.size
FIXED_BYTES = DIGEST_OFFSET + 4
assert FIXED_BYTES == 112


class RecordRejected(ValueError):
    """These bytes are no usable record; the message is the reason."""


@dataclass(frozen=True)
class Record:
    """One checkpoint: which save, of which run, how many bytes, and the digests its payload must have."""

    sequence: int
    slot: int
    step: int
    store: bytes
    run: bytes
    payload_bytes: int
    chunk_bytes: int
    meta: bytes
    digests: tuple[int, ...] = field(repr=False)
    saved_at_ns: int
    payload_offset: int

    @property
    def saved_at(self) -> float:
        """Seconds since 1970 when the save began."""
        return self.saved_at_ns / 1e9


def encode(record: Record) -> NDArray[np.uint8]:
    """The record's bytes, filled up with zeros to whole pages."""
    assert sequence_fits(record.sequence), "T3 sign"
    assert len(record.digests) == chunk_count(record.payload_bytes, record.chunk_bytes)
    used = FIXED_BYTES + len(record.meta) + DIGEST_BYTES * len(record.digests)
    image = np.zeros(align_up(used), np.uint8)
    sizes = len(record.meta), record.chunk_bytes, record.sequence, record.step, record.payload_bytes
    rest = record.saved_at_ns, len(record.digests), record.payload_offset
    fixed = FIXED.pack(MAGIC, FORMAT_VERSION, used, record.store, record.run, record.slot, *sizes, *rest)
    body = record.meta + np.array(record.digests, "<u4").tobytes()
    image[:DIGEST_OFFSET] = np.frombuffer(fixed, np.uint8)
    image[FIXED_BYTES:used] = np.frombuffer(body, np.uint8)
    image[DIGEST_OFFSET:FIXED_BYTES] = np.frombuffer(struct.pack("<I", digest(image[:used])), np.uint8)
    return image


def encode_empty(store: bytes, slot: int) -> NDArray[np.uint8]:
    """An empty record's bytes: one page."""
    image = np.zeros(PAGE_BYTES, np.uint8)
    body = EMPTY.pack(EMPTY_MAGIC, FORMAT_VERSION, slot, store)
    image[: EMPTY.size + 4] = np.frombuffer(sealed(body), np.uint8)
    return image


def sealed(body: bytes) -> bytes:
    """The bytes followed by their CRC32C."""
    return body + struct.pack("<I", digest(np.frombuffer(body, np.uint8)))


def decode(area: NDArray[np.uint8], store: bytes, slot: int) -> Record | None:
    """The record in a slot's record area, None when it is empty.

    Raises RecordRejected with the reason when the bytes are no record of this slot of this store, and FormatTooNew
    when they are a whole record of a later format version.
    """
    front = area[: EMPTY.size + 4].tobytes()
    if front.startswith(EMPTY_MAGIC) and front == sealed(EMPTY.pack(EMPTY_MAGIC, FORMAT_VERSION, slot, store)):
        return None
    fields = FIXED.unpack_from(area.data)
    magic, version, used = fields[:3]
    if magic != MAGIC:
        what = "zeros" if not area[:FIXED_BYTES].any() else "other bytes"
        raise RecordRejected(f"{what} where a record should begin")
    if not FIXED_BYTES <= used <= area.size:
        raise RecordRejected(f"says it is {used} bytes long in an area of {area.size}")
    image = area[:used].copy()
    image[DIGEST_OFFSET:FIXED_BYTES] = 0
    if struct.pack("<I", digest(image)) != area[DIGEST_OFFSET:FIXED_BYTES].tobytes():
        raise RecordRejected("its own digest is wrong: torn by a power loss, or damaged")
    if version > FORMAT_VERSION:
        raise FormatTooNew(
            f"slot {slot} is of format {version}, this version reads up to {FORMAT_VERSION}: update lastgood"
        )
    _, _, _, its_store, run, its_slot, meta_bytes, chunk_bytes, sequence, step, payload, saved, chunks, start = fields
    if its_store != store:
        raise RecordRejected("belongs to another store")
    if its_slot != slot:
        raise RecordRejected(f"belongs to slot {its_slot}: slot files were swapped or copied")
    meta_end = FIXED_BYTES + meta_bytes
    if (
        not sequence_fits(sequence)
        or chunk_bytes == 0
        or (chunk_bytes | start) % PAGE_BYTES != 0
        or chunks != chunk_count(payload, chunk_bytes)
        or meta_end + DIGEST_BYTES * chunks != used
        or start < align_up(used)
    ):
        raise RecordRejected("its digest is right, but its sizes are none that a save writes")
    digests = np.frombuffer(area[meta_end:used].tobytes(), "<u4").tolist()
    meta = area[FIXED_BYTES:meta_end].tobytes()
    return Record(sequence, slot, step, store, run, payload, chunk_bytes, meta, tuple(digests), saved, start)
