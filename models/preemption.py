"""SIGTERM, for those who ask for it: a last save is driven to durable within the grace that the scheduler gives.

The handler only notes the time: it may interrupt any line of anybody's code. The next `step` or `poll` of the training
does the rest, so what the grace must cover is the longest time between two of those, and one save. Saves in flight go
on meanwhile, they need no help.

One handler serves all checkpointers of a process. A handler of the program's own that was there before is called as well,
after the note was taken, and is put back when the last checkpointer is closed or dropped; one that ends the process leaves
no time for a last save.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any, TypeVar, cast

from lastgood.core import SaveFailed, StoreError, Ticket

from .cadence import time_above_0

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


class Handler:
    """The handler of SIGTERM: every preemption that listens takes note, then the handler that was there before is called.

    When nobody listens any more, or in a forked child, it does what would have been done without it: it never swallows
    the signal, not even when a handler that was installed after it passes the signal on.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        earlier = signal.getsignal(signal.SIGTERM)
        self._earlier = (
            earlier._earlier if isinstance(earlier, Handler) else earlier
        )  # one of before a fork is replaced
        signal.signal(signal.SIGTERM, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """SIGTERM has come."""
        heard = listening()
        for each in heard:
            each.note()
        if callable(self._earlier):
            self._earlier(number, frame)
        elif not heard and self._earlier != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def leave(self) -> None:
        """Put the earlier handler back."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL if self._earlier is None else self._earlier)


_listening: dict[int, weakref.ref[Preemption]] = {}
"""Changed and read in one call of the interpreter each: a signal or the garbage collector may come between any two lines."""


def listening() -> list[Preemption]:
    """Those of this process that are to hear of SIGTERM; a forked child has made none of its parent's."""
    found = [reference() for reference in tuple(_listening.values())]
    return [each for each in found if each is not None and each.process == os.getpid()]


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _forget(gone: weakref.ref[Preemption]) -> None:
    """One of those that listen has stopped, or was dropped. The last one takes the handler away."""
    _listening.pop(id(gone), None)
    handler = signal.getsignal(signal.SIGTERM)
    if isinstance(handler, Handler) and _is_main_thread() and not listening():
        handler.leave()


class Preemption:
    """Listens to SIGTERM between `listen` and `stop`, or until it is dropped; without a grace it does nothing."""

    def __init__(self, grace: float | str | None) -> None:
        self.grace_seconds = 0.0 if grace is None else time_above_0(grace, "sigterm_grace")
        self.process = os.getpid()
        self._asked_at: float | None = None
        self._own: weakref.ref[Preemption] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether SIGTERM has come."""
        return self._asked_at is not None

    @property
    def seconds_left(self) -> float:
        """What is left of the grace."""
        return self.grace_seconds - (time.monotonic() - self._asked_at) if self._asked_at is not None else 0.0

    def listen(self) -> None:
        """Take note of SIGTERM from now on, beside others that do."""
        if not self.grace_seconds:
            return
        if not _is_main_thread():
            raise ValueError(
                "sigterm_grace: signals can be listened to in the main thread only; make the checkpointer there"
            )
        self._own = weakref.ref(self, _forget)
        _listening[id(self._own)] = self._own
        handler = signal.getsignal(signal.SIGTERM)
        if not isinstance(handler, Handler) or handler.process != os.getpid():
            Handler()

    def stop(self) -> None:
        """Listen no more."""
        if self._own is not None:
            _forget(self._own)
            self._own = None

    def note(self) -> None:
        """SIGTERM has come."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()

    def ask(self, grace: float | str | None = None) -> None:
        """What SIGTERM does, for whoever learns of the end in another way; with another grace, if one is given."""
        self.note()
        if grace is not None or not self.grace_seconds:
            self.grace_seconds = time_above_0(UNASKED_GRACE if grace is None else grace, "grace")

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
    check_open: Callable[[], None]

    @one_at_a_time
    def poll(self) -> None:
        """Do at once what `step` would do at SIGTERM. For code that runs long without a step, between two updates.

        The state is saved as that of the step said last. Does nothing unless SIGTERM or `preempt` has asked for it.
        """
        self.check_open()
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
