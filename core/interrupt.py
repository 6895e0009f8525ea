"""Holding Ctrl-C back for the few microseconds in which an exception would lose a slot.

Python raises KeyboardInterrupt between any two steps of the main thread, also inside a save program that has just acquired
a slot and not yet noted it. While a `Shield` is up the signal is remembered; it is delivered when the shield goes down.
In other threads, and where nobody handles SIGINT in Python, a shield does nothing: no exception can fall there.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Shield:
    """Up between `up` and `down`; or a context."""

    def __init__(self) -> None:
        """Down."""
        self._handler: Any = None
        self._caught: tuple[int, FrameType | None] | None = None

    def up(self) -> None:
        """Remember SIGINT from now on instead of raising."""
        if self._handler is None and threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._remember)

    def down(self) -> None:
        """Deliver what was remembered; the handler may raise, as it would have."""
        if self._handler is not None:
            handler, self._handler = self._handler, None
            signal.signal(signal.SIGINT, handler)
            if self._caught is not None:
                caught, self._caught = self._caught, None
                handler(*caught)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self._caught = (number, frame)

    def __enter__(self) -> Shield:
        """Up."""
        self.up()
        return self

    def __exit__(self, *exception: object) -> None:
        """Down."""
        self.down()
