"""What iterations and saves take, measured while the training runs: medians of the newest few.

What a save costs is what it adds to the training's time: the time `step` takes, and what the iterations during which it
is in flight take longer than those without one (a gate they wait at, a core or a bus they share). Medians, so that one
slow iteration, an evaluation say, decides nothing.

The first save is not measured: it makes the store, loads the code that saves and touches memory for the first time.

Ends of saves are noticed at steps, so the time until a save is durable is measured up to one iteration too long.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

REMEMBERED_ITERATIONS = 32
REMEMBERED_SAVES = 5


class Measured(NamedTuple):
    """What decisions are made from, in microseconds."""

    iteration_us: int
    durable_us: int
    held_us: int


class Flying:
    """A save under way: when it began, what it has cost so far, whether that is like what later ones cost."""

    def __init__(self, began: float, cost: float, is_first: bool) -> None:
        self.began = began
        self.cost = cost
        self.is_first = is_first


class Meter:
    """Hears of every step and every save."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.idle_iterations = 0
        self.saves_since_idle = 0
        self._clock = clock
        self._idle: deque[float] = deque(maxlen=REMEMBERED_ITERATIONS)
        self._costs: deque[float] = deque(maxlen=REMEMBERED_SAVES)
        self._durables: deque[float] = deque(maxlen=REMEMBERED_SAVES)
        self._flying: dict[int, Flying] = {}
        self._left: float | None = None
        self._has_saved = False

    @property
    def is_flying(self) -> bool:
        """Whether a save is in flight, as far as is known."""
        return bool(self._flying)

    @property
    def measured(self) -> Measured | None:
        """The medians; None before a save has been measured."""
        if not self._durables:
            return None
        iteration, durable, held = (round(median(each) * 1e6) for each in (self._idle, self._durables, self._costs))
        return Measured(max(1, iteration), durable, held)

    def arrived(self) -> bool:
        """An iteration has ended; returns whether all those remembered have been replaced since this said so last."""
        if self._left is None:
            return False
        took = self._clock() - self._left
        if not self._flying:
            self._idle.append(took)
            self.idle_iterations += 1
            self.saves_since_idle = 0
            return self.idle_iterations % REMEMBERED_ITERATIONS == 0
        if self._idle:
            extra = (took - median(self._idle)) / len(self._flying)
            for flying in self._flying.values():
                flying.cost += extra
        return False

    def saved(self, step: int, stalled_seconds: float) -> None:
        """A save began; what it held the training for is the first part of its cost."""
        self._flying[step] = Flying(self._clock() - stalled_seconds, stalled_seconds, not self._has_saved)
        self._has_saved = True
        self.saves_since_idle += 1

    def ended(self, step: int, durable: bool) -> bool:
        """A save has ended; returns whether there is something new to decide from."""
        flying = self._flying.pop(step, None)
        if flying is None or flying.is_first or not durable or not self._idle:
            return False
        self._costs.append(max(flying.cost, 0.0))
        self._durables.append(self._clock() - flying.began)
        return True

    def resumed(self) -> None:
        """The next iteration begins."""
        self._left = self._clock()

    def state(self) -> dict[str, Any] | None:
        """The measurements as plain data, once there are any."""
        if self.measured is None:
            return None
        return {"idle": list(self._idle), "costs": list(self._costs), "durables": list(self._durables)}

    def load(self, state: Any) -> bool:
        """Begin with the measurements of an earlier run; they are replaced as new ones come."""
        if not isinstance(state, dict) or not all(state.get(name) for name in ("idle", "costs", "durables")):
            return False
        self._idle.extend(state["idle"])
        self._costs.extend(state["costs"])
        self._durables.extend(state["durables"])
        return True
