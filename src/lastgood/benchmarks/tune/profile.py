"""What is measured before anything is recommended: the iteration, the device alone and with several saves, a restore.

Every measurement is a cell of `bench train` or a burst of saves, in a process of its own that leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
import math
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
from .deadline import Deadline
from .paired import paired, repeats, round_seconds

IN_FLIGHT = (1, 2, 4)
CAPTURE = "lazy"
FEWEST_SAVES, MOST_SAVES, BURST_SECONDS = 6, 40, 1.5
FIRST_INTERVAL, ATTEMPTS, ROUNDS, PART_SECONDS = 2, 6, 3, 0.7
CHECK_ROUNDS, CHECK_PART_SECONDS = 6, 1.5
SHARE = 0.25
"""Of the time that is left: what takes longer than that, and could be left out, is."""


class CannotProfile(RuntimeError):
    """A measurement failed. The message is one line."""


class Profiler:
    """Measures one job in a scratch directory, before a deadline."""

    def __init__(self, cell: Cell, directory: str, deadline: Deadline, progress: Callable[[str], None]) -> None:
        self._cell, self._directory, self._progress, self._deadline = cell, directory, progress, deadline
        self._setup_seconds = 0.0

    def profile(self) -> Profile:
        """Everything that does not depend on the interval."""
        self._progress("the iteration")
        cell = dataclasses.replace(self._cell, contender=Contender.name, interval=1)
        plain = self._alone(lambda place: run_cell(cell, Contender(), place))
        state_bytes, iteration = plain["state_bytes"], plain["iteration_seconds"]
        contention, loads = {}, []
        for in_flight in IN_FLIGHT:
            if contention and self._setup_seconds > SHARE * self._deadline.left:
                break
            self._progress(f"{in_flight} saves in flight")
            began = self._deadline.spent
            told = self._alone(lambda place, count=in_flight: burst(self._cell, count, place))
            self._setup_seconds = self._deadline.spent - began
            contention[in_flight] = Contention(told["save_seconds"], told["bytes_per_second"])
            loads.append(told["load_seconds"])
        rate = self._raw_rate(state_bytes, max(each.bytes_per_second for each in contention.values()))
        return Profile(state_bytes, iteration, rate, statistics.median(loads), contention)

    def _raw_rate(self, state_bytes: int, least: float) -> float:
        """Of plain writes; where that takes too long, what saves were seen to reach."""
        if Bandwidth.bytes_written(state_bytes) / least > SHARE * self._deadline.left:
            return least
        self._progress("the device")
        return Bandwidth(self._directory, max(1, round(state_bytes / 2**20))).sample()

    def setting(self, profile: Profile, budget: float) -> Setting:
        """Measure what a save costs at an interval, decide, and measure there, until the same is decided twice.

        A save costs more the rarer it is (memory that was left alone is slow), so the interval is not known beforehand.
        """
        in_flight = fewest_in_flight(profile)
        interval = max(FIRST_INTERVAL, steps_to_keep_up(profile, in_flight))
        held: dict[int, list[float]] = defaultdict(list)
        for _ in range(ATTEMPTS):
            if held and self._seconds_of(interval, profile) > self._deadline.left:
                break
            while interval > 1 and self._seconds_of(interval, profile) > self._deadline.left:
                interval //= 2
            self._progress(f"saves every {interval} steps")
            held[interval].append(self.held_seconds(in_flight, interval, profile))
            costs = {each: statistics.median(samples) for each, samples in held.items()}
            made = choose(profile, in_flight, costs, budget, int(LAZY_STAGING * profile.state_bytes))
            if len(held[made.interval_steps]) > 1:
                break
            interval = made.interval_steps
        return made

    def _seconds_of(self, interval: int, profile: Profile) -> float:
        """Of one round at this interval, with what comes before it."""
        cell = self._at(interval, PART_SECONDS)
        return self._setup_seconds + round_seconds(cell, profile.iteration_seconds)

    def held_seconds(self, in_flight: int, interval: int, profile: Profile) -> float:
        """What one save adds to the time of its interval."""
        cell = self._at(interval, PART_SECONDS)
        pairs = self._pairs(cell, in_flight, profile, ROUNDS, self._deadline.left - self._setup_seconds / 2)
        return max(1e-6, statistics.median(saving - plain for plain, saving in pairs) * interval)

    def check_seconds(self, setting: Setting, profile: Profile) -> float:
        """How long `overheads` takes, about."""
        cell = self._at(setting.interval_steps, CHECK_PART_SECONDS)
        return self._setup_seconds + CHECK_ROUNDS * round_seconds(cell, profile.iteration_seconds)

    def overheads(self, setting: Setting, profile: Profile) -> list[float]:
        """Measured at the setting: what saving adds to the time without, in each round."""
        self._deadline = Deadline(60.0 + 5.0 * self.check_seconds(setting, profile))
        cell = self._at(setting.interval_steps, CHECK_PART_SECONDS)
        pairs = self._pairs(cell, setting.in_flight, profile, CHECK_ROUNDS, math.inf)
        return [saving / plain - 1 for plain, saving in pairs]

    def _at(self, interval: int, least_seconds: float) -> Cell:
        return dataclasses.replace(self._cell, interval=interval, least_seconds=least_seconds)

    def _pairs(
        self, cell: Cell, in_flight: int, profile: Profile, rounds: int, seconds: float
    ) -> list[tuple[float, float]]:
        count = repeats(cell, profile.iteration_seconds)
        saver = Lastgood(CAPTURE, in_flight)
        told = self._alone(lambda place: paired(cell, saver, place, count, rounds, seconds))
        return list(zip(told["plain"], told["saving"], strict=True))

    def _alone(self, work: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        left = self._deadline.left
        with scratch(self._directory) as place:
            where = os.getcwd() if self._cell.job else place
            told = run_alone(lambda: work(place), where, left) if left > 0 else {"error": "no time was left"}
        if "error" in told:
            more = "; give more --seconds" if self._deadline.left <= 0 else ""
            raise CannotProfile(f"the job could not be profiled: {told['error']}{more}")
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
