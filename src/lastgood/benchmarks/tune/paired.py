"""What saving costs: iterations with and without saves, by turns, in one process, so that what drifts drifts for both.

    drain │ without … without │ one interval │ saving … saving │ drain │ without … without │ …
          │<───── timed ─────>│  not timed   │<──── timed ────>│

The timed part with saves begins right after one save and ends right after another, so it has the wake of as many as it has.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch

from ..train.loop import Cell, Loop, make_job
from ..train.ours import Lastgood


def repeats(cell: Cell, iteration_seconds: float) -> int:
    """Intervals in one timed part."""
    return max(1, math.ceil(cell.least_seconds / (cell.interval * iteration_seconds)))


def round_seconds(cell: Cell, iteration_seconds: float) -> float:
    """How long both parts take together, about."""
    return (2 * repeats(cell, iteration_seconds) + 1) * cell.interval * iteration_seconds


def paired(cell: Cell, saver: Lastgood, directory: str, count: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Seconds of an iteration without saves and with, a pair for each round: at least one, no more than fit."""
    torch.set_num_threads(1)
    end = time.monotonic() + seconds
    job = make_job(cell)
    for _ in range(2):
        job.compute()
        job.update()
    saver.begin(job, directory)
    for number in range(saver.warm_saves):
        saver.save(number - saver.warm_saves)
        saver.before_update()
        job.update()
    loop = Loop(cell, saver, job)
    loop.interval()

    def without() -> None:
        for _ in range(cell.interval):
            job.compute()
            saver.before_update()
            job.update()

    def timed(interval: Callable[[], None]) -> float:
        began = time.perf_counter()
        for _ in range(count):
            interval()
        return (time.perf_counter() - began) / (count * cell.interval)

    plain, saving = [], []
    while len(plain) < rounds:
        began = time.monotonic()
        saver.drain()
        plain.append(timed(without))
        loop.interval()
        saving.append(timed(loop.interval))
        now = time.monotonic()
        if now + (now - began) > end:
            break
    saver.drain()
    saver.close()
    return {"plain": plain, "saving": saving}
