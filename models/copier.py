"""The thread that copies a held snapshot into the store while the training computes, one piece after another.

    training's thread:  boundary ── submit ── forward, backward ── gate: wait_copied ── optimizer step
    copier:                          push ── push ── … ── (nothing moved?) ── copied ── seal

C1 copied-last     `copied` is set when no live memory will be read any more, whatever went wrong on the way
C2 never-mixed     a copy during which a tensor moved is given up, and the next step, save or close tells of it
C3 finished-first  at interpreter exit the copies under way are completed before the store is closed

A copy is a generator that yields after every piece, so that tests can put anything between two pieces.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from lastgood.core import Saving, StoreError

from .standing import Marks


class MovedWhileCopied(StoreError):
    """A tensor was changed outside of an optimizer step while it was being copied: that save is void."""


class Copy:
    """One snapshot on its way from live memory into the store's staging memory."""

    def __init__(self, saving: Saving, buffers: Callable[[], Iterator[Any]], marks: Marks) -> None:
        self.saving = saving
        self.marks = marks
        self.copied = threading.Event()
        self.ended = threading.Event()
        self.process = os.getpid()
        self._buffers = buffers
        self._unclaimed = [self]

    def _claim(self) -> bool:
        """True for the first one who asks, in whichever thread: a copy is carried out or given up, never both."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def give_up(self, problem: BaseException) -> None:
        """It did not get to a copier, and its beginner, who is told by `problem` itself, must not wait for it."""
        if self._claim():
            self.copied.set()
            self.saving.abandon(problem)
            self.ended.set()

    def run(self) -> Iterator[None]:
        """Push every buffer, yielding after each; never raises."""
        if not self._claim():
            return
        problem: BaseException | None = None
        try:
            for buffer in self._buffers():
                self.saving.push(buffer)
                yield
            self._check_nothing_moved()
        except BaseException as error:  # C2: whatever it was, the payload is not whole
            problem = error
        self.copied.set()  # C1
        try:
            if problem is None:
                self.saving.finish(tell=False)
            else:
                self.saving.abandon(problem, told=False)
        finally:
            self.ended.set()

    def _check_nothing_moved(self) -> None:
        moved = self.marks.moved()
        if moved:
            more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
            raise MovedWhileCopied(
                f"{self.marks.path_of(moved[0])}{more} was changed outside of an optimizer step while it was being copied;"
                " from now on it is copied at the boundary"
            )


class Copier(Protocol):
    """Carries copies out, in the order in which they are submitted."""

    def submit(self, copy: Copy) -> None:
        """Begin this copy after those before it."""

    def wait_copied(self, copy: Copy) -> None:
        """Return when this copy reads live memory no more."""

    def wait_ended(self, copy: Copy) -> None:
        """Return when the store has all of it, or was told that it will not."""


class ThreadCopier:
    """One thread, started by the first copy."""

    def __init__(self) -> None:
        self._copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._process = 0

    def submit(self, copy: Copy) -> None:
        """Hand over to the thread."""
        if self._thread is None or self._process != os.getpid():
            self._copies = queue.SimpleQueue()
            self._process = os.getpid()
            self._thread = threading.Thread(target=work_off, args=(self._copies,), name="lastgood copier", daemon=True)
            self._thread.start()
        _under_way.add(copy)
        self._copies.put(copy)

    def wait_copied(self, copy: Copy) -> None:
        """Sleep until the thread is there."""
        copy.copied.wait()

    def wait_ended(self, copy: Copy) -> None:
        """The same, a moment later."""
        copy.ended.wait()


def work_off(copies: queue.SimpleQueue[Copy]) -> None:
    """Carry out copies for ever."""
    while True:
        copy = copies.get()
        for _ in copy.run():
            pass
        del copy


_under_way: weakref.WeakSet[Copy] = weakref.WeakSet()


@atexit.register
def _finish_copies() -> None:
    """C3: registered after the core's own exit handler, so it runs before that one closes the stores."""
    for copy in list(_under_way):
        if copy.process == os.getpid():
            copy.ended.wait()
