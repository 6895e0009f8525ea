"""SIGINT at every instant at which Python can act on one in core code: entering a function, leaving a call into C.

The interpreter looks for signals at the start of a function, after a call into C, and at the end of a loop's round (in
which there are calls anyway). A profile function is called at the first two, so it can send one at a chosen instant.
Code that puts the signal off for a while, or that is in order whenever the exception comes, both do well.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from lastgood import core

CORE = str(Path(core.__file__).parent)


class Interrupt:
    """Within the block SIGINT comes at instant number `last` of the main thread; `came` says whether it did."""

    def __init__(self, last: int) -> None:
        self.came = False
        self.place = "the end"
        self._last = last
        self._count = 0

    def __enter__(self) -> Interrupt:
        self._handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        sys.setprofile(self._at_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, self._handler)

    def _at_event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_return") or not frame.f_code.co_filename.startswith(CORE):
            return
        self._count += 1
        if self._count == self._last:
            sys.setprofile(None)
            self.came = True
            self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} ({event} {argument or ''})"
            signal.raise_signal(signal.SIGINT)


def every_instant(trial: Callable[[int], bool], all_of_the_first: int = 10**9) -> int:
    """Call `trial` with 1, 2, ... until it says that no interrupt came; the last one that came.

    After `all_of_the_first`, one in a hundred: where a long loop makes many instants that are all alike.
    """
    last = 1
    while trial(last):
        last += 1 if last < all_of_the_first else 97
    return last - 1
