"""When a save is due (the trigger axis). Checked by `tests/models/`.

    every=10            at the first step that is 10 or more after the last save, whatever the stride: 10, 20, 30, …
    every="30s"         at the first step after 30 seconds (also "500ms", "5min", "1h")
    overhead=0.03       as often as costs at most 3 % of the training's time, measured and adapted while it runs (`budget.py`)

A cadence answers one question, at every step, for next to nothing: `due(step)`. It hears of every save that was
started, with what it cost, and of its end, so that one which adapts its interval can do so. What it has learned is saved
in every checkpoint, and a resumed run goes on with it.
"""

from __future__ import annotations

import logging
import numbers
import re
import time
from collections.abc import Callable
from typing import Any

from .intervals import is_due

logger = logging.getLogger("lastgood")

UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|min|m|h)\s*")


class Cadence:
    """Decides at which steps a save is due. Only `due` must be written."""

    def arrived(self, step: int) -> None:
        """The step has been reached: the first thing that is called at it. Then `ended`, `due`, `saved`, `resumed`."""

    def due(self, step: int) -> bool:
        """Whether to save after this step."""
        raise NotImplementedError

    def saved(self, step: int, stalled_seconds: float) -> None:
        """A save of this step was started and held the training for so long."""

    def ended(self, step: int, durable: bool) -> None:
        """A save of this step has ended; said at the first step at which it is known."""

    def resumed(self, step: int) -> None:
        """The training goes on: the last thing that is called at a step."""

    def state(self) -> dict[str, Any] | None:
        """What was learned, as plain data."""
        return None

    def load(self, state: Any) -> None:
        """Go on with what an earlier run has learned."""

    def explain(self) -> str:
        """What is being done, and why."""
        return type(self).__name__


def take_up(cadence: Cadence, state: Any) -> None:
    """Let a cadence go on with what an earlier run has learned; one that cannot begins anew, which is said."""
    try:
        cadence.load(state)
    except Exception as problem:
        logger.warning("what the cadence had learned is not taken up: %s: %s", type(problem).__name__, problem)


class EverySteps(Cadence):
    """A save every `interval_steps` steps."""

    def __init__(self, interval_steps: int) -> None:
        if isinstance(interval_steps, bool) or not isinstance(interval_steps, int) or interval_steps < 1:
            raise ValueError(
                f"every={interval_steps!r}: give a number of steps, 1 or more, a time like '30s', or a cadence"
            )
        self.interval_steps = interval_steps
        self._last_step: int | None = None

    def due(self, step: int) -> bool:
        """When so many steps have passed since the last save; before the first one, since a multiple of the interval."""
        if self._last_step is None or step < self._last_step:
            self._last_step = (step - 1) // self.interval_steps * self.interval_steps
        return is_due(step, self._last_step, self.interval_steps)

    def saved(self, step: int, stalled_seconds: float) -> None:
        """Count from here."""
        self._last_step = step

    def explain(self) -> str:
        """One line."""
        return (
            f"every {self.interval_steps} steps, as was asked for: at the first step that is {self.interval_steps} or more"
            " after the last save"
        )


class EverySeconds(Cadence):
    """A save at the first step after so much time since the one before was started."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        if not seconds > 0:
            raise ValueError(f"every={seconds!r} seconds: give more than 0")
        self.seconds = seconds
        self._clock = clock
        self._last = clock()

    def due(self, step: int) -> bool:
        """When the time is up."""
        return self._clock() - self._last >= self.seconds

    def saved(self, step: int, stalled_seconds: float) -> None:
        """The time runs from the start of a save."""
        self._last = self._clock() - stalled_seconds

    def explain(self) -> str:
        """One line."""
        return f"every {self.seconds:g} s, as was asked for: at the first step after that"


class Foreign(Cadence):
    """Somebody's own object with `due` and, if it likes, `saved`."""

    def __init__(self, cadence: Any) -> None:
        self._cadence = cadence

    def due(self, step: int) -> bool:
        """Ask it."""
        return bool(self._cadence.due(step))

    def saved(self, step: int, stalled_seconds: float) -> None:
        """Tell it."""
        if hasattr(self._cadence, "saved"):
            self._cadence.saved(step, stalled_seconds)

    def explain(self) -> str:
        """Whose it is."""
        return f"as {type(self._cadence).__qualname__} decides"


def seconds_of(text: str, name: str = "every") -> float:
    """The seconds of a duration like "30s" or "5min"; a mistake is told of the argument of that name."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{name}={text!r}: give a time like '500ms', '30s', '5min' or '1h'")
    return float(found[1]) * UNITS[found[2]]


def time_above_0(value: Any, name: str) -> float:
    """The seconds of a number, or of a duration in words. Raises ValueError, in one line."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    seconds = seconds_of(value, name) if isinstance(value, str) else float(value) if is_number else 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{name}={value!r}: give a time above 0, in seconds or like '30s', '5min' or '1h'")
    return seconds


def as_cadence(every: int | str | Any) -> Cadence:
    """A number of steps, a time, or an object that has `due`."""
    if isinstance(every, Cadence):
        return every
    if hasattr(every, "due"):
        return Foreign(every)
    return EverySeconds(seconds_of(every)) if isinstance(every, str) else EverySteps(every)
