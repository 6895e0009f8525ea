"""Drawn images of a store: one word a slot, turned into the files of a directory in memory.

    .      an empty record                 -      the file is missing
    5      a whole checkpoint, sequence 5  <5     its file ends inside the payload
    5!     its payload is damaged          <<5    its file ends inside the record area
    5*     its payload cannot be read      ?5     its record cannot be read: EIO
    x5     its record is torn              s5     its record says it belongs to another slot
    o5     a record of another store       n5     a whole record of a later format version
    0      zeros where a record should be  e      an empty record that belongs to another slot

The step of a checkpoint is ten times its sequence, and its payload is what `small.payload_of` gives for that step.
"""

from __future__ import annotations

import errno
import re
import struct
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastgood.core.digest import digest
from lastgood.core.layout import HEADER, Layout, encode_header, slot_name
from lastgood.core.memory import MemoryDevice
from lastgood.core.record import DIGEST_OFFSET, FIXED_BYTES, Record, encode, encode_empty
from tests.store.small import payload_of
from tests.store.watched import Operation, WatchedMemory

STORE = b"this very store."
OTHER = b"another store..."
RUN = b"the run of old.."
CHUNK = 4096
PAYLOAD_BYTES = 9000
WORD = re.compile(r"(?P<before>[xos?n]|<{0,2})(?P<sequence>\d+)(?P<after>[!*]?)|(?P<alone>[.e-])")


def layout_of(slots: int, keep: int, persists: int = 2) -> Layout:
    """Slots of three chunks."""
    return Layout(STORE, 12_000, CHUNK, 64, slots - keep, keep, persists, 1)


def record_of(layout: Layout, sequence: int, slot: int, store: bytes = STORE) -> Record:
    """The record that a save with this sequence leaves in this slot."""
    payload = payload_of(10 * sequence, PAYLOAD_BYTES)
    digests = tuple(digest(payload[start : start + CHUNK]) for start in range(0, PAYLOAD_BYTES, CHUNK))
    return Record(
        sequence=sequence,
        slot=slot,
        step=10 * sequence,
        store=store,
        run=RUN,
        payload_bytes=PAYLOAD_BYTES,
        chunk_bytes=CHUNK,
        meta=b"m%d" % (10 * sequence),
        digests=digests,
        saved_at_ns=5,
        payload_offset=layout.area_bytes,
    )


def slot_image(layout: Layout, word: str, slot: int) -> NDArray[np.uint8] | None:
    """The bytes of one slot file, None for a missing one."""
    found = WORD.fullmatch(word)
    assert found, f"unknown word {word!r}"
    image = np.zeros(layout.file_bytes, np.uint8)
    if found["alone"] == "-":
        return None
    if found["alone"]:
        image[:4096] = encode_empty(STORE, slot + 1 if found["alone"] == "e" else slot)
        return image
    sequence = int(found["sequence"])
    area = layout.area_bytes
    image[area : area + PAYLOAD_BYTES] = payload_of(10 * sequence, PAYLOAD_BYTES)
    if sequence == 0:
        return image
    record = record_of(
        layout,
        sequence,
        slot + 1 if found["before"] == "s" else slot,
        OTHER if found["before"] == "o" else STORE,
    )
    encoded = encode(record)
    if found["before"] == "n":
        encoded[8:12] = np.frombuffer(struct.pack("<I", 2), np.uint8)
        encoded[DIGEST_OFFSET:FIXED_BYTES] = 0
        encoded[DIGEST_OFFSET:FIXED_BYTES] = np.frombuffer(
            struct.pack("<I", digest(encoded[: record_bytes(record)])), np.uint8
        )
    image[: encoded.size] = encoded
    if found["before"] == "x":
        image[64 : encoded.size] = 0  # a page that was torn after its first sector's first bytes
    if found["after"] == "!":
        image[area + PAYLOAD_BYTES - 1] ^= 1
    if found["before"] == "<":
        image = image[: area + PAYLOAD_BYTES - 1]
    if found["before"] == "<<":
        image = image[:100]
    return image


def record_bytes(record: Record) -> int:
    """Bytes of a record that are used."""
    return FIXED_BYTES + len(record.meta) + 4 * len(record.digests)


class Image(WatchedMemory):
    """A directory with the drawn files. `log` has every operation on its devices since then."""

    def __init__(self, drawing: str, keep: int, *, marked: bool = True, persists: int = 2) -> None:
        """One word a slot."""
        super().__init__(self._note)
        words = drawing.split()
        self.layout = layout_of(len(words), keep, persists)
        self.log: list[Operation] = []
        header = encode_header(self.layout, marked=marked)
        self.files[HEADER] = MemoryDevice(header)
        self.unreadable = {}
        for slot, word in enumerate(words):
            content = slot_image(self.layout, word, slot)
            if content is not None:
                self.files[slot_name(slot)] = MemoryDevice(content)
            if "?" in word or "*" in word:
                self.unreadable[slot_name(slot)] = 0 if "?" in word else self.layout.area_bytes

    def _note(self, operation: Operation) -> None:
        start = self.unreadable.get(operation.file)
        if (
            operation.kind == "read"
            and start is not None
            and (operation.offset == start or start > 0 < operation.offset)
        ):
            raise OSError(errno.EIO, "Input/output error", operation.file)
        data = (
            None if operation.data is None else operation.data.copy()
        )  # devices are given buffers that are used again
        self.log.append(replace(operation, data=data))

    def bytes_of(self, name: str) -> Any:
        """A file's bytes, None when it is missing."""
        return self.files[name].content.tobytes() if name in self.files else None
