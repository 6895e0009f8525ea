"""A storage device that several writes share, in closed steps of time.

    one write       takes `alone` seconds by itself
    all together    one every `full` seconds at best, so `alone / full` of them can run at full speed
    fair            everybody gets the same          oldest first    what the oldest cannot use goes to the next

Writes are of one size. Either way writes end in the order in which they began, so the oldest is always the next to end.
"""

from __future__ import annotations

from collections import deque


class Device:
    """Writes that are under way, and when those that have ended did."""

    def __init__(self, alone: float, full: float, *, oldest_first: bool) -> None:
        assert 0 <= full <= alone
        self.ended: list[float] = []
        self._alone, self._full, self._oldest_first = alone, full, oldest_first
        self._clock = 0.0
        self._left: deque[float] = deque()

    def submit(self, moment: float) -> None:
        """A write begins."""
        self.advance(moment)
        self._clock = max(self._clock, moment)
        if self._alone == 0:
            self.ended.append(moment)
        else:
            self._left.append(self._alone)

    def end_of(self, number: int) -> float:
        """When write `number` ends if nothing else begins before that."""
        while len(self.ended) <= number:
            self._run_until(float("inf"))
        return self.ended[number]

    def advance(self, moment: float) -> None:
        """Let time pass."""
        while self._left and self._clock < moment:
            self._run_until(moment)

    def _run_until(self, moment: float) -> None:
        """Up to this moment, or to the next end of a write if that is earlier."""
        rates = self._rates()
        wanted = self._left[0] / rates[0]
        ends = self._clock + wanted <= moment
        span = wanted if ends else moment - self._clock
        for index, rate in enumerate(rates):
            self._left[index] = max(0.0, self._left[index] - rate * span)
        self._clock = self._clock + wanted if ends else moment
        if ends:
            self._left.popleft()
            self.ended.append(self._clock)

    def _rates(self) -> list[float]:
        """Of each write, as a part of its full speed."""
        count = len(self._left)
        rest = self._alone / self._full if self._full else float(count)
        if not self._oldest_first:
            return [min(1.0, rest / count)] * count
        return [max(0.0, min(1.0, rest - before)) for before in range(count)]
