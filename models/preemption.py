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
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, TypeVar, cast

from lastgood.core import SaveFailed, StoreError, Ticket

from .cadence import seconds_of

logger = logging.getLogger("lastgood")


Method = TypeVar("Method", bound=Callable[..., Any])


def one_at_a_time(method: Method) -> Method:
    """Refuse a call that a signal handler makes in the middle of another: it would wait for what it has interrupted."""

    @wraps(method)
    def guarded(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if self._inside:
            raise StoreError(
                f"{method.__name__}() was called in the middle of {self._inside}(), by a signal handler or another thread:"
                " call preempt() there, which only takes note"
            )
        self._inside = method.__name__
        try:
            return method(self, *arguments, **keywords)
        finally:
            self._inside = ""

    return cast(Method, guarded)


class Preempted(SystemExit):
    """The job was asked to end, and its last state is saved. Exit status 143, as of a process that SIGTERM ended."""

    def __init__(self, step: int) -> None:
        super().__init__(128 + signal.SIGTERM)
        self.step = step


UNASKED_GRACE = 30.0


def seconds_of_grace(grace: float | str) -> float:
    """The grace in seconds. Raises ValueError."""
    seconds = seconds_of(grace) if isinstance(grace, str) else float(grace)
    if not seconds > 0:
        raise ValueError(f"sigterm_grace={grace!r}: give the seconds that the scheduler waits before it kills")
    return seconds


class Preemption:
    """Listens to SIGTERM between `listen` and `stop`; without a grace it does nothing."""

    def __init__(self, grace: float | str | None) -> None:
        self.grace_seconds = 0.0 if grace is None else seconds_of_grace(grace)
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

    def _note(self, number: int = 0, frame: FrameType | None = None) -> None:
        if self._asked_at is None:
            self._asked_at = time.monotonic()

    def ask(self, grace: float | str | None = None) -> None:
        """What SIGTERM does, for whoever learns of the end in another way; with another grace, if one is given."""
        self._note()
        if grace is not None or not self.grace_seconds:
            self.grace_seconds = seconds_of_grace(UNASKED_GRACE if grace is None else grace)

    def drive(self, ticket: Ticket, total_bytes: int) -> None:
        """Wait until the last save is durable or the grace is over, and log what came of it. Raises SaveFailed."""
        left = self.seconds_left
        try:
            ticket.wait(max(left, 0.001))
        except TimeoutError:
            logger.error(
                "SIGTERM: step %d (%s bytes) is not durable after the grace of %.1f s; it is still being written",
                ticket.step, f"{total_bytes:,}", self.grace_seconds,
            )  # fmt: skip
        except SaveFailed:
            logger.error("SIGTERM: the last save, of step %d, failed with %.1f s left", ticket.step, self.seconds_left)
            raise
        else:
            logger.warning(
                "SIGTERM: step %d (%s bytes) is durable, %.3f s after the signal, %.1f s before the end of the grace",
                ticket.step, f"{total_bytes:,}", self.grace_seconds - self.seconds_left, self.seconds_left,
            )  # fmt: skip


class Leaving:
    """What a checkpointer has for ending in time; it sets the attributes named here."""

    capture: Any
    _preemption: Preemption
    _tracker: Any
    _step: int
    _inside: str

    @one_at_a_time
    def poll(self) -> None:
        """Do at once what `step` would do at SIGTERM. For code that runs long without a step, between two updates.

        The state is saved as that of the step said last. Does nothing unless SIGTERM or `preempt` has asked for it.
        """
        if self._preemption.is_asked:
            self._leave()

    def preempt(self, grace: float | str | None = None) -> None:
        """Ask for a last save and the end, as SIGTERM does with `sigterm_grace`. Only takes note: any signal handler or
        thread may call it; the next `step` or `poll` does the rest."""
        self._preemption.ask(grace)

    def _leave(self) -> None:
        """Save a last time, see it durable within the grace, and end the process."""
        ticket = next((each for each in self._tracker.in_flight if each.step == self._step), None)
        if ticket is None and self._step not in (0, self._tracker.durable_step):
            try:
                ticket = self._save(self._step)  # type: ignore[attr-defined]
            except SaveFailed as earlier:
                logger.error("SIGTERM: %s", earlier)
                ticket = earlier.ticket
        self.capture.settle()
        if ticket is not None:
            self._preemption.drive(ticket, self._tracker.state_bytes)
        raise Preempted(self._step)
