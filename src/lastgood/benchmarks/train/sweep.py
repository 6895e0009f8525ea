"""The sweep: blocks of cells that belong together, in rounds, with the raw bandwidth and the baseline in each block.

    round ─▶ (state, interval, step) ─▶ raw bandwidth, no checkpoints, every contender in an order drawn anew

A slowdown is a contender's iteration over that of no checkpoints in the same block; figures are medians over rounds.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch

import lastgood.models as models
from lastgood.core import WrongGeometry

from .. import raw
from ..bandwidth import CHUNK, RAW_THREADS, noise
from ..stopping import Stopped, scratch
from .contender import KEPT
from .field import BASELINE, FIELD, IN_FLIGHT
from .job import Job
from .loop import Cell, run_cell
from .process import run_alone

RAW_BYTES_LIMIT = 256 * raw.MEGABYTE
RAW_BYTES, MOST_RAW_SAVES = 512 * raw.MEGABYTE, 8
"""Written in one sample of the raw bandwidth: so much, but one payload at least and eight at most."""


class Block(NamedTuple):
    """Cells that are compared with each other."""

    state_mb: int
    interval: int
    step_kind: str
    contenders: tuple[str, ...]
    """The baseline among them."""


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    contenders: tuple[str, ...]
    states_mb: tuple[int, ...]
    intervals: tuple[int, ...]
    step_kinds: tuple[str, ...]
    step_seconds: float = 0.1
    repetitions: int = 3
    least_seconds: float = 3.0
    limit_seconds: float = float("inf")
    """Counted from the start of the command: no round begins that would not be over by then."""
    only: tuple[Block, ...] = ()
    """These blocks instead of every combination."""

    def blocks(self) -> Iterator[Block]:
        """What is compared within itself."""
        if self.only:
            yield from self.only
            return
        for state_mb in self.states_mb:
            for step_kind in self.step_kinds:
                for interval in self.intervals:
                    yield Block(state_mb, interval, step_kind, self.contenders)

    @property
    def cell_count(self) -> int:
        """Cells of one round."""
        return sum(len(block.contenders) for block in self.blocks())

    @property
    def disk_bytes(self) -> int:
        """What the sweep needs at most: a store of ours, or what a peer keeps and writes, and the raw files."""
        slots = max(IN_FLIGHT) + KEPT + 1
        return int(1.2 * slots * self.largest_mb * raw.MEGABYTE) + 3 * RAW_BYTES_LIMIT

    @property
    def largest_mb(self) -> int:
        """Of a state."""
        return max(block.state_mb for block in self.blocks())

    def refuse_too_little_room(self, directory: str) -> None:
        """Raise WrongGeometry where the sweep cannot end well: a state and its copy lie in memory, saves on the disk."""
        memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // raw.MEGABYTE
        if 2 * self.largest_mb > memory_mb:
            raise WrongGeometry(
                f"--state-mb {self.largest_mb}: a state and its copy do not fit into the {memory_mb:,} MB of memory"
                " of this machine; give less"
            )
        if shutil.disk_usage(directory).free < self.disk_bytes:
            raise WrongGeometry(
                f"{directory}: the benchmark needs {self.disk_bytes:,} bytes of disk; give another --directory"
            )


@dataclass
class Samples:
    """What was measured so far."""

    raw_rates: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    cells: dict[Cell, list[dict[str, Any]]] = field(default_factory=dict)
    rounds: int = 0
    stopped: Stopped | None = None
    """What ended it early."""


def sweep(plan: Plan, parent: str | None, progress: Callable[[Cell | None, Samples], None], began: float) -> Samples:
    """Measure; what was measured so far is returned when a signal ends it. Nothing is left behind.

    Raises WrongGeometry, before anything is written, when memory or the file system are too small.
    """
    samples = Samples()
    try:
        with scratch("lastgood-bench-", parent) as directory:
            plan.refuse_too_little_room(directory)
            prepare(directory)
            bandwidth = Bandwidth(directory, plan.largest_mb)
            for number in range(plan.repetitions):
                round_began = time.monotonic()
                one_round(plan, number, directory, bandwidth, samples, progress)
                samples.rounds += 1
                if 2 * time.monotonic() - round_began - began > plan.limit_seconds:
                    break
    except Stopped as stopped:
        samples.stopped = stopped
    progress(None, samples)
    return samples


def one_round(
    plan: Plan,
    number: int,
    directory: str,
    bandwidth: Bandwidth,
    samples: Samples,
    progress: Callable[[Cell | None, Samples], None],
) -> None:
    """Every block once."""
    for state_mb, interval, step_kind, contenders in plan.blocks():
        samples.raw_rates.append(bandwidth.sample())
        samples.loads.append(os.getloadavg()[0])
        order = [name for name in contenders if name != BASELINE]
        random.Random(f"{number} {state_mb} {interval} {step_kind}").shuffle(order)
        baseline: dict[str, Any] = {}
        for name in [BASELINE, *order]:
            cell = Cell(name, state_mb, interval, step_kind, plan.step_seconds, plan.least_seconds)
            progress(cell, samples)
            place = os.path.join(directory, "cell")
            os.mkdir(place)
            told = run_alone(partial(measured, cell, place), place)
            shutil.rmtree(place, ignore_errors=True)
            if name == BASELINE:
                baseline = told
            if "error" not in told and "error" not in baseline:
                told["baseline_seconds"] = baseline["iteration_seconds"]
                told["baseline_cpu_seconds"] = baseline["cpu_seconds"] / baseline["iterations"]
            samples.cells.setdefault(cell, []).append(told)


def measured(cell: Cell, place: str) -> dict[str, Any]:
    """In the cell's own process: the contender's module is imported there only."""
    return run_cell(cell, FIELD[cell.contender].make(), place)


def prepare(directory: str) -> None:
    """Import and compile once, for every process that will be forked; no thread is left when this returns."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(directory, "torch"))  # torch would leave it in /tmp
    torch.set_num_threads(1)
    Job(1, "emulated", 0.0).update()
    models.save(os.path.join(directory, "compiled"), {"compiled": torch.ones(1)})
    for name in ("none", "torch-save", "lastgood-lazy-1"):
        FIELD[name].make()


def saves_in_a_sample(payload: int) -> int:
    """Of the raw bandwidth."""
    return min(MOST_RAW_SAVES, max(1, RAW_BYTES // payload))


class Bandwidth:
    """Persisted bytes per second of plain overwrites: the better of one, two and four threads, each a median in the end."""

    def __init__(self, directory: str, state_mb: int) -> None:
        self._payload = min(state_mb * raw.MEGABYTE, RAW_BYTES_LIMIT)
        self._buffers = raw.aligned_memory(self._payload)
        self._buffers[:] = noise(self._payload)
        paths = [os.path.join(directory, f"raw-{index}") for index in range(3)]
        self._descriptors = [raw.open_direct(path, self._payload) for path in paths]
        self._rates: dict[int, list[float]] = {threads: [] for threads in RAW_THREADS}
        raw.write_rate(self._descriptors, self._buffers, self._payload, CHUNK, 2, 3)

    @staticmethod
    def bytes_written(state_bytes: int) -> int:
        """By making one and sampling once."""
        payload = min(state_bytes, RAW_BYTES_LIMIT)
        return (3 + len(RAW_THREADS) * saves_in_a_sample(payload)) * payload

    def sample(self) -> float:
        """Measure once more; the best median so far."""
        saves = saves_in_a_sample(self._payload)
        for threads, rates in self._rates.items():
            rates.append(raw.write_rate(self._descriptors, self._buffers, self._payload, CHUNK, threads, saves))
        return max(statistics.median(rates) for rates in self._rates.values())
