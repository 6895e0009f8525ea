"""All figures of the core in one run: `lastgood bench core`."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lastgood.core import Store, WrongGeometry
from lastgood.core.digest import IMPLEMENTATION, copy_digest, digest

from . import raw
from .bandwidth import CHUNK, COPYING, READING, Cell, noise, opening_and_reading, saving, tiny
from .freshness import mean_age
from .start import cold_and_warm
from .stopping import scratch

Progress = Callable[[str], None]


def core_figures(parent: str | None, *, quick: bool, progress: Progress) -> dict[str, Any]:
    """Measure everything in a scratch directory under `parent`; the figures by the names that `--json` prints.

    Raises WrongGeometry, before anything is written, when the file system has too little room.
    """
    payloads = [256 * raw.MEGABYTE] if quick else [256 * raw.MEGABYTE, 1024 * raw.MEGABYTE]
    with scratch("lastgood-bench-", parent) as directory:
        needed = 10 * payloads[-1]
        if shutil.disk_usage(directory).free < needed:
            raise WrongGeometry(f"{directory}: the benchmark needs {needed:,} bytes of disk; give another --directory")
        return _measure(directory, payloads, quick, progress)


def _measure(directory: str, payloads: list[int], quick: bool, progress: Progress) -> dict[str, Any]:
    figures: dict[str, Any] = {"implementation": IMPLEMENTATION, "cpus": os.cpu_count()}
    figures.update(_memory(progress, 5 if quick else 15))
    cells: list[Cell] = []
    for payload in payloads:
        cells += saving(directory, payload, 3 if quick else 5, progress)
    figures["persisted_over_raw"] = min(cell.ratio for cell in cells if not cell.name.endswith((COPYING, READING)))
    figures["persisted_over_copied_raw"] = min(cell.ratio for cell in cells if cell.name.endswith(COPYING))
    figures["persisted_over_read_raw"] = min(cell.ratio for cell in cells if cell.name.endswith(READING))
    progress("tiny saves")
    two, one, stream = tiny(directory, 200 if quick else 1000)
    figures["tiny_over_bare"], figures["tiny_one_persist_over_bare"] = two.ratio, one.ratio
    figures["tiny_stream_over_bare"] = stream.ratio
    progress("staleness under saturation")
    figures.update(_staleness(directory, 64 * raw.MEGABYTE if quick else payloads[0], 1.0 if quick else 6.0))
    progress("opening and reading")
    opened, read = opening_and_reading(directory, payloads[-1], 4 if quick else 8, 5)
    figures["open_over_records"], figures["read_over_raw"] = opened.ratio, read.ratio
    progress("starting")
    figures.update(cold_and_warm(directory))
    progress("a thousand saves")
    figures.update(_growth(directory))
    figures["cells"] = [asdict(cell) for cell in [*cells, two, one, stream, opened, read]]
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
    ways = {  # in flight, staging memory, fair
        "one": (1, payload, False),
        "four": (4, payload, False),
        "fair": (4, payload, True),
        "one, half the staging memory": (1, payload // 2, False),
        "four, half the staging memory": (4, payload // 2, False),
    }
    ages: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3):
        for name, (in_flight, staging, fair) in ways.items():
            ages[name].append(mean_age(directory, source, in_flight, staging, seconds, fair=fair))
    one, four, shared, one_half, four_half = (statistics.median(samples) for samples in ages.values())
    return {
        "staleness_4_over_1": four / one,
        "staleness_fair_4_over_1": shared / one,
        "staleness_half_staging_4_over_1": four_half / one_half,
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
