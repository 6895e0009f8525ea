"""SIGTERM, for those who ask for it: a last save is driven to durable within the grace that the scheduler gives.

The handler only notes the time: it may interrupt any line of anybody's code. The next `step` or `poll` of the training
does the rest, so what the grace must cover is the longest time between two of those, and one save. Saves in flight go
on meanwhile, they need no help.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from types import FrameType
from typing import Any

from lastgood.core import SaveFailed, Ticket

from .cadence import seconds_of

logger = logging.getLogger("lastgood")


class Preempted(SystemExit):
    """The job was asked to end, and its last state is saved. Exit status 143, as of a process that SIGTERM ended."""

    def __init__(self, step: int) -> None:
        super().__init__(128 + signal.SIGTERM)
        self.step = step


class Preemption:
    """Listens to SIGTERM between `listen` and `stop`; without a grace it does nothing."""

    def __init__(self, grace: float | str | None) -> None:
        seconds = seconds_of(grace) if isinstance(grace, str) else float(grace or 0)
        if not seconds > 0 and grace is not None:
            raise ValueError(f"sigterm_grace={grace!r}: give the seconds that the scheduler waits before it kills")
        self.grace_seconds = seconds
        self._asked_at: float | None = None
        self._earlier: Any = None
        self._listens = False

    @property
    def is_asked(self) -> bool:
        """Whether SIGTERM has come."""
        return self._asked_at is not None

    @property
    def seconds_left(self) -> float:
        """What is left of the grace."""
        return self.grace_seconds - (time.monotonic() - self._asked_at) if self._asked_at is not None else 0.0

    def listen(self) -> None:
        """Put the handler in place of the one there is."""
        if not self.grace_seconds:
            return
        if threading.current_thread() is not threading.main_thread():
            raise ValueError(
                "sigterm_grace: signals can be listened to in the main thread only; make the checkpointer there"
            )
        self._earlier = signal.signal(signal.SIGTERM, self._note)
        self._listens = True

    def stop(self) -> None:
        """Put the earlier handler back."""
        if self._listens and threading.current_thread() is threading.main_thread():
            self._listens = False
            if signal.getsignal(signal.SIGTERM) == self._note:
                signal.signal(signal.SIGTERM, signal.SIG_DFL if self._earlier is None else self._earlier)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked_at is None:
            self._asked_at = time.monotonic()

    def drive(self, ticket: Ticket, total_bytes: int) -> None:
        """Wait until the last save is durable or the grace is over, and log what came of it. Raises SaveFailed."""
        left = self.seconds_left
        try:
            ticket.wait(max(left, 0.001))
        except TimeoutError:
            logger.error(
                "SIGTERM: step %d (%d bytes) is not durable after the grace of %.1f s; it is still being written",
                ticket.step, total_bytes, self.grace_seconds,
            )  # fmt: skip
        except SaveFailed:
            logger.error("SIGTERM: the last save, of step %d, failed with %.1f s left", ticket.step, self.seconds_left)
            raise
        else:
            logger.warning(
                "SIGTERM: step %d (%d bytes) is durable, %.3f s after the signal, %.1f s before the end of the grace",
                ticket.step, total_bytes, self.grace_seconds - self.seconds_left, self.seconds_left,
            )  # fmt: skip
