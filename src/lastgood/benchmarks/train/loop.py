"""One cell: the training loop with one contender, at one interval, measured once it is steady.

    warm saves │ interval … save │ interval … save │ … │ interval … save │ drain │ last save, two more updates, load, compare
               │  not measured   │<───────────── measured: whole intervals ────>│

What is measured begins right after one save and ends right after another, so every interval in it has the save that it
pays for. The last save is made to be read back: the updates that follow it at once would show in a torn copy.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .contender import Contender
from .job import Job, differences, own_job
from .usage import forget_peak, resident_bytes, use_of

FEWEST_SAVES = 2


@dataclass(frozen=True)
class Cell:
    """What to run."""

    contender: str
    state_mb: int
    interval: int
    step_kind: str
    step_seconds: float = 0.1
    least_seconds: float = 3.0
    """Measured up to the first whole interval after this, with two saves or more in it."""
    job: str = ""
    """Somebody's own, `module:function`, in the place of ours."""
    is_read_back: bool = True


class Loop:
    """The loop of one cell."""

    def __init__(self, cell: Cell, contender: Contender, job: Job) -> None:
        self.cell, self.contender, self.job = cell, contender, job
        self.step = 0
        self.stalls: list[float] = []
        self.staleness: list[int] = []
        self.ages: list[float] = []
        self.delays: list[float] = []
        self.step_cpu_seconds = 0.0
        """What forward, backward and update took, on the thread that trains."""
        self._newest: int | None = None
        self._reached: dict[int, float] = {}

    def iterate(self) -> None:
        """One iteration, with what is due after it."""
        self.step += 1
        self._training(self.job.compute)
        began = time.perf_counter()
        self.contender.before_update()
        waited = time.perf_counter() - began
        self._training(self.job.update)
        self._reached[self.step] = began = time.perf_counter()
        if self.step % self.cell.interval == 0:
            self.contender.save(self.step)
            self.stalls.append(time.perf_counter() - began)
        if self.stalls:
            self.stalls[-1] += waited
        self._look()

    def _training(self, part: Callable[[], None]) -> None:
        began = time.thread_time()
        part()
        self.step_cpu_seconds += time.thread_time() - began

    def _look(self) -> None:
        newest = self.contender.newest_durable_step()
        if newest is not None:
            self.staleness.append(self.step - newest)
            if newest in self._reached:
                self.ages.append(time.perf_counter() - self._reached[newest])
                if newest != self._newest:
                    self.delays.append(self.ages[-1])
            self._newest = newest

    def interval(self) -> None:
        """So many iterations; the last one saves."""
        for _ in range(self.cell.interval):
            self.iterate()


def make_job(cell: Cell) -> Job:
    """The job of this cell."""
    return own_job(cell.job) if cell.job else Job(cell.state_mb, cell.step_kind, cell.step_seconds)


def run_cell(cell: Cell, contender: Contender, directory: str) -> dict[str, Any]:
    """Measure one cell in this process. Times are in seconds; memory is what is added to the job's own."""
    torch.set_num_threads(1)
    job = make_job(cell)
    for _ in range(2):
        job.compute()
        job.update()
    forget_peak()
    before = resident_bytes("VmRSS")
    contender.begin(job, directory)
    for number in range(contender.warm_saves):
        contender.save(-contender.warm_saves + number)
        contender.before_update()
        job.update()
    contender.drain()
    loop = Loop(cell, contender, job)
    for _ in range(1 + contender.places // max(1, cell.interval)):
        loop.interval()
    measured = measure(loop)
    began = time.perf_counter()
    contender.drain()
    measured["drain_seconds"] = time.perf_counter() - began
    measured["extra_bytes"] = resident_bytes("VmHWM") - before
    measured["state_bytes"] = job.state_bytes
    measured["wrong"] = read_back(loop) if cell.is_read_back else []
    contender.close()
    return measured


def measure(loop: Loop) -> dict[str, Any]:
    """Whole intervals until the time is over."""
    cell, contender = loop.cell, loop.contender
    loop.stalls, loop.staleness, loop.ages, loop.delays = [], [], [], []
    session, dropped, complete = os.getsid(0), contender.dropped, contender.durable_count()
    first, use, step_cpu, began = loop.step, use_of(session), loop.step_cpu_seconds, time.perf_counter()
    while True:
        loop.interval()
        seconds = time.perf_counter() - began
        saves = (loop.step - first) // cell.interval
        if saves >= FEWEST_SAVES and seconds >= cell.least_seconds:
            break
    used = use_of(session)
    return {
        "iteration_seconds": seconds / (loop.step - first),
        "iterations": loop.step - first,
        "saves": saves,
        "complete": contender.durable_count() - complete,
        "dropped": contender.dropped - dropped,
        "stall_seconds": statistics.median(loop.stalls) if loop.stalls else 0.0,
        "staleness": statistics.median(loop.staleness) if loop.staleness else None,
        "oldest_seconds": max(loop.ages, default=None),
        "longest_seconds": max(loop.delays, default=None),
        "cpu_seconds": used.cpu_seconds - use.cpu_seconds - (loop.step_cpu_seconds - step_cpu),
        "written_bytes": used.written_bytes - use.written_bytes,
    }


def read_back(loop: Loop) -> list[str]:
    """Save once more, go on at once, then load: what is not as it was when `save` was called."""
    contender, job = loop.contender, loop.job
    if not contender.warm_saves:
        return []
    contender.drain()
    expected = {name: tensor.clone() for name, tensor in job.tensors().items()}
    contender.save(loop.step + 1)
    for _ in range(2):
        contender.before_update()
        job.update()
    contender.drain()
    if contender.newest_durable_step() != loop.step + 1:
        return ["the last save did not become complete"]
    return differences(expected, contender.load())
