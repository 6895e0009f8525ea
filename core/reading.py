"""Reading one payload and proving that it is the one that was saved (promise `never-wrong`). Checked by damage tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .device import Device, aligned_buffer
from .digest import digest
from .errors import Damaged
from .incoming import as_target
from .record import Record
from .rules import align_up, chunk_length


def payload_memory(record: Record) -> NDArray[np.uint8]:
    """Fresh aligned memory for a payload."""
    return aligned_buffer(align_up(record.payload_bytes))[: record.payload_bytes]


def fetch_payload(device: Device, record: Record, into: Any) -> NDArray[np.uint8]:
    """The verified payload, in the front of the caller's memory `into`, or in fresh memory when that is None.

    Raises as `read_payload` and `as_target` do.
    """
    payload = payload_memory(record) if into is None else as_target(into, record.payload_bytes, record.step)
    read_payload(device, record, payload)
    return payload


def read_payload(device: Device, record: Record, into: NDArray[np.uint8]) -> None:
    """Fill `into` (exactly `record.payload_bytes`) chunk by chunk, each verified as soon as it is read.

    Raises Damaged, naming the chunk, when a digest is wrong or the file ends early; OSError when the medium fails.
    """
    assert into.size == record.payload_bytes
    start = 0
    for index, expected in enumerate(record.digests):
        length = chunk_length(record.payload_bytes, record.chunk_bytes, index)
        piece = into[start : start + length]
        try:
            device.read(record.payload_offset + start, piece)
        except EOFError as error:
            raise Damaged(f"step {record.step} in slot {record.slot}: {error}") from error
        if digest(piece) != expected:
            raise Damaged(
                f"step {record.step} in slot {record.slot}: chunk {index} of {len(record.digests)} is damaged"
            )
        start += length


def rewrite_payload(device: Device, record: Record) -> None:
    """Write a payload again, byte for byte, where it lies, so that the next persist makes it durable (R3 fence-first)."""
    buffer = aligned_buffer(align_up(record.chunk_bytes))
    start = record.payload_offset
    for index in range(len(record.digests)):
        pages = buffer[: align_up(chunk_length(record.payload_bytes, record.chunk_bytes, index))]
        device.read(start, pages)
        device.write(start, pages)
        start += record.chunk_bytes
