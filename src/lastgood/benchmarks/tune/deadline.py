"""The time that a command may take, from its start: every measurement looks at what is left of it before it begins."""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """So many seconds, by a clock that a test may hold."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began, self._seconds = clock, clock(), seconds

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds that remain; below 0 when it is over."""
        return self._seconds - self.spent
