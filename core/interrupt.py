"""Ctrl-C and its like, held back to the points where they lose nothing.

Python raises KeyboardInterrupt between any two steps of the main thread, also inside a save program that has just acquired a
slot and not yet noted it. While a `Shield` is up, the signals are remembered; they are delivered when it goes down, and at
every `check`, which waiting loops call where nothing is half done. In other threads, and for signals that nobody handles in
Python, a shield does nothing: no exception can fall there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, TypeVar

try:  # the same two functions without their detour through enumerations, which takes as long as a small save
    from _signal import getsignal as handler_of  # type: ignore[import-not-found]
    from _signal import signal as set_handler
except ImportError:
    from signal import getsignal as handler_of
    from signal import signal as set_handler

Item = TypeVar("Item")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)
"""What terminals, schedulers and time-outs send; a Python handler of any of them may raise."""
WAKE_SECONDS = 0.1
"""How long a waiting loop sleeps before it checks again."""


class Shield:
    """Up between `up` and `down`; or a context."""

    def __init__(self) -> None:
        self._is_up = False
        self._handlers: dict[int, Any] = {}
        self._caught: list[tuple[int, FrameType | None]] = []

    def up(self) -> None:
        """Remember the signals from now on instead of handling them."""
        if self._is_up or threading.current_thread() is not threading.main_thread():
            return
        self._is_up = True
        try:
            for number in SIGNALS:
                handler = handler_of(number)
                if callable(handler) and handler != self._remember:
                    self._handlers[number] = handler
                    set_handler(number, self._remember)
        except BaseException:  # one that is not remembered yet has just arrived
            self.down()
            raise

    def down(self) -> None:
        """Deliver what was remembered; a handler may raise, as it would have, and the others are called all the same."""
        if not self._is_up:
            return
        self._is_up = False
        try:
            for number, handler in self._handlers.items():
                set_handler(number, handler)
        finally:
            self._deliver()

    def _deliver(self) -> None:
        if self._caught:
            number, frame = self._caught.pop(0)
            try:
                self._handlers[number](number, frame)
            finally:
                self._deliver()

    def check(self) -> None:
        """Deliver now what was remembered; call it where an exception loses nothing."""
        if self._caught:
            self.down()
            self.up()

    def lowered_for(self, producer: Iterator[Item]) -> Iterator[Item]:
        """The producer's items, with the shield down while its own code, which may wait for long, makes the next one."""
        while True:
            self.down()
            try:
                item = next(producer)
            except StopIteration:
                return
            finally:
                self.up()
            yield item
            del item  # a buffer that the producer changes the size of must not be held on to

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self._is_up:
            self._caught.append((number, frame))
        else:  # not put back, since another one raised just then
            self._handlers[number](number, frame)

    def __enter__(self) -> Shield:
        self.up()
        return self

    def __exit__(self, *exception: object) -> None:
        self.down()
