"""One run of a strategy while nothing fails: when it trains, when a save holds it, which save is complete when.

    0 ── f steps ──┬ waits for a place, is held ┬── f steps ──┬ … ┬──
                   └ save 1 ────────────────────┼─▶ complete  └ save 2 ──▶

Every run of a replay is the beginning of this one, however often the job fails, so it is computed once.
"""

from __future__ import annotations

from bisect import bisect_right

from .costs import Costs
from .device import Device
from .strategies import Strategy


class Schedule:
    """Answers what was done after so many seconds of a run; grows as far as it is asked."""

    def __init__(self, strategy: Strategy, costs: Costs, interval: int) -> None:
        self.strategy, self.costs, self.interval = strategy, costs, interval
        self._hold = strategy.hold(costs, interval)
        self._window = strategy.window(costs, interval)
        self._places = strategy.places(costs)
        alone, full = costs.alone, costs.write_seconds
        if strategy.stores == "peers":
            alone = full = costs.peer * strategy.moves(costs)
        self._device = Device(alone, full, oldest_first=strategy.oldest_first)
        self._resumes = [0.0]
        self._begins = [0.0]
        self._complete: list[float] = []

    def trained_seconds(self, moment: float) -> float:
        """Time spent on steps."""
        if self.strategy.stores == "survivors":
            return moment
        self._extend(moment)
        number = bisect_right(self._resumes, moment) - 1
        stretch = self.interval * self.costs.iteration_seconds
        return number * stretch + min(moment - self._resumes[number], stretch)

    def steps(self, moment: float) -> int:
        """Whole steps done."""
        return int(self.trained_seconds(moment) / self.costs.iteration_seconds + 1e-9)

    def saved_step(self, moment: float) -> int:
        """Step of the newest complete save; 0 before there is one."""
        return self._version(self.saves(moment))

    def saves(self, moment: float) -> int:
        """Complete saves."""
        if self.strategy.stores == "survivors":
            return 0
        self._extend(moment)
        self._settle(moment)
        return bisect_right(self._complete, moment)

    def base_step(self, moment: float) -> int:
        """Step of the newest durable base; -1 before there is one.

        One is begun with the run and after every so many saves, and streamed until the next.
        """
        every = self.costs.base_every
        self._extend(moment)
        number = (bisect_right(self._begins, moment) - 1) // every * every
        paced = max(self.costs.write_seconds, 0.9 * every * self.interval * self.costs.iteration_seconds)
        while number >= 0 and self._begins[number] + paced > moment:
            number -= every
        return number * self.interval if number >= 0 else -1

    def _version(self, number: int) -> int:
        return number * self.interval + self._window if number else 0

    def _extend(self, moment: float) -> None:
        stretch = self.interval * self.costs.iteration_seconds
        while self._resumes[-1] <= moment:
            start = self._resumes[-1] + stretch
            self._begins.append(start)
            if self.strategy.is_paused:
                self._complete.append(start + self._hold)
            else:
                number = len(self._begins) - 2  # of this save
                if number >= self._places:
                    self._settle_save(number - self._places)
                    start = max(start, self._complete[number - self._places])
                self._device.submit(start)
            self._resumes.append(start + self._hold)

    def _settle(self, moment: float) -> None:
        """Learn of the saves that have ended by then."""
        if not self.strategy.is_paused:
            self._device.advance(moment)
            self._settle_save(len(self._device.ended) - 1)

    def _settle_save(self, number: int) -> None:
        for each in range(len(self._complete), number + 1):
            started = self._resumes[each + 1] - self._hold
            if self._window:  # writing begins when the version is complete
                complete = self._device.end_of(each) + self._window * self.costs.iteration_seconds
            else:  # pieces are written as they are captured
                captured = started + self.costs.capture_seconds * self.strategy.moves(self.costs)
                complete = max(self._device.end_of(each), captured)
            self._complete.append(complete)
