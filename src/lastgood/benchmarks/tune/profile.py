"""What is measured before anything is recommended: the iteration, the device alone and with several saves, a restore.

Every measurement is a cell of `bench train` or a burst of saves, in a process of its own that leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
import os
import queue
import shutil
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..train.contender import Contender
from ..train.loop import Cell, make_job, run_cell
from ..train.ours import LAZY_STAGING, Lastgood
from ..train.process import run_alone
from ..train.sweep import Bandwidth
from .choose import Contention, Profile, Setting, choose, fewest_in_flight, steps_to_keep_up

IN_FLIGHT = (1, 2, 4)
CAPTURE = "lazy"
FEWEST_SAVES, MOST_SAVES, BURST_SECONDS = 6, 40, 1.5
FIRST_INTERVAL, ATTEMPTS = 5, 4
CHECK_ROUNDS = 3


class CannotProfile(RuntimeError):
    """A measurement failed. The message is one line."""


class Profiler:
    """Measures one job in a scratch directory."""

    def __init__(self, cell: Cell, directory: str, progress: Callable[[str], None]) -> None:
        self._cell, self._directory, self._progress = cell, directory, progress

    def profile(self) -> Profile:
        """Everything that does not depend on the interval."""
        self._progress("the iteration")
        plain = self._run(Contender(), interval=5)
        state_bytes, iteration = plain["state_bytes"], plain["iteration_seconds"]
        contention, loads = {}, []
        for in_flight in IN_FLIGHT:
            self._progress(f"{in_flight} saves in flight")
            told = self._alone(lambda place, count=in_flight: burst(self._cell, count, place))
            contention[in_flight] = Contention(told["save_seconds"], told["bytes_per_second"])
            loads.append(told["load_seconds"])
        self._progress("the device")
        rate = Bandwidth(self._directory, max(1, round(state_bytes / 2**20))).sample()
        return Profile(state_bytes, iteration, rate, statistics.median(loads), contention)

    def setting(self, profile: Profile, budget: float) -> Setting:
        """Measure what a save costs at an interval, decide, and measure there, until the same is decided twice.

        A save costs more the rarer it is (memory that was left alone is slow), so the interval is not known beforehand.
        """
        in_flight = fewest_in_flight(profile)
        interval = max(FIRST_INTERVAL, steps_to_keep_up(profile, in_flight))
        held: dict[int, list[float]] = defaultdict(list)
        for _ in range(ATTEMPTS):
            self._progress(f"saves every {interval} steps")
            held[interval].append(self.held_seconds(in_flight, interval))
            cost = statistics.median(held[interval])
            made = choose(profile, in_flight, cost, budget, int(LAZY_STAGING * profile.state_bytes))
            if made.interval_steps == interval and len(held[interval]) > 1:
                break
            interval = made.interval_steps
        return made

    def held_seconds(self, in_flight: int, interval: int) -> float:
        """What one save adds to the time of its interval; the iteration without saves is measured beside it."""
        plain = self._run(Contender(), interval=interval)["iteration_seconds"]
        saving = self._run(Lastgood(CAPTURE, in_flight), interval=interval)["iteration_seconds"]
        return float(max(1e-6, (saving - plain) * interval))

    def overhead(self, setting: Setting) -> float:
        """Measured at the setting: the median over rounds of what saving adds to the time without."""
        ratios = []
        for number in range(CHECK_ROUNDS):
            self._progress(f"the recommendation, {number + 1} of {CHECK_ROUNDS}")
            held = self.held_seconds(setting.in_flight, setting.interval_steps)
            plain = self._run(Contender(), interval=5)["iteration_seconds"]
            ratios.append(held / (setting.interval_steps * plain))
        return statistics.median(ratios)

    def _run(self, contender: Contender, interval: int) -> dict[str, Any]:
        cell = dataclasses.replace(self._cell, contender=contender.name, interval=interval)
        return self._alone(lambda place: run_cell(cell, contender, place))

    def _alone(self, work: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        with scratch(self._directory) as place:
            told = run_alone(lambda: work(place), os.getcwd() if self._cell.job else place)
        if "error" in told:
            raise CannotProfile(f"the job could not be profiled: {told['error']}")
        if told.get("wrong"):
            raise CannotProfile(f"a checkpoint was not what was saved: {', '.join(told['wrong'][:3])}")
        return told


@contextmanager
def scratch(directory: str) -> Iterator[str]:
    """A folder for one measurement."""
    place = os.path.join(directory, "cell")
    os.mkdir(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def burst(cell: Cell, in_flight: int, directory: str) -> dict[str, Any]:
    """Saves back to back, `in_flight` at once: median seconds until durable, bytes a second in all; then a restore."""
    job, saver = make_job(cell), Lastgood(CAPTURE, in_flight)
    for _ in range(2):
        job.compute()
        job.update()
    saver.begin(job, directory)
    for number in range(saver.warm_saves):
        saver.save(number)
        job.update()
    saver.drain()
    tickets: queue.SimpleQueue[tuple[Any, float] | None] = queue.SimpleQueue()
    took: list[float] = []

    def watch() -> None:
        while (entry := tickets.get()) is not None:
            entry[0].wait()
            took.append(time.perf_counter() - entry[1])

    watcher = threading.Thread(target=watch)
    watcher.start()
    began, step = time.perf_counter(), saver.warm_saves
    while step < saver.warm_saves + FEWEST_SAVES or (
        step < saver.warm_saves + MOST_SAVES and time.perf_counter() - began < BURST_SECONDS
    ):
        asked = time.perf_counter()
        tickets.put((saver.checkpointer.save(step), asked))
        job.update()
        step += 1
    tickets.put(None)
    watcher.join()
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    saver.load()
    loaded = time.perf_counter() - began
    saver.close()
    return {
        "save_seconds": statistics.median(took),
        "bytes_per_second": len(took) * job.state_bytes / seconds,
        "load_seconds": loaded,
    }
