"""The replay of a failure trace for one strategy: event by event, from loss to loss.

    run ──▶ loss: every process ends ──▶ nothing happens for restart + load ──▶ run, from the step recovered
             │                            │ another loss: the wait begins anew
             └ whole steps since then are redone

G1 conserved      available = kept + lost + held + down, to the last GPU-second
G2 within-bound   a failure whose memory survived costs at most the strategy's bound in whole steps
G3 alone          an outcome depends on trace, strategy, costs, interval and seed, not on what else was replayed

GPUs that come join at once and cost nothing, so capacity follows the number present. Which ones go at a loss is drawn,
the same for every strategy; memory is gone when all holders of one shard go before the job has run again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .costs import Costs
from .ledger import Ledger
from .schedule import Schedule
from .strategies import Strategy
from .trace import Change, Trace

NEWCOMER = -1
"""The group of a GPU that came while the job was not running: it holds nothing yet."""


@dataclass(frozen=True)
class Outcome:
    """What became of the time. Times are GPU-seconds; `iterations_per_second` counts iterations of the whole job."""

    strategy: str
    interval_steps: int
    goodput: float
    iterations_per_second: float
    kept: float
    lost: float
    held: float
    down: float
    available: float
    failures: int
    fallbacks: int
    """Failures after which memory was gone and an old durable checkpoint had to do."""
    redone_steps: int
    most_redone_steps: int
    """By one failure that was no fallback."""
    bound_steps: int


def replay(trace: Trace, strategy: Strategy, costs: Costs, interval: int, *, seed: int = 0) -> Outcome:
    """Replay the whole trace."""
    return Job(trace, strategy, costs, interval, seed).played()


class Job:
    """The state between two events."""

    def __init__(self, trace: Trace, strategy: Strategy, costs: Costs, interval: int, seed: int) -> None:
        self._trace, self._strategy, self._costs, self._seed = trace, strategy, costs, seed
        self._schedule = Schedule(strategy, costs, interval)
        self._interval = interval
        self._ledger = Ledger()
        self._now = 0.0
        self._gpus = trace.gpus[0]
        self._resume_at = 0.0
        self._run_step = 0  # of this run's beginning
        self._durable_step = 0
        self._next_backstop = costs.backstop_seconds
        self._failures = self._fallbacks = self._redone = self._most_redone = 0
        self._in_memory = strategy.stores != "storage"
        self._holders = self._placed()
        self._needed = set(self._holders)

    def played(self) -> Outcome:
        """To the end of the trace."""
        for change in self._trace.changes():
            self._pass_to(change.seconds)
            if change.lost:
                self._lose(change)
            else:
                self._gain(change)
        self._pass_to(self._trace.duration_seconds)
        ledger, available = self._ledger, self._trace.available_gpu_seconds
        iterations = ledger.kept / (self._costs.iteration_seconds * self._trace.most_gpus)
        return Outcome(
            strategy=self._strategy.name,
            interval_steps=self._interval,
            goodput=ledger.kept / available if available else 0.0,
            iterations_per_second=iterations / self._trace.duration_seconds,
            kept=ledger.kept,
            lost=ledger.lost,
            held=ledger.held,
            down=ledger.down,
            available=available,
            failures=self._failures,
            fallbacks=self._fallbacks,
            redone_steps=self._redone,
            most_redone_steps=self._most_redone,
            bound_steps=self._strategy.bound_steps(self._costs, self._interval),
        )

    # --- time passes -------------------------------------------------------------------------------------------------

    def _pass_to(self, moment: float) -> None:
        """Account for the time until then."""
        begin, self._now = self._now, moment
        if not self._gpus:
            return
        running_from = min(max(begin, self._resume_at), moment)
        self._ledger.down += (running_from - begin) * self._gpus
        if running_from < moment:
            since, until = running_from - self._resume_at, moment - self._resume_at
            trained = self._schedule.trained_seconds(until) - self._schedule.trained_seconds(since)
            self._ledger.train(trained, self._gpus)
            self._ledger.held += max(0.0, moment - running_from - trained) * self._gpus

    @property
    def _is_running(self) -> bool:
        return self._gpus > 0 and self._now > self._resume_at

    def _gain(self, change: Change) -> None:
        if self._is_running or not self._gpus:
            self._gpus = change.after
            self._holders = self._placed()
        else:
            self._holders += [NEWCOMER] * (change.after - change.before)
            self._gpus = change.after
        if not change.before:
            self._wait()

    # --- a failure ---------------------------------------------------------------------------------------------------

    def _lose(self, change: Change) -> None:
        self._failures += 1
        done, remembered = self._run_step, self._run_step
        if self._is_running:
            run = self._now - self._resume_at
            done += self._schedule.steps(run)
            remembered = self._remembered(run, done)
            self._note_durable(run)
            self._in_memory = self._strategy.stores != "storage"
            self._needed = set(self._holders)
        self._holders = self._left_of(self._holders, change)
        if self._in_memory and not self._needed <= set(self._holders):
            self._in_memory = False
            self._fallbacks += 1
            recovered = self._durable_step
        else:
            recovered = remembered
            self._most_redone = max(self._most_redone, done - recovered)
        self._redone += done - recovered
        self._ledger.go_back(recovered * self._costs.iteration_seconds)
        self._run_step = recovered
        self._gpus = change.after
        self._wait()

    def _remembered(self, run: float, done: int) -> int:
        """The newest step that recovery finds when nothing it relies on is gone."""
        if self._strategy.stores == "survivors":
            return done
        return min(done, self._run_step + self._schedule.saved_step(run))

    def _note_durable(self, run: float) -> None:
        """What has become durable during this run."""
        if self._strategy.stores == "storage":
            self._durable_step = self._run_step + min(self._schedule.saved_step(run), self._schedule.steps(run))
        elif self._strategy.backstop == "base":
            base = self._schedule.base_step(run)
            if base >= 0:
                self._durable_step = self._run_step + base
        else:
            while True:
                began = max(self._next_backstop, self._resume_at)
                if began + self._costs.write_seconds > self._now:
                    return
                self._durable_step = self._run_step + self._backed_up(began - self._resume_at)
                self._next_backstop = began + self._costs.backstop_seconds

    def _backed_up(self, run: float) -> int:
        """The step that a durable checkpoint begun now has."""
        if self._strategy.stores == "survivors":
            return self._schedule.steps(run)
        return self._schedule.saved_step(run)

    def _placed(self) -> list[int]:
        """The group of each GPU: its members hold the same shard."""
        size = self._costs.replicas
        groups = max(1, self._gpus // size)
        return [min(number // size, groups - 1) for number in range(self._gpus)]

    def _left_of(self, holders: list[int], change: Change) -> list[int]:
        """Those that are not taken away. The draw depends on the seed and the moment alone."""
        chance = random.Random(f"{self._seed} {change.seconds!r}")
        gone = set(chance.sample(range(change.before), change.lost))
        return [group for number, group in enumerate(holders) if number not in gone]

    def _wait(self) -> None:
        """Restart and load; the training goes on when that is over."""
        chain = (self._run_step // self._interval) % self._costs.base_every
        load = self._strategy.load(self._costs, self._in_memory, chain)
        self._resume_at = self._now + self._costs.restart_seconds + load
