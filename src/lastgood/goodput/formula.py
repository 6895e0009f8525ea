"""The closed form that PCcheck's artifact computes instead of a replay, kept to compare with published figures.

    failures    = Σ over samples of |change in GPUs| // 4, starting from 0 GPUs
    redone      = load + what the system redoes on average, t the iteration without checkpoints, f the interval:
                      ideal, gpm            f·t/2
                      checkfreq, gemini     f·t
                      pccheck               f·t/2 + t·min(Tw/t, N·f)/2
    goodput     = (T − failures·redone) · iterations per second with checkpoints / T

Where it departs from a replay: the first GPUs and all that come later count as failures, a bulk loss counts once for
every four GPUs, a job with half of its GPUs or none works at full speed, a restart takes no time, a failure during a
recovery costs a whole one again, and what a failure costs does not depend on when it comes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from .trace import Trace

PUBLISHED = "published.json"
"""Throughputs and write times of the artifact's VGG16 logs."""
GPUS_PER_FAILURE = 4


def failures(trace: Trace) -> int:
    """As the artifact counts them."""
    before = [0, *trace.gpus]
    return sum(abs(now - then) // GPUS_PER_FAILURE for then, now in zip(before, trace.gpus, strict=False))


@dataclass(frozen=True)
class Series:
    """One system's measurements at some intervals."""

    system: str
    iteration_seconds: float
    load_seconds: float
    in_flight: int
    intervals: tuple[int, ...]
    iterations_per_second: tuple[float, ...]
    write_seconds: tuple[float, ...]

    def redone_seconds(self, index: int) -> float:
        """What one failure costs."""
        t, f = self.iteration_seconds, self.intervals[index]
        if self.system in ("checkfreq", "gemini"):
            return self.load_seconds + f * t
        redone = self.load_seconds + f * t / 2
        if self.system == "pccheck":
            redone += t * min(self.write_seconds[index] / t, self.in_flight * f) / 2
        return redone

    def goodput(self, trace: Trace) -> tuple[float, ...]:
        """Useful iterations per second at each interval."""
        duration, count = trace.duration_seconds, failures(trace)
        return tuple(
            (duration - count * self.redone_seconds(index)) * rate / duration
            for index, rate in enumerate(self.iterations_per_second)
        )


def published() -> list[Series]:
    """The series of the VGG16 figure."""
    table: dict[str, Any] = json.loads(resources.files(__package__).joinpath(PUBLISHED).read_text(encoding="utf-8"))
    return [
        Series(
            system=system,
            iteration_seconds=table["iteration_seconds"],
            load_seconds=table["load_seconds"],
            in_flight=table["in_flight"],
            intervals=tuple(table["intervals"]),
            iterations_per_second=tuple(entry["iterations_per_second"]),
            write_seconds=tuple(entry.get("write_seconds", [0.0] * len(table["intervals"]))),
        )
        for system, entry in table["systems"].items()
    ]
