"""Reading one payload and proving that it is the one that was saved (promise `never-wrong`). Checked by damage tests.

In one piece into the caller's memory, or chunk by chunk in a few buffers that are used again:

    read, verify    chunk 1 ── chunk 3 ── chunk 5        two threads, at most AHEAD chunks in front
                       chunk 2 ── chunk 4
    the caller             chunk 0 ── chunk 1 ── chunk 2
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arena import huge_memory
from .device import Device, aligned_buffer
from .digest import digest
from .errors import Damaged
from .incoming import as_target
from .record import Record
from .rules import align_up, chunk_length

READERS, AHEAD = 2, 4
"""Threads, and the chunks that they have read or are reading while one is looked at."""


def payload_memory(record: Record) -> NDArray[np.uint8]:
    """Fresh aligned memory for a payload."""
    return aligned_buffer(align_up(record.payload_bytes))[: record.payload_bytes]


def fetch_payload(device: Device, record: Record, into: Any) -> NDArray[np.uint8]:
    """The verified payload, in the front of the caller's memory `into`, or in fresh memory when that is None.

    Each chunk is verified as soon as it is read. Raises Damaged, naming the chunk, when a digest is wrong or the file ends
    early; OSError when the medium fails; and as `as_target` does.
    """
    payload = payload_memory(record) if into is None else as_target(into, record.payload_bytes, record.step)
    _fetch(device, record, payload, record.chunk_bytes)
    return payload


def verify_payload(device: Device, record: Record) -> bool:
    """Read a payload in memory of one chunk, for those who want to know only; True, or raises as `fetch_payload` does."""
    _fetch(device, record, aligned_buffer(align_up(min(record.chunk_bytes, record.payload_bytes))), 0)
    return True


def _fetch(device: Device, record: Record, memory: NDArray[np.uint8], stride: int) -> None:
    """Read and verify chunk after chunk, each `stride` bytes after the one before."""
    name = f"step {record.step} in slot {record.slot}"
    for index in range(len(record.digests)):
        length = chunk_length(record.payload_bytes, record.chunk_bytes, index)
        piece = memory[index * stride : index * stride + length]
        _fetch_chunk(device, record.payload_offset + index * record.chunk_bytes, piece, record.digests, index, name)


def _fetch_chunk(
    device: Device, offset: int, piece: NDArray[np.uint8], digests: Sequence[int], index: int, name: str
) -> None:
    """Fill `piece` with chunk `index` and verify it. Raises Damaged, beginning with `name`, or OSError."""
    try:
        device.read(offset, piece)
    except EOFError as error:
        raise Damaged(f"{name}: {error}") from error
    if digest(piece) != digests[index]:
        raise Damaged(f"{name}: chunk {index} of {len(digests)} is damaged")


def verified_chunks(
    device: Device, start: int, total_bytes: int, chunk_bytes: int, digests: Sequence[int], name: str
) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Each chunk's offset in a payload that begins at `start` of its file, and its verified bytes.

    The bytes lie in a buffer that is used again once the next chunk is asked for. Raises Damaged, beginning with `name`,
    when a digest is wrong or the file ends early; OSError when the medium fails.
    """
    if not digests:
        return
    size = align_up(min(chunk_bytes, total_bytes))
    memory = np.frombuffer(huge_memory(size * len(digests[: AHEAD + 1])), np.uint8)  # as the arena's (A2)
    buffers = [memory[start : start + size] for start in range(0, memory.size, size)]
    reading: deque[tuple[NDArray[np.uint8], Future[None]]] = deque()
    with ThreadPoolExecutor(READERS, thread_name_prefix="lastgood reader") as pool:

        def read_on(index: int) -> None:
            if index < len(digests):
                offset = start + index * chunk_bytes
                piece = buffers[index % len(buffers)][: chunk_length(total_bytes, chunk_bytes, index)]
                reading.append((piece, pool.submit(_fetch_chunk, device, offset, piece, digests, index, name)))

        for index in range(AHEAD):
            read_on(index)
        try:
            for index in range(len(digests)):
                read_on(index + AHEAD)
                piece, fetched = reading.popleft()
                fetched.result()
                yield index * chunk_bytes, piece
        finally:
            pool.shutdown(cancel_futures=True)


def rewrite_payload(device: Device, record: Record) -> None:
    """Write a payload again, byte for byte, where it lies, so that the next persist makes it durable (R3 fence-first)."""
    buffer = aligned_buffer(align_up(record.chunk_bytes))
    start = record.payload_offset
    for index in range(len(record.digests)):
        pages = buffer[: align_up(chunk_length(record.payload_bytes, record.chunk_bytes, index))]
        device.read(start, pages)
        device.write(start, pages)
        start += record.chunk_bytes
