"""The choice between copying at the boundary and copying behind the training's back, made anew from what each cost.

small state                     boundary: handing over to another thread costs more than the copy
no update seen between saves    boundary: nothing would guard a later copy
otherwise                       lazy, for as long as it holds the training up for less than the boundary copy did;
                                when it does not, boundary for the next `PATIENCE_SAVES` saves, then lazy is tried again
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from lastgood.core import Store, Ticket

from .capture import BoundaryCopy, Capture, Snapshot
from .entries import Entry
from .lazy import LazyCopy

SMALL_STATE_BYTES = 1024 * 1024
PATIENCE_SAVES = 16


def prefers_lazy(lazy_us_per_mib: int, boundary_us_per_mib: int) -> bool:
    """Whether lazy capture held the training up for less, by what was measured last; unknown ones are 0."""
    return lazy_us_per_mib == 0 or boundary_us_per_mib == 0 or lazy_us_per_mib < boundary_us_per_mib


class AutoCopy(Capture):
    """Lazy where it pays, at the boundary where it does not."""

    def __init__(self, lazy: LazyCopy | None = None) -> None:
        self._lazy = LazyCopy() if lazy is None else lazy
        self._boundary = BoundaryCopy()
        self._costs = {"lazy": 0, "boundary": 0}
        self._last: tuple[str, int, float, float] | None = None
        self._patience = 0
        self._reason = "nothing was saved yet"

    @property
    def waited_seconds(self) -> float:  # type: ignore[override]
        """Time that optimizer steps were made to wait."""
        return self._lazy.waited_seconds

    def bind(self, entries: Sequence[Entry]) -> None:
        """Learn the objects."""
        self._lazy.bind(entries)

    def begin(self, store: Store, snapshot: Snapshot, *, step: int, meta: bytes) -> Ticket:
        """Start the save in whichever way is the cheaper one now."""
        self._account_for_the_last()
        chosen = self._choose(snapshot.total_bytes)
        paid_as = chosen if self._lazy.has_watched else "boundary"  # the first save of lazy capture is one
        began, waited = time.perf_counter(), self._lazy.waited_seconds
        try:
            capture = self._lazy if chosen == "lazy" else self._boundary
            if chosen == "boundary":
                self._lazy.settle()
            return capture.begin(store, snapshot, step=step, meta=meta)
        finally:
            self._last = (paid_as, snapshot.total_bytes, time.perf_counter() - began, waited)

    def _account_for_the_last(self) -> None:
        if self._last is None:
            return
        kind, length, held, waited_before = self._last
        waited = self._lazy.waited_seconds - waited_before
        self._costs[kind] = max(1, int((held + waited) * 1e6 * 2**20 / max(length, 1)))
        self._last = None

    def _choose(self, total_bytes: int) -> str:
        if total_bytes < SMALL_STATE_BYTES:
            self._reason = f"the state has only {total_bytes:,} bytes"
            return "boundary"
        if not self._lazy.has_watched:
            self._reason = "no update was seen between two saves yet"
            return "lazy"
        if self._patience:
            self._patience -= 1
            self._reason = f"lazy capture cost more; it is tried again in {self._patience} saves"
            return "boundary"
        lazy, boundary = self._costs["lazy"], self._costs["boundary"]
        if prefers_lazy(lazy, boundary):
            self._reason = f"lazy {lazy} µs, boundary {boundary} µs for each MiB (0: not known)"
            return "lazy"
        self._patience, self._costs["lazy"] = PATIENCE_SAVES, 0
        self._reason = f"lazy {lazy} µs, boundary {boundary} µs for each MiB"
        return "boundary"

    def settle(self) -> None:
        """Wait for the copy under way."""
        self._lazy.settle()

    def close(self) -> None:
        """Wait, and take the gate away."""
        self._lazy.close()

    def explain(self) -> str:
        """One line."""
        return f"auto: {self._reason}"


class Foreign(Capture):
    """Somebody's own object with `begin` and nothing else."""

    def __init__(self, capture: Any) -> None:
        self._capture = capture

    def begin(self, store: Store, snapshot: Snapshot, *, step: int, meta: bytes) -> Ticket:
        """Ask it."""
        ticket: Ticket = self._capture.begin(store, snapshot, step=step, meta=meta)
        return ticket


def as_capture(capture: str | Any) -> Capture:
    """The capture of this name ("boundary", "lazy", "auto"), or the given object."""
    if isinstance(capture, str):
        kinds = {"boundary": BoundaryCopy, "lazy": LazyCopy, "auto": AutoCopy}
        if capture not in kinds:
            raise ValueError(f"capture={capture!r}: choose one of {', '.join(kinds)}, or give an object with begin()")
        return kinds[capture]()
    if not callable(getattr(capture, "begin", None)):
        raise TypeError(f"capture={capture!r}: choose one of boundary, lazy, auto, or give an object with begin()")
    return capture if isinstance(capture, Capture) else Foreign(capture)
