"""The training loop's checkpointer: restore, then save when due, several saves in flight, failures told in time.

    ckpt = Checkpointer(directory, {"model": model, "optimizer": optimizer, "scheduler": scheduler}, every=10)
    start = ckpt.restore()                 the step to go on from; 0 only if nothing was ever acknowledged
    for step in range(start, steps):
        ...                                forward, backward, optimizer.step()
        ckpt.step(step + 1)                saves when due; raises what failed in the background
    ckpt.close()                           waits; `with` does it as well

One checkpoint holds every entry, the step and the global random streams, all of one moment. What is kept of each kind
of entry, and how plain values come back, is told in `entries.py`; what can be written at all, in `encode.py`.

K1 whole-or-nothing  `restore` checks every entry before it changes any; a mismatch names all keys in one error
K2 own-memory        nothing restored aliases the checkpoint's memory or another copy of it (`decode.py`)
K3 told-once         a failed save is raised once: by the next `step` or `save` at which it is known, or by `close`
K4 started-anyway    when `save` raises about an earlier failure, its own save is under way (`error.ticket`)
K5 no-fallback       a store with acknowledged saves is never taken for an empty one: `NothingUsable` is raised
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any

import torch

from lastgood.core import NoStore, SaveFailed, Store, StoreClosed, StoreError, Ticket

from .cadence import Cadence, as_cadence
from .capture import BoundaryCopy, Capture
from .compare import class_name
from .decode import decode
from .encode import Encoded, encode
from .entries import Plain, entries_of
from .progress import Progress, Tracker
from .restoring import check, restore
from .rng import capture_streams
from .room import make_room, open_existing, open_or_create, warn_of_other_sizes
from .save_load import META

logger = logging.getLogger("lastgood")


class Checkpointer:
    """Saves and restores the named parts of one training job. Use it from the training's thread."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        state: MutableMapping[str, Any],
        *,
        every: int | Cadence = 10,
        in_flight: int = 4,
        keep: int = 2,
        rng: bool = True,
        new_run: bool = False,
        capture: Capture | None = None,
        **store_options: Any,
    ) -> None:
        """Name the parts; nothing is read or written yet, and the directory is made by the first save.

        `every` is a number of steps, or a cadence. `in_flight` and `keep` are the store's; a store that exists keeps
        its own. `rng=False` leaves the global random streams alone. `new_run=True` starts over in a store that holds
        another run's checkpoints. Further options (`device`, `writers`, `overload`, `chunk_bytes`, …) are the store's.
        """
        refuse_several_processes()
        if not isinstance(state, MutableMapping) or not all(isinstance(name, str) and name for name in state):
            raise TypeError("state: give a dict of named parts, like {'model': model, 'optimizer': optimizer}")
        self.directory = directory
        self.state = state
        self.restored: dict[str, Any] = {}
        self._entries = entries_of(state)
        self._cadence = as_cadence(every)
        self._due = self._cadence.due
        self._capture = BoundaryCopy() if capture is None else capture
        self._sizes = {"in_flight": in_flight, "keep": keep}
        self._rng = rng
        self._new_run = new_run
        self._store_options = store_options
        self._store: Store | None = None
        self._tracker = Tracker()
        self._closed = False

    # --- restoring ---------------------------------------------------------------------------------------------------

    def restore(self) -> int:
        """Restore the newest whole checkpoint into the objects here; returns its step, 0 when nothing was ever saved.

        Plain values are in `restored` by name as well as in the state. Raises NothingUsable when checkpoints were
        acknowledged and none is whole, StateMismatch, with every key that does not fit, before anything is changed.
        """
        self._check_open()
        refuse_several_processes()
        if self._new_run:
            raise StoreError("new_run=True starts over, so there is nothing to restore: leave out one of the two")
        try:
            store = self._store or open_existing(self.directory, **self._store_options)
        except NoStore:
            return 0
        for ticket in self._tracker.in_flight:
            with contextlib.suppress(SaveFailed):  # told by the next `step`
                ticket.wait()
        self._store = None  # until all is well: a job that goes on after a failed restore must not save over the run
        try:
            step = self._restore_from(store)
        except BaseException:
            store.close()
            raise
        self._store = store
        return step

    def _restore_from(self, store: Store) -> int:
        if store.newest() is None and not store.marked:
            return 0
        record, payload = store.read_with_record()
        for reason in store.passed_over:
            logger.warning("%s: %s; restoring step %d", store.path, reason, record.step)
        try:
            decoded = decode(payload)
        except StoreError as problem:
            raise type(problem)(f"step {record.step} of {store.path}: {problem}") from problem
        del payload
        check(self._entries, decoded, rng=self._rng, where=f"step {record.step} of {store.path}")
        self.restored = restore(self._entries, decoded, rng=self._rng)
        self._tracker.restored(record.step, record.sequence)
        warn_of_other_sizes(store, **self._sizes)
        return record.step

    # --- saving ------------------------------------------------------------------------------------------------------

    def step(self, step: int) -> Ticket | None:
        """Say that training has made `step` updates: saves when due (then the ticket is returned).

        Raises SaveFailed when an earlier save turns out to have failed; training may catch it and go on (K3, K4).
        """
        if self._due(step):
            return self.save(step)
        if self._tracker.has_news():
            self._tell_of_failures(None)
        return None

    def save(self, step: int) -> Ticket:
        """Save now, due or not. Returns once the state is copied, so the next update may begin.

        Raises NotPlainData before anything is written, OtherRun when the store holds checkpoints that were not
        restored, SaveFailed as `step` does, OSError when the store cannot be made.
        """
        began = time.perf_counter()
        self._check_open()
        refuse_several_processes()
        snapshot = self._encode()
        self._tracker.encode_seconds += time.perf_counter() - began
        store = self._store_for(snapshot.total_bytes)
        try:
            ticket = self._capture.begin(store, snapshot, step=step, meta=META)
        except SaveFailed as earlier:
            if earlier.ticket is None:
                raise
            ticket = earlier.ticket  # K4 started-anyway; K3 decides below whether it was told already
        self._tracker.started(ticket)
        stalled_seconds = time.perf_counter() - began
        self._tracker.held(stalled_seconds)
        self._cadence.saved(step, stalled_seconds)
        try:
            self._tell_of_failures(ticket)
        finally:
            self._tracker.sample_staleness()
        return ticket

    def _encode(self) -> Encoded:
        """The whole state of this moment, aliasing the live objects."""
        parts = {entry.name: entry.read() for entry in self._entries}
        kinds = {entry.name: class_name(entry.value) for entry in self._entries if not isinstance(entry, Plain)}
        streams = capture_streams() if self._rng else None
        snapshot = encode(parts, extra={"kinds": kinds, "streams": streams})
        self._tracker.state_bytes = snapshot.total_bytes
        return snapshot

    def _store_for(self, total_bytes: int) -> Store:
        """The store, opened or made at the first save, with slots that this state fits into."""
        if self._store is None:
            room = total_bytes + sum(entry.growth_bytes() for entry in self._entries)
            self._store = open_or_create(
                self.directory, total_bytes=room, new_run=self._new_run, **self._sizes, **self._store_options
            )
        make_room(self._store, total_bytes)
        return self._store

    def _tell_of_failures(self, ticket: Ticket | None) -> None:
        """Raise one SaveFailed for the saves that failed and were not told of; `ticket` is the one just started."""
        failed = self._tracker.take_failed()
        if not failed:
            return
        failure = failed[0].failure()
        if len(failed) > 1:
            failure.args = (f"{failure} (and {len(failed) - 1} more saves failed)",)
        failure.ticket = ticket
        raise failure

    # --- the end -----------------------------------------------------------------------------------------------------

    def statistics(self) -> Progress:
        """What this checkpointer has done so far. A failure that is counted here is still told by `step` or `close`."""
        return self._tracker.snapshot()

    def close(self) -> None:
        """Wait until the saves in flight are durable and give the store back. Harmless when closed already.

        Raises SaveFailed when a save failed that was not told of yet; while another exception is being handled that one
        stays in front and the failure is printed. A checkpointer left open is closed when the interpreter exits.
        """
        self._closed = True
        store, self._store = self._store, None
        if store is None:
            return
        try:
            store.close()
        except SaveFailed:
            self._tell_of_failures(None)  # K3: the store tells again of what a step has told already
        self._tracker.look()

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the checkpointer of {self.directory} is closed: make a new one")


def refuse_several_processes() -> None:
    """Raise StoreError in a job of several ranks: each would save its own part and none the whole."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise StoreError(
            f"this job has {distributed.get_world_size()} ranks and Checkpointer saves one process:"
            " save from one rank that holds the whole state, or run with a world size of 1"
        )
