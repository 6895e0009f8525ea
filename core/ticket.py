"""What a caller holds of a save under way: how far it is, and the record or the reason in the end (promise `loud`).

pending ──> durable ──> published     the record is the root
   │           └──────> superseded    a newer checkpoint is; `wait` returns that one's record
   ├──────────────────> superseded    (given up early: it would have been released at once)
   ├──────────────────> skipped       the overload policy refused it; `wait` raises SaveSkipped
   └──────────────────> failed        `wait` raises SaveFailed from the first error
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from .errors import SaveFailed, SaveSkipped, StoreClosed
from .record import Record
from .rules import FAILED, PENDING, PUBLISHED, SKIPPED, SUPERSEDED

OUTCOMES = {
    PENDING: "pending",
    PUBLISHED: "published",
    SUPERSEDED: "superseded",
    SKIPPED: "skipped",
    FAILED: "failed",
}


class Ticket:
    """One save, seen from outside. Made by `Store.save`."""

    def __init__(self, step: int, newer: Callable[[], Record | None]) -> None:
        """Start pending; `newer` finds the record that superseded this save."""
        self.step = step
        self.sequence = 0
        self._newer = newer
        self._record: Record | None = None
        self._outcome = PENDING
        self._error: BaseException | None = None
        self.process = os.getpid()
        self._ended = threading.Event()

    def __repr__(self) -> str:
        return f"Ticket(step={self.step}, sequence={self.sequence}, outcome={self.outcome!r})"

    @property
    def outcome(self) -> str:
        """pending, published, superseded, skipped or failed."""
        return OUTCOMES[self._outcome]

    @property
    def done(self) -> bool:
        """Whether the save has ended, one way or another."""
        return self._ended.is_set()

    @property
    def durable(self) -> bool:
        """Whether this very save survives a power loss from now on."""
        return self._record is not None

    def wait(self, timeout: float | None = None) -> Record:
        """Wait for the end (`timeout` in seconds): the durable record, or the newer one that superseded it.

        Raises SaveFailed (from the first error), SaveSkipped, or TimeoutError when it takes longer.
        """
        if os.getpid() != self.process:
            raise StoreClosed(f"the save of step {self.step} belongs to process {self.process}: wait for it there")
        if not self._ended.wait(timeout):
            raise TimeoutError(f"the save of step {self.step} has not ended within {timeout} seconds")
        if self._outcome in (FAILED, SKIPPED):
            raise self.failure()
        record = self._record if self._outcome == PUBLISHED else self._newer() or self._record
        assert record is not None, "newest-survives: a save that ended well leaves a record"
        return record

    def failure(self) -> SaveFailed:
        """The exception that tells of this save."""
        if self._outcome == SKIPPED:
            return SaveSkipped(f"the save of step {self.step} was skipped: the storage is behind; save less often")
        error = SaveFailed(f"the save of step {self.step} did not become durable: {self._error}")
        error.__cause__ = self._error
        return error

    def acknowledge(self, record: Record) -> None:
        """The durable point was passed. For the driver."""
        self._record = record

    def conclude(self, outcome: int, error: BaseException | None) -> None:
        """How the save has ended; those who wait go on. For the driver, once the end is accounted for."""
        assert self._outcome == PENDING, "a save ends once"
        self._error = error
        self._outcome = outcome
        self._ended.set()
