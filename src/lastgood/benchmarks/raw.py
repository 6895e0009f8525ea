"""Raw limits of this machine, measured with nothing of ours in the way: plain pwrite, pread, fdatasync and memcpy.

Every function measures once and returns seconds or bytes per second; whoever compares interleaves the calls.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

MEGABYTE = 2**20

Prepare = Callable[[NDArray[np.uint8], int], object]
"""What a thread does with a chunk's buffer and offset before it writes it."""


def aligned_memory(length: int) -> NDArray[np.uint8]:
    """Page-aligned memory, in huge pages where the kernel has them, as the store's own staging memory is."""
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def open_direct(path: str, length: int) -> int:
    """A preallocated file opened with O_DIRECT, or without where that is refused."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o666)
    except OSError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    os.posix_fallocate(descriptor, 0, length)
    return descriptor


def write_payload(
    descriptor: int,
    buffers: NDArray[np.uint8],
    payload: int,
    chunk: int,
    threads: int,
    prepare: Prepare | None = None,
) -> None:
    """Overwrite `payload` bytes in chunks from reused buffers with some threads, then fdatasync; `prepare` each first."""
    offsets = iter(range(0, payload, chunk))
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                offset = next(offsets, None)
            if offset is None:
                return
            start = offset % (buffers.size - chunk + 1) // chunk * chunk
            piece = buffers[start : start + min(chunk, payload - offset)]
            if prepare is not None:
                prepare(piece, offset)
            os.pwrite(descriptor, piece.data, offset)

    helpers = [threading.Thread(target=work) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    os.fdatasync(descriptor)


def write_rate(
    descriptors: list[int],
    buffers: NDArray[np.uint8],
    payload: int,
    chunk: int,
    threads: int,
    saves: int,
    prepare: Prepare | None = None,
) -> float:
    """Persisted bytes per second over several payloads, one after the other; see `write_payload`."""
    began = time.perf_counter()
    for save in range(saves):
        write_payload(descriptors[save % len(descriptors)], buffers, payload, chunk, threads, prepare)
    return saves * payload / (time.perf_counter() - began)


def read_seconds(descriptor: int, into: NDArray[np.uint8], chunk: int) -> float:
    """Seconds to read all of `into` in chunks."""
    began = time.perf_counter()
    for offset in range(0, into.size, chunk):
        os.preadv(descriptor, [into[offset : offset + chunk].data], offset)
    return time.perf_counter() - began


def small_pairs_seconds(descriptor: int, page: NDArray[np.uint8], pairs: int) -> float:
    """Seconds for some pairs of a one-page pwrite and an fdatasync."""
    began = time.perf_counter()
    for pair in range(pairs):
        os.pwrite(descriptor, page.data, pair * page.size)
        os.fdatasync(descriptor)
    return time.perf_counter() - began


def copy_rate(source: NDArray[np.uint8], buffer: NDArray[np.uint8]) -> float:
    """Bytes per second of copying `source` piece by piece into one reused buffer."""
    began = time.perf_counter()
    for offset in range(0, source.size, buffer.size):
        buffer[:] = source[offset : offset + buffer.size]
    return source.size / (time.perf_counter() - began)


def copying(source: NDArray[np.uint8]) -> Prepare:
    """Each chunk is copied from `source` first: the least that a save does whose caller goes on."""
    return lambda piece, offset: np.copyto(piece, source[offset : offset + piece.size])


def reading(piece: NDArray[np.uint8], offset: int) -> object:
    """Each chunk's bytes are read once where they lie: the least that a digest does, without a copy."""
    return piece.view(np.uint64).sum()


def memory_read_rate(source: NDArray[np.uint8]) -> float:
    """Bytes per second of reading memory once: the sum of its 64-bit words."""
    began = time.perf_counter()
    reading(source, 0)
    return source.size / (time.perf_counter() - began)
