"""A signal ends a measurement in order: processes ended, files gone, what was measured so far shown.

    stoppable(work)   the first SIGINT, SIGTERM or SIGHUP raises Stopped in `work`; later ones are ignored, `timeout` sends
                      two. With a limit, the time being over does the same
    postponed()       inside, a signal is only remembered, and raised at the end
    check()           raise now what was remembered
    scratch(…)        a folder that is gone afterwards, whatever ends the work and whenever

Python drops what a signal raises inside a finalizer or a hook that runs while it forks. So who repeats things asks `check`.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class Stopped(KeyboardInterrupt):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.is_out_of_time = number == signal.SIGALRM
        self.status = 128 + number
        """What a shell calls the end by this signal."""


class _Asked:
    """The signal that came, if one did, and whether it has been raised."""

    number = 0
    is_raised = False
    depth = 0
    """Of postponements."""


def stoppable(work: Callable[[], int], limit_seconds: float = 0.0) -> int:
    """The exit status of `work`, or of the signal that ended it. A limit of 0 is none."""
    _Asked.number, _Asked.is_raised = 0, False
    # A command in the background has SIGINT ignored, and must end all the same; one under `nohup` outlives its terminal.
    heard = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _hear) for number in heard}
    limit(limit_seconds)
    try:
        return work()
    except Stopped as stop:
        print("lastgood: out of time" if stop.is_out_of_time else "lastgood: interrupted", file=sys.stderr)
        return stop.status
    finally:
        limit(0.0)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def limit(seconds: float) -> None:
    """Let the time be over then; 0 for never."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _hear(number: int, frame: Any) -> None:
    if not _Asked.number:
        _Asked.number = number
        if not _Asked.depth:
            check()


def check() -> None:
    """Raise Stopped when a signal has come."""
    if _Asked.number:
        _Asked.is_raised = True
        raise Stopped(_Asked.number)


@contextmanager
def postponed() -> Iterator[None]:
    """What is inside happens whole."""
    _Asked.depth += 1
    try:
        yield
    finally:
        _Asked.depth -= 1
    if not _Asked.depth and not _Asked.is_raised:
        check()


@contextmanager
def scratch(prefix: str, parent: str | None) -> Iterator[str]:
    """A new folder in `parent`, by default the system's temporary directory."""
    if parent is not None and not os.path.isdir(parent):
        raise FileNotFoundError(2, "No such directory", parent)
    directory = ""
    try:
        with postponed():
            directory = tempfile.mkdtemp(prefix=prefix, dir=parent)
        yield directory
    finally:
        with postponed():
            shutil.rmtree(directory, ignore_errors=True)


def end_as_usual() -> None:
    """In a forked child: signals are for the parent, which ends it; whom the child starts can be ended as usual."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
