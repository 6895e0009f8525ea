"""A save whose payload is pushed as it becomes ready, so that copying overlaps writing. Made by `Store.begin`.

    begin ── push ── push ── ... ── finish ──> ticket          its place in the order of saves is that of `begin`
                        └── abandon ──> the slot is given back, nothing kept was touched (promise `no-harm`)

One thread at a time may push; it need not be the one that began. A save that is dropped unfinished is abandoned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .engine import Engine
from .errors import StoreError
from .flight import Flight
from .incoming import as_bytes
from .interrupt import Shield
from .ticket import Ticket


class Saving:
    """A save under way, from the side of the one who has the bytes."""

    def __init__(self, engine: Engine, flight: Flight | None, ticket: Ticket) -> None:
        """Not for callers: use `Store.begin`. Without a flight the overload policy refused the save."""
        self.ticket = ticket
        self._engine = engine
        self._flight = flight
        self._is_over = False

    def push(self, buffer: Any) -> None:
        """Copy one more buffer, bytes-like or a C-contiguous array; it may change when this returns.

        Waits for staging memory. Raises TypeError for what has no bytes, and WrongGeometry when the payload outgrows the
        slot: the save is then abandoned.
        """
        with Shield() as shield:
            try:
                self.push_shielded(as_bytes(buffer), shield)
            except BaseException as error:
                self.abandon(error)
                raise

    def push_shielded(self, piece: NDArray[np.uint8], shield: Shield) -> None:
        """`push` for a caller that holds a shield already, and abandons the save when this raises."""
        if self._is_over:
            raise StoreError(f"the save of step {self.ticket.step} is finished: begin another to push more")
        if self._flight is not None:
            self._flight.push(piece, shield.check)

    def finish(self, *, tell: bool = True) -> Ticket:
        """The payload is complete: the ticket, for waiting until it is durable. Harmless a second time.

        Raises SaveFailed when an *earlier* save failed and nobody was told yet; this one goes on all the same, and is the
        exception's `ticket`. With `tell=False` that is left to the next save: for threads that nobody listens to.
        """
        with Shield():
            return self.finish_shielded(tell=tell)

    def finish_shielded(self, *, tell: bool = True) -> Ticket:
        """`finish` for a caller that holds a shield already."""
        self._is_over = True
        if self._flight is not None:
            self._flight.seal()
            self._flight = None
        if tell:
            self._engine.tell_of_failures(self.ticket)
        return self.ticket

    def abandon(self, error: BaseException | None = None, *, told: bool = True) -> None:
        """The payload will not be completed; the ticket ends failed, from `error`. Harmless once it is finished.

        `told` says that whoever gave it up knows; otherwise the next save, or close, raises SaveFailed (promise `loud`).
        """
        with Shield():
            self._is_over = True
            if self._flight is not None:
                self._flight.give_up(error or StoreError("abandoned by its caller"), is_told=told)
                self._flight = None

    def __enter__(self) -> Saving:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Finish; abandon when the block raised."""
        if error is None:
            self.finish()
        else:
            self.abandon(error)

    def __del__(self) -> None:
        """Nobody can finish it any more: its place must not be held for ever."""
        if getattr(self, "_flight", None) is not None:
            self.abandon(StoreError("it was dropped before it was finished"), told=False)
