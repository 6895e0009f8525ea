"""Where the GPUs' time went: trained and kept, trained and lost again, held by saves, or standing still.

    available = kept + lost + held + down        (GPU-seconds; nothing is counted twice, nothing is forgotten)

Work is a stack of stretches, each with the number of GPUs that did it, so that going back to an earlier step takes
away exactly what was done since, whoever did it.
"""

from __future__ import annotations


class Ledger:
    """The account of one replay."""

    def __init__(self) -> None:
        self.lost = self.held = self.down = 0.0
        self._stretches: list[tuple[float, int]] = []
        self._trained = 0.0

    @property
    def kept(self) -> float:
        """GPU-seconds of training that still count."""
        return sum(seconds * gpus for seconds, gpus in self._stretches)

    def train(self, seconds: float, gpus: int) -> None:
        """Work is done."""
        if seconds > 0:
            self._stretches.append((seconds, gpus))
            self._trained += seconds

    def go_back(self, seconds: float) -> None:
        """Only the first `seconds` of training still count."""
        surplus = self._trained - seconds
        self._trained = min(self._trained, seconds)
        while surplus > 1e-9 and self._stretches:
            done, gpus = self._stretches.pop()
            taken = min(done, surplus)
            surplus -= taken
            self.lost += taken * gpus
            if done > taken:
                self._stretches.append((done - taken, gpus))
