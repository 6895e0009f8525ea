"""All figures of the core in one run: `lastgood bench core`."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lastgood.core import Store, WrongGeometry
from lastgood.core.digest import IMPLEMENTATION, copy_digest, digest

from . import raw
from .bandwidth import CHUNK, Cell, noise, opening_and_reading, saving, tiny
from .freshness import mean_age
from .start import cold_and_warm

Progress = Callable[[str], None]


def core_figures(parent: str | None, *, quick: bool, progress: Progress) -> dict[str, Any]:
    """Measure everything in a scratch directory under `parent`; the figures by the names that `--json` prints.

    Raises WrongGeometry, before anything is written, when the file system has too little room.
    """
    payloads = [256 * raw.MEGABYTE] if quick else [256 * raw.MEGABYTE, 1024 * raw.MEGABYTE]
    directory = tempfile.mkdtemp(prefix="lastgood-bench-", dir=parent)
    try:
        needed = 10 * payloads[-1]
        if shutil.disk_usage(directory).free < needed:
            raise WrongGeometry(f"{directory}: the benchmark needs {needed:,} bytes of disk; give another --directory")
        return _measure(directory, payloads, quick, progress)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measure(directory: str, payloads: list[int], quick: bool, progress: Progress) -> dict[str, Any]:
    figures: dict[str, Any] = {"implementation": IMPLEMENTATION, "cpus": os.cpu_count()}
    figures.update(_memory(progress, 5 if quick else 15))
    cells: list[Cell] = []
    for payload in payloads:
        cells += saving(directory, payload, 3 if quick else 5, progress)
    figures["persisted_over_raw"] = min(cell.ratio for cell in cells)
    progress("tiny saves")
    two, one = tiny(directory, 200 if quick else 1000)
    figures["tiny_over_bare"], figures["tiny_one_persist_over_bare"] = two.ratio, one.ratio
    progress("staleness under saturation")
    figures.update(_staleness(directory, 64 * raw.MEGABYTE if quick else payloads[0], 1.5 if quick else 6.0))
    progress("opening and reading")
    opened, read = opening_and_reading(directory, payloads[-1], 4 if quick else 8, 5)
    figures["open_over_records"], figures["read_over_raw"] = opened.ratio, read.ratio
    progress("starting")
    figures.update(cold_and_warm(directory))
    progress("a thousand saves")
    figures.update(_growth(directory))
    figures["cells"] = [asdict(cell) for cell in [*cells, two, one, opened, read]]
    return figures


def _memory(progress: Progress, repetitions: int) -> dict[str, float]:
    progress("memory: copy, digest")
    source = noise(256 * raw.MEGABYTE)
    buffer = raw.aligned_memory(CHUNK)
    ratios, digests, reads = [], [], []
    for _ in range(repetitions):
        copied = raw.copy_rate(source, buffer)
        both = _rate(lambda piece: copy_digest(piece, buffer), source)
        ratios.append(both / copied)
        digests.append(_rate(digest, source) / 1e9)
        reads.append(raw.memory_read_rate(source) / 1e9)
    return {
        "copy_digest_over_memcpy": statistics.median(ratios),
        "digest_gb_per_s": statistics.median(digests),
        "memory_read_gb_per_s": statistics.median(reads),
    }


def _rate(function: Callable[[Any], Any], source: Any) -> float:
    import time

    began = time.perf_counter()
    for offset in range(0, source.size, CHUNK):
        function(source[offset : offset + CHUNK])
    return float(source.size / (time.perf_counter() - began))


def _staleness(directory: str, payload: int, seconds: float) -> dict[str, float]:
    source = noise(payload)
    alone, oldest_first, fair = [], [], []
    for _ in range(3):
        alone.append(mean_age(directory, source, 1, seconds, fair=False))
        oldest_first.append(mean_age(directory, source, 4, seconds, fair=False))
        fair.append(mean_age(directory, source, 4, seconds, fair=True))
    one = statistics.median(alone)
    return {
        "staleness_4_over_1": statistics.median(oldest_first) / one,
        "staleness_fair_4_over_1": statistics.median(fair) / one,
    }


def _growth(directory: str) -> dict[str, float]:
    """Descriptors and resident memory before and after a thousand saves."""
    path = os.path.join(directory, "thousand")
    with Store.create(path, slot_bytes=100_000) as store:
        content = noise(100_000)
        for step in range(50):
            store.save(content, step=step)
        memory, descriptors = _resident_bytes(), len(os.listdir("/proc/self/fd"))
        for step in range(1000):
            store.save(content, step=step)
        figures = {
            "rss_growth_mb": (_resident_bytes() - memory) / raw.MEGABYTE,
            "descriptor_growth": float(len(os.listdir("/proc/self/fd")) - descriptors),
        }
    return figures


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
