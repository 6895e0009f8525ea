"""A save whose payload is pushed as it becomes ready, so that copying overlaps writing. Made by `Store.begin`.

    begin ── push ── push ── ... ── finish ──> ticket          its place in the order of saves is that of `begin`
                        └── abandon ──> the slot is given back, nothing kept was touched (promise `no-harm`)

One thread at a time may push; it need not be the one that began. A save that is dropped unfinished is abandoned: by a guard of
its own, that is gone once it is finished, since an interrupt that falls into a destructor is lost.
"""

from __future__ import annotations

import os
from typing import Any

from .errors import StoreClosed, StoreError
from .flight import Flight
from .incoming import as_bytes
from .interrupt import Shield
from .ticket import Ticket


class Saving:
    """A save under way, from the side of the one who has the bytes."""

    def __init__(self, flight: Flight) -> None:
        """Not for callers: use `Store.begin`."""
        self.ticket = flight.ticket
        self._engine = flight.engine
        self._flight: Flight | None = flight  # until it is over
        self._guard: _Guard | None = _Guard(flight)

    def push(self, buffer: Any) -> None:
        """Copy one more buffer, bytes-like or a C-contiguous array; it may change when this returns.

        Waits for staging memory. Raises TypeError for what has no bytes, and WrongGeometry when the payload outgrows the
        slot: the save is then abandoned.
        """
        with Shield() as shield:
            self._check_process()
            if self._flight is None:
                raise StoreError(f"the save of step {self.ticket.step} is finished: begin another to push more")
            try:
                self._flight.push(as_bytes(buffer), shield.check)
            except BaseException as error:
                self.abandon(error)
                raise

    def finish(self, *, tell: bool = True) -> Ticket:
        """The payload is complete: the ticket, for waiting until it is durable. Harmless a second time.

        Raises SaveFailed when an *earlier* save failed and nobody was told yet; this one goes on all the same, and is the
        exception's `ticket`. With `tell=False` that is left to the next save: for threads that nobody listens to.
        """
        with Shield():
            self._check_process()
            if self._flight is not None:
                self._flight.seal()
            self._end()
            if tell:
                self._engine.tell_of_failures(self.ticket)
        return self.ticket

    def abandon(self, error: BaseException | None = None, *, told: bool = True) -> None:
        """The payload will not be completed; the ticket ends failed, from `error`. Harmless when over, and in a forked child.

        `told` says that whoever gave it up knows; otherwise the next save, or close, raises SaveFailed (promise `loud`).
        """
        if os.getpid() != self.ticket.process:
            return
        with Shield():
            if self._flight is not None:
                self._flight.give_up(error or StoreError("abandoned by its caller"), is_told=told)
            self._end()

    def _check_process(self) -> None:
        if os.getpid() != self.ticket.process:
            raise StoreClosed(
                f"the save of step {self.ticket.step} belongs to process {self.ticket.process}: save in this one"
            )

    def _end(self) -> None:
        self._flight, self._guard = None, None

    def __enter__(self) -> Saving:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Finish; abandon when the block raised."""
        if error is None:
            self.finish()
        else:
            self.abandon(error)


class _Guard:
    """Abandons a save that nobody can finish any more: its place must not be held for ever."""

    def __init__(self, flight: Flight) -> None:
        self._flight = flight

    def __del__(self) -> None:
        flight = self._flight
        if not flight.is_sealed and os.getpid() == flight.ticket.process:
            error = StoreError("it was dropped before it was finished")
            flight.engine.writers.leave_to_one(lambda: flight.give_up(error, is_told=False))
