"""When a save is due (the trigger axis). Checked by `tests/models/`.

A cadence answers one question, at every step, for next to nothing: `due(step)`. It hears of every save that was
started, with what it cost, so that one which adapts its interval can do so.
"""

from __future__ import annotations

from typing import Protocol


class Cadence(Protocol):
    """Decides at which steps a save is due."""

    def due(self, step: int) -> bool:
        """Whether to save after this step."""

    def saved(self, step: int, stalled_seconds: float) -> None:
        """A save of this step was started and held the training for so long."""


class EverySteps:
    """A save every `interval_steps` steps."""

    def __init__(self, interval_steps: int) -> None:
        if isinstance(interval_steps, bool) or not isinstance(interval_steps, int) or interval_steps < 1:
            raise ValueError(f"every={interval_steps!r}: give a number of steps, 1 or more, or a cadence")
        self.interval_steps = interval_steps

    def due(self, step: int) -> bool:
        """At multiples of the interval."""
        return step % self.interval_steps == 0

    def saved(self, step: int, stalled_seconds: float) -> None:
        """A fixed interval learns nothing."""


def as_cadence(every: int | Cadence) -> Cadence:
    """A number of steps, or anything that has `due` and `saved`."""
    return every if hasattr(every, "due") and hasattr(every, "saved") else EverySteps(every)
