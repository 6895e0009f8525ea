"""What a store has done so far, counted without locks. Checked by tests.

`Statistics` is a frozen snapshot, so that tests and monitors observe without touching the inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .atomics import fetch_add, load
from .rules import FAILED, PUBLISHED, SKIPPED, SUPERSEDED

WRITTEN = 8
BLOCKED_NS = 9
_CELLS = 10


@dataclass(frozen=True)
class Statistics:
    """Ends of saves, payload bytes written, and seconds that callers of `save` waited for a place
    in flight or for staging memory."""

    published: int
    superseded: int
    skipped: int
    failed: int
    bytes_written: int
    seconds_blocked: float

    @property
    def saves(self) -> int:
        """Saves that have ended."""
        return self.published + self.superseded + self.skipped + self.failed


class Counters:
    """The counting cells behind `Statistics`."""

    def __init__(self) -> None:
        self._cells = np.zeros(_CELLS, np.int64)

    def add(self, cell: int, amount: int = 1) -> None:
        """Count one more end of a save (`cell` is the outcome), or that many of WRITTEN or BLOCKED_NS."""
        fetch_add(self._cells, cell, amount)

    def snapshot(self) -> Statistics:
        """The numbers now."""
        published, superseded, skipped, failed, written, blocked = (
            int(load(self._cells, index)) for index in (PUBLISHED, SUPERSEDED, SKIPPED, FAILED, WRITTEN, BLOCKED_NS)
        )
        return Statistics(published, superseded, skipped, failed, written, blocked / 1e9)
