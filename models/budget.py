"""A cadence that keeps to a budget: as often as `overhead` of the training's time allows, measured while it runs.

profile     a few iterations without saves, then two saves, of which the second is measured: how long is an iteration,
            what does a save cost, when is it durable
decide      k by `intervals.interval_steps`
adapt       after every save and every 32 iterations, from the newest few measurements (`meter.py`); conditions drift
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import intervals
from .cadence import Cadence
from .meter import Measured, Meter

PROFILED_ITERATIONS = 5
SAVES_WITHOUT_IDLE = 8
"""After so many saves without an iteration that had none in flight, one interval is a step longer, to measure one."""


class OverheadBudget(Cadence):
    """Saves as often as costs at most `overhead` (a fraction, 0.03 for 3 %) of the time without saving."""

    def __init__(self, overhead: float, *, clock: Callable[[], float] = time.perf_counter) -> None:
        if isinstance(overhead, bool) or not isinstance(overhead, (int, float)) or not 0.000_1 <= overhead <= 1:
            raise ValueError(f"overhead={overhead!r}: give a fraction of the time from 0.0001 to 1, like 0.03 for 3 %")
        self.budget_ppm = round(overhead * intervals.MILLION)
        self.interval_steps: int | None = None
        self.measured: Measured | None = None  # what the interval was decided from
        self._meter = Meter(clock)
        self._last_step: int | None = None

    def arrived(self, step: int) -> None:
        """An iteration has ended: decide anew when none that was measured then is remembered."""
        if self._meter.arrived() and self.interval_steps is not None:
            self._decide()

    def due(self, step: int) -> bool:
        """Whether the interval is over; while profiling, when there are iterations enough and no save is in flight."""
        if self.interval_steps is None:
            return not self._meter.is_flying and self._meter.idle_iterations >= PROFILED_ITERATIONS
        if self._last_step is None or step < self._last_step:
            self._last_step = step - 1
        longer = 1 if self._meter.saves_since_idle >= SAVES_WITHOUT_IDLE else 0
        return intervals.is_due(step, self._last_step, self.interval_steps + longer)

    def saved(self, step: int, stalled_seconds: float) -> None:
        """A save began."""
        self._meter.saved(step, stalled_seconds)
        self._last_step = step

    def ended(self, step: int, durable: bool) -> None:
        """A save has ended: measure, and decide anew."""
        if self._meter.ended(step, durable):
            self._decide()

    def _decide(self) -> None:
        self.measured = measured = self._meter.measured
        assert measured is not None
        self.interval_steps = intervals.interval_steps(*measured, self.budget_ppm)

    def resumed(self, step: int) -> None:
        """The next iteration begins."""
        self._meter.resumed()

    def state(self) -> dict[str, Any] | None:
        """The measurements, for a run that resumes: it need not profile again."""
        return self._meter.state()

    def load(self, state: Any) -> None:
        """Go on with an earlier run's measurements."""
        if self._meter.load(state):
            self._decide()

    def explain(self) -> str:
        """The decision, with the numbers that it was made from."""
        percent, measured = self.budget_ppm / 1e4, self.measured
        if measured is None or self.interval_steps is None:
            return (
                f"at most {percent:g} % of the time: still measuring ({self._meter.idle_iterations} iterations so far)"
            )
        iteration, durable, held = (each / 1e3 for each in measured)
        drain = intervals.steps_to_drain(*measured)
        afford = intervals.steps_to_afford(measured.iteration_us, measured.held_us, self.budget_ppm)
        return (
            f"every {self.interval_steps} steps: an iteration takes {iteration:.3f} ms, a save costs {held:.3f} ms and is"
            f" durable after {durable:.3f} ms; it drains in {drain} steps, {percent:g} % affords one every {afford} steps,"
            " the larger counts"
        )


class WithFailures(Cadence):
    """Another cadence, whose explanation also says what a failure costs, given how often there is one."""

    def __init__(
        self, cadence: Cadence, mean_seconds_between_failures: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        if not mean_seconds_between_failures > 0:
            raise ValueError(f"mean_seconds_between_failures={mean_seconds_between_failures!r}: give more than 0")
        self.cadence = cadence
        self._failure_seconds = mean_seconds_between_failures
        self._meter = Meter(clock)
        self._gap = 0
        self._last_step: int | None = None

    def arrived(self, step: int) -> None:
        """Measure, and pass on."""
        self._meter.arrived()
        self.cadence.arrived(step)

    def due(self, step: int) -> bool:
        """As the other cadence decides."""
        return self.cadence.due(step)

    def saved(self, step: int, stalled_seconds: float) -> None:
        """Measure, and pass on."""
        self._meter.saved(step, stalled_seconds)
        self._gap = step - self._last_step if self._last_step is not None else 0
        self._last_step = step
        self.cadence.saved(step, stalled_seconds)

    def ended(self, step: int, durable: bool) -> None:
        """Measure, and pass on."""
        self._meter.ended(step, durable)
        self.cadence.ended(step, durable)

    def resumed(self, step: int) -> None:
        """Measure, and pass on."""
        self._meter.resumed()
        self.cadence.resumed(step)

    def state(self) -> dict[str, Any] | None:
        """The other cadence's."""
        return self.cadence.state()

    def load(self, state: Any) -> None:
        """The other cadence's."""
        self.cadence.load(state)

    def explain(self) -> str:
        """The other cadence's explanation, and the losses."""
        interval = getattr(self.cadence, "interval_steps", None) or self._gap
        measured = self._meter.measured
        if measured is None or not interval:
            return f"{self.cadence.explain()}; what a failure costs is not measured yet"
        lost = intervals.lost_work_us(interval, measured.iteration_us, measured.durable_us)
        best = intervals.young_daly_us(measured.held_us, int(self._failure_seconds * 1e6))
        steps = max(1, intervals.ceiling(best, measured.iteration_us))
        return (
            f"{self.cadence.explain()}; with a failure every {self._failure_seconds:g} s, one costs {lost / 1e6:.3g} s of"
            f" work on average ({lost / self._failure_seconds / 1e4:.3g} % of the time); Young and Daly's optimum, for saves"
            f" that do nothing but hold the training, is {best / 1e6:.3g} s = {steps} steps"
        )
