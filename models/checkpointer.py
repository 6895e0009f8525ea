"""The training loop's checkpointer: restore, then save when due, several saves in flight, failures told in time.

    ckpt = Checkpointer(directory, {"model": model, "optimizer": optimizer, "scheduler": scheduler}, every=10)
    start = ckpt.restore()                 the step to go on from; 0 only if nothing was ever acknowledged
    for step in range(start, steps):
        ...                                forward, backward, optimizer.step()
        ckpt.step(step + 1)                saves when due; raises what failed in the background
    ckpt.close()                           waits; `with` does it as well

One checkpoint holds every entry, the step and the global random streams, all of one moment. What is kept of each kind
of entry, and how plain values come back, is told in `entries.py`; what can be written at all, in `encode.py`.

K1 whole-or-nothing  `restore` checks every entry before it changes any; one error has all keys that do not fit; whatever
                     raises while it loads, also Ctrl-C, everything that was there before is put back (`putting_back.py`)
K2 own-memory        nothing restored aliases the checkpoint's memory or another copy of it (`decode.py`)
K3 told-once         a failed save is raised once: by the next `step` or `save` at which it is known, or by `close`
K4 started-anyway    when `save` raises about an earlier failure, its own save is under way (`error.ticket`)
K5 no-fallback       a store with acknowledged saves is never taken for an empty one: `NothingUsable` is raised

When a save is due is decided in `cadence.py`, how the state is copied out of the training's way in `capture.py`, what
happens at SIGTERM in `preemption.py`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import MutableMapping, Sequence
from typing import Any

from lastgood.core import NoStore, SaveFailed, Store, StoreClosed, StoreError, Ticket

from .arguments import checked_state, refuse_several_processes, settings, whole_step
from .cadence import Cadence, take_up
from .capture import Capture
from .choosing import as_capture
from .compare import class_name
from .encode import Encoded, Encoder
from .entries import Plain, are_current, entries_of
from .exports import JOB_META
from .preemption import Leaving, Preemption, one_at_a_time
from .progress import Progress, Tracker
from .restoring import restore_newest
from .retention import Keeping, Retention, checked_retention
from .rng import capture_streams
from .room import give_back_when_dropped, make_room, open_existing, open_or_create, warn_of_other_sizes

logger = logging.getLogger("lastgood")


class Checkpointer(Keeping, Leaving):
    """Saves and restores the named parts of one training job. Use it from the training's thread."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        state: MutableMapping[str, Any],
        *,
        every: int | str | Cadence | None = None,
        overhead: float | None = None,
        cadence: str | os.PathLike[str] | Cadence | None = None,
        mean_seconds_between_failures: float | str | None = None,
        capture: str | Capture | None = None,
        sigterm_grace: float | str | None = None,
        retention: Retention | None = None,
        in_flight: int | None = None,
        keep: int = 2,
        rng: bool = True,
        new_run: bool = False,
        **store_options: Any,
    ) -> None:
        """Name the parts; nothing is read or written yet, and the directory is made by the first save.

        The dict is read again at every save and restore: what was added to it, replaced or removed since counts.
        `every` is a number of steps (10 when nothing is said) or a time like "30s"; `overhead=0.03` instead saves as
        often as costs at most 3 % of the time; `cadence` instead is one of your own, or the file that `lastgood tune`
        wrote, which also says how to capture and how many at once. With `mean_seconds_between_failures`,
        `cadence.explain()` also says what a failure costs. `capture` is "boundary" (the default), "lazy" or "auto".
        `sigterm_grace="25s"` makes SIGTERM save a last time. `retention` copies some out of the slots to stay.
        `in_flight` (4) and `keep` are the store's; one that exists keeps its own. `rng=False` leaves the global random
        streams alone. `new_run=True` starts over in a store that holds another run's checkpoints. Further options
        (`device`, `overload`, …) are the store's.
        """
        refuse_several_processes()
        self.directory = directory
        self.state = checked_state(state)
        self.restored: dict[str, Any] = {}
        self.left_out: list[str] = []
        when = {"every": every, "overhead": overhead, "cadence": cadence}
        asked = settings(when, mean_seconds_between_failures, capture, in_flight, keep, store_options, type(self))
        self.cadence = asked.cadence
        self.capture = as_capture(asked.capture)
        self._entries = entries_of(state)
        self._sizes = asked.sizes
        self._encoder = Encoder()
        self._rng = rng
        self._new_run = new_run
        self._store_options = asked.store_options
        self._store: Store | None = None
        self._dropped: Any = None
        self._tracker = Tracker()
        self._closed = False
        self._inside = ""
        self._step = 0
        self._retention = checked_retention(retention)
        self._preemption = Preemption(sigterm_grace)
        self._preemption.listen()
        self.capture.bind(self._entries)

    # --- restoring ---------------------------------------------------------------------------------------------------

    @one_at_a_time
    def restore(self, *, strict: bool = True, only: Sequence[str] | None = None) -> int:
        """Restore the newest whole checkpoint into the objects here; returns its step, 0 when nothing was ever saved.

        Plain values are in `restored` by name as well as in the state. Raises NothingUsable when checkpoints were
        acknowledged and none is whole, StateMismatch (`problems` has every key that does not fit) before anything is changed.
        With `strict=False` what does not fit stays as it is here, and is listed in `left_out`. `only` names the entries
        to restore; all else stays as it is, the random streams too.
        """
        self.check_open()
        self._look()
        if self._new_run:
            raise StoreError("new_run=True starts over, so there is nothing to restore: leave out one of the two")
        try:
            store = self._store or open_existing(self.directory, **self._store_options)
        except NoStore:
            return 0
        self.capture.settle()
        for ticket in self._tracker.in_flight:
            with contextlib.suppress(SaveFailed):  # told by the next `step`
                ticket.wait()
        self._have(None)  # until all is well: a job that goes on after a failed restore must not save over the run
        try:
            step = self._restore_from(store, strict, only)
        except BaseException:
            store.close()
            raise
        self._have(store)
        self._step = step
        return step

    def _restore_from(self, store: Store, strict: bool, only: Sequence[str] | None) -> int:
        if store.newest() is None and not store.marked:
            return 0
        found = restore_newest(store, self._entries, rng=self._rng, strict=strict, only=only)
        self.restored, self.left_out = found.values, found.left_out
        take_up(self.cadence, found.extra.get("cadence"))
        self._tracker.restored(found.record.step, found.record.sequence)
        warn_of_other_sizes(store, **self._sizes)
        return found.record.step

    # --- saving ------------------------------------------------------------------------------------------------------

    @one_at_a_time
    def step(self, step: int) -> Ticket | None:
        """Say that training has made `step` updates: saves when due (then the ticket is returned).

        Raises SaveFailed when an earlier save turns out to have failed; training may catch it and go on (K3, K4).
        Raises Preempted, which ends the process, when SIGTERM has come, the last save is done and grace was asked for.
        """
        self.check_open()
        self._step = step = whole_step(step)
        self._complete_updates()
        if self._preemption.is_asked:
            self._leave()
        self.cadence.arrived(step)
        try:
            self._hear()
            if self.cadence.due(step):
                return self._save(step)
            if self._tracker.has_news():
                self._tracker.tell_of_failures(None)
            self.tell_of_copies(None)
        finally:
            self.cadence.resumed(step)
        return None

    @one_at_a_time
    def save(self, step: int) -> Ticket:
        """Save now, due or not. Returns once the state is copied, so the next update may begin.

        Raises NotPlainData before anything is written, OtherRun when the store holds checkpoints that were not
        restored, SaveFailed as `step` does, OSError when the store cannot be made.
        """
        self._step = step = whole_step(step)
        self._complete_updates()
        self._hear()
        return self._save(step)

    def _hear(self) -> None:
        """Pass on which saves have ended since somebody listened last."""
        if self._tracker.has_news():
            for ended_step, durable in self._tracker.take_ended():
                self.cadence.ended(ended_step, durable)
            self.keep_due(self._store)

    def _save(self, step: int) -> Ticket:
        began = time.perf_counter()
        waited_before = self.capture.waited_seconds
        self.check_open()
        self.make_way()
        snapshot = self._encode()
        self._tracker.encode_seconds += time.perf_counter() - began
        store = self._store_for(snapshot.total_bytes)
        try:
            ticket = self.capture.begin(store, snapshot, step=step, meta=JOB_META)
        except SaveFailed as earlier:
            if earlier.ticket is None:
                raise
            ticket = earlier.ticket  # K4 started-anyway; K3 decides below whether it was told already
        self._tracker.started(ticket)
        stalled_seconds = time.perf_counter() - began - (self.capture.waited_seconds - waited_before)
        self._tracker.held(stalled_seconds)
        self.cadence.saved(step, stalled_seconds)
        try:
            self._tracker.tell_of_failures(ticket)
        finally:
            self._tracker.sample_staleness()
        self.tell_of_copies(ticket)
        return ticket

    def _look(self) -> None:
        """Take the user's dict as it is now; in place, so that the capture sees it."""
        if not are_current(self._entries, self.state):
            self._entries[:] = entries_of(checked_state(self.state), self._entries)

    def _complete_updates(self) -> None:
        self._look()
        for entry in self._entries:
            entry.complete_update()

    def _encode(self) -> Encoded:
        """The whole state of this moment, aliasing the live objects."""
        self._look()
        parts = {entry.name: entry.read() for entry in self._entries}
        kinds = {entry.name: class_name(entry.value) for entry in self._entries if not isinstance(entry, Plain)}
        streams = capture_streams() if self._rng else None
        snapshot = self._encoder.encode(
            parts, extra={"kinds": kinds, "streams": streams, "cadence": self.cadence.state()}
        )
        self._tracker.state_bytes = snapshot.total_bytes
        return snapshot

    def _store_for(self, total_bytes: int) -> Store:
        """The store, opened or made at the first save, with slots that this state fits into."""
        if self._store is None:
            room = total_bytes + sum(entry.growth_bytes() for entry in self._entries)
            options = self._sizes | self._store_options
            self._have(open_or_create(self.directory, total_bytes=room, new_run=self._new_run, **options))
        assert self._store is not None
        make_room(self._store, total_bytes)
        return self._store

    def _have(self, store: Store | None) -> None:
        if self._dropped is not None:
            self._dropped.detach()
        self._store = store
        self._dropped = give_back_when_dropped(self, store, self.capture) if store is not None else None

    # --- the end -----------------------------------------------------------------------------------------------------

    def statistics(self) -> Progress:
        """What this checkpointer has done so far. A failure that is counted here is still told by `step` or `close`."""
        return self._tracker.snapshot(self.capture.waited_seconds)

    @one_at_a_time
    def close(self) -> None:
        """Wait until the saves in flight are durable and give the store back. Harmless when closed already.

        Raises SaveFailed when a save failed that was not told of yet; while another exception is being handled that one
        stays in front and the failure is printed. One left open is closed when it is dropped, or at interpreter exit.
        """
        self._closed = True
        self.capture.close()
        self._preemption.stop()
        store = self._store
        self._have(None)
        if store is None:
            return
        try:
            store.close()
        except SaveFailed:
            self._tracker.tell_of_failures(None)  # K3: the store tells again of what a step has told already
        self._tracker.look()
        self.keep_the_last()

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def check_open(self) -> None:
        """Raise StoreClosed after `close`, StoreError in a job of several ranks."""
        refuse_several_processes()
        if self._closed:
            raise StoreClosed(f"the checkpointer of {self.directory} is closed: make a new one")
