"""How much of the device a store reaches: saving, tiny saves, opening and reading, against raw calls in the same run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lastgood.core import Store

from . import raw

CHUNK = 4 * raw.MEGABYTE
RAW_THREADS = (1, 2, 4)
COPYING = ", over raw calls that copy first"
READING = ", over raw calls that read the bytes first"


@dataclass(frozen=True)
class Cell:
    """One row of detail: what was measured, the store's figure, the raw one, their ratio, and all samples of it."""

    name: str
    ours: float
    limit: float
    ratio: float
    samples: list[float]


def noise(length: int) -> NDArray[np.uint8]:
    """Incompressible bytes."""
    return np.random.default_rng(0).integers(0, 256, length, dtype=np.uint8)


def saving(directory: str, payload: int, repetitions: int, progress: Callable[[str], None]) -> list[Cell]:
    """Persisted bandwidth of `Store.save` with 1, 2 and 4 in flight, over the best raw overwrite of the same bytes.

    Raw and store take turns, raw with one, two and four threads, and again where each thread first copies its chunk, or
    only reads it: what a copy, and a digest without one, take from the device on this machine. Files are written once
    beforehand, since first writes into fresh blocks are another matter.
    """
    saves = max(4, 2**30 // payload)
    source = noise(payload)
    buffers = raw.aligned_memory(payload)
    buffers[:] = source  # memory never written is one page of zeros, which every cache holds
    descriptors = [raw.open_direct(os.path.join(directory, f"raw-{payload}-{index}"), payload) for index in range(3)]
    raw.write_rate(descriptors, buffers, payload, CHUNK, 2, 3)
    ways = {"": None, COPYING: raw.copying(source), READING: raw.reading}
    cells = []
    for in_flight in (1, 2, 4):
        name = f"save {payload // raw.MEGABYTE} MB, {in_flight} in flight"
        progress(name)
        path = os.path.join(directory, f"store-{payload}-{in_flight}")
        with Store.create(path, slot_bytes=payload, in_flight=in_flight, keep=1) as store:
            for step in range(in_flight + 1):
                store.save(source, step=step).wait()
            _save_rate(store, source, saves)  # staging memory is touched for the first time here
            ours: list[float] = []
            limits: dict[tuple[str, int], list[float]] = {(way, threads): [] for way in ways for threads in RAW_THREADS}
            for _ in range(repetitions):
                for threads in RAW_THREADS:
                    for way, prepare in ways.items():
                        rate = raw.write_rate(descriptors, buffers, payload, CHUNK, threads, saves, prepare)
                        limits[way, threads].append(rate)
                    ours.append(_save_rate(store, source, saves))
        mine = statistics.median(ours)
        for way in ways:
            # The best median, not the median of the best: the largest of several noisy samples is mostly noise.
            limit = max(statistics.median(limits[way, threads]) for threads in RAW_THREADS)
            cells.append(Cell(name + way, mine, limit, mine / limit, ours))
        _remove(path)
    for descriptor in descriptors:
        os.close(descriptor)
    return cells


def _save_rate(store: Store, source: NDArray[np.uint8], saves: int) -> float:
    began = time.perf_counter()
    tickets = [store.save(source, step=step) for step in range(saves)]
    for ticket in tickets:
        ticket.wait()
    return saves * source.size / (time.perf_counter() - began)


def tiny(directory: str, repetitions: int) -> list[Cell]:
    """Seconds of a 4 KiB save until durable, with two persists and with one, over two bare pwrite + fdatasync pairs.

    The third row is seconds per save of a stream of them, four in flight, two persists.
    """
    descriptor = raw.open_direct(os.path.join(directory, "raw-tiny"), 2 * 4096)
    page = raw.aligned_memory(4096)
    content = noise(4096)
    cells = []
    for persists in (2, 1):
        path = os.path.join(directory, f"tiny-{persists}")
        with Store.create(path, slot_bytes=4096, persists=persists) as store:
            ours, limits = [], []
            for _ in range(repetitions + 20):
                began = time.perf_counter()
                store.save(content, step=1).wait()
                ours.append(time.perf_counter() - began)
                limits.append(raw.small_pairs_seconds(descriptor, page, 2))
        mine, bare = statistics.median(ours[20:]), statistics.median(limits[20:])
        cells.append(Cell(f"tiny save, {persists} persists, seconds", mine, bare, mine / bare, []))
    with Store.create(os.path.join(directory, "tiny-stream"), slot_bytes=4096, in_flight=4) as store:
        rounds = range(11)
        ours = [len(content) / _save_rate(store, content, repetitions // 10) for _ in rounds]
        limits = [raw.small_pairs_seconds(descriptor, page, repetitions // 5) / (repetitions // 10) for _ in rounds]
    mine, bare = statistics.median(ours[1:]), statistics.median(limits[1:])
    cells.append(Cell("tiny saves in a row, 4 in flight, seconds each", mine, bare, mine / bare, ours[1:]))
    os.close(descriptor)
    return cells


def opening_and_reading(directory: str, payload: int, slots: int, repetitions: int) -> list[Cell]:
    """Seconds to open a full store over reading its record areas; reading the newest, verified, over raw reading."""
    path = os.path.join(directory, "opened")
    source = noise(payload)
    with Store.create(path, slot_bytes=payload, in_flight=slots - 1, keep=1) as store:
        for step in range(slots):
            store.save(source, step=step).wait()
        newest = store.newest()
        assert newest is not None
        slot, area = newest.slot, newest.payload_offset
    names = [os.path.join(path, f"slot-{index:04d}") for index in range(slots)]
    into = raw.aligned_memory(-(-payload // 4096) * 4096)
    opened, areas, reading, limits = [], [], [], []
    for _ in range(repetitions):
        areas.append(_read_areas(names, area))
        began = time.perf_counter()
        store = Store.open(path)
        opened.append(time.perf_counter() - began)
        began = time.perf_counter()
        store.read(into=into)
        reading.append(payload / (time.perf_counter() - began))
        store.close()
        descriptor = raw.open_direct(names[slot], 0 + area + payload)
        limits.append(payload / raw.read_seconds(descriptor, into, CHUNK))
        os.close(descriptor)
    _remove(path)
    median = statistics.median
    return [
        Cell("open, seconds", median(opened), median(areas), median(opened) / median(areas), []),
        Cell("read newest", median(reading), median(limits), median(reading) / median(limits), []),
    ]


def _read_areas(names: list[str], area: int) -> float:
    """Seconds to read the record areas with plain calls: open, read, decode nothing, close."""
    memory = raw.aligned_memory(area)
    began = time.perf_counter()
    for name in names:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECT)
        os.preadv(descriptor, [memory.data], 0)
        os.close(descriptor)
    return time.perf_counter() - began


def _remove(path: str) -> None:
    for name in os.listdir(path):
        os.unlink(os.path.join(path, name))
    os.rmdir(path)
