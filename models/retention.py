"""Checkpoints that stay: pinned by name, every N-th step, a time ladder. Copies that no slot is ever reused for.

A store keeps its newest `keep`; what is to stay longer is copied out of its slot, verified, into a state file beside the
slots, before the slot can be used again:

    store/pinned/best.lastgood                 `pin(step, "best")`; only `unpin` removes it
    store/kept/step-000000012000.lastgood      `Retention(every=…, ladder=…)`; thinned as the ladder says

N1 copy-first     a copy is durable before anything that it replaces is removed (`whole_file.py`)
N2 own-only       nothing is removed but copies made by the ladder; slots and pins never (promise `no-harm`)
N3 one-at-least   so at every instant, whoever is killed, the store's newest checkpoint is whole, and every pin is
N4 one-thread     the copy is made by the training's thread: it starts no save meanwhile, so the slot is not used again
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lastgood.core import Damaged, NoStore, Record, Store, StoreError

from .cadence import seconds_of
from .exports import copy_out
from .state_file import SUFFIX, open_state_file

PINNED, KEPT = "pinned", "kept"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=@-]{0,99}")
COPY = re.compile(r"step-(-?\d+)\.lastgood")


@dataclass(frozen=True)
class Retention:
    """What is copied out of the slots to stay.

    `every=1000` keeps each checkpoint whose step is a multiple of that, for good. `ladder=[("10m", 6), ("1h", 24)]`
    keeps the first checkpoint of each ten minutes, six of them, and of each hour, 24 of them; a number is seconds.
    """

    every: int | None = None
    ladder: tuple[tuple[float, int], ...] = field(default=())

    def __init__(self, *, every: int | None = None, ladder: Iterable[tuple[Any, int]] = ()) -> None:
        """Check the numbers. Raises ValueError."""
        if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise ValueError(f"every={every!r}: give a number of steps, 1 or more")
        rungs = []
        for interval, count in ladder:
            seconds = float(interval) if isinstance(interval, int | float) else seconds_of(interval)
            if seconds <= 0 or isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ValueError(f"ladder has ({interval!r}, {count!r}): give a time above 0 and how many, 1 or more")
            rungs.append((seconds, count))
        object.__setattr__(self, "every", every)
        object.__setattr__(self, "ladder", tuple(rungs))

    def wants(self, step: int, saved_at: float, kept: Iterable[tuple[int, float]]) -> bool:
        """Whether a checkpoint is to be copied, given the steps and times of the copies there are."""
        if self.every is not None and step % self.every == 0:
            return True
        times = [time for _, time in kept]
        return any(saved_at // gap not in {time // gap for time in times} for gap, _ in self.ladder)

    def superfluous(self, kept: Iterable[tuple[int, float]]) -> list[int]:
        """The steps of those copies that no rule wants any longer."""
        copies = sorted(kept, key=lambda copy: copy[1])
        wanted = {step for step, _ in copies if self.every is not None and step % self.every == 0}
        for gap, count in self.ladder:
            first: dict[float, int] = {}
            for step, time in copies:
                first.setdefault(time // gap, step)
            wanted |= {first[span] for span in sorted(first)[-count:]}
        return [step for step, _ in copies if step not in wanted]


class Keeper:
    """The copies of one store's checkpoints."""

    def __init__(self, directory: str | os.PathLike[str], retention: Retention | None = None) -> None:
        """Nothing is made before the first copy."""
        if not isinstance(directory, str | os.PathLike):
            raise StoreError("pins and retention need a store in a directory of files")
        self._directory = os.fspath(directory)
        self._retention = retention
        self._seen = 0

    def pin(self, store: Store, step: int, name: str) -> str:
        """Copy the checkpoint of `step` under a name and return the file's path; a name is pinned anew by replacing it.

        Raises NoStore when the store holds no such step, ValueError for a name that is no plain file name.
        """
        path = self.path_of(name)
        for record in store.records():
            if record.step == step:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                copy_out(store, record, path, replace=True)
                return path
        steps = sorted({record.step for record in store.records()})
        raise NoStore(f"no checkpoint of step {step} in {store.path} to pin: it holds steps {steps}")

    def unpin(self, name: str) -> None:
        """Remove a pinned copy. Raises NoStore when there is none of that name."""
        try:
            os.unlink(self.path_of(name))
        except FileNotFoundError:
            raise NoStore(f"{self._directory} has no pin {name!r}; it has {sorted(self.pins())}") from None

    def pins(self) -> dict[str, str]:
        """The pinned copies, path by name."""
        names = self._names_in(PINNED)
        return {name.removesuffix(SUFFIX): os.path.join(self._directory, PINNED, name) for name in names}

    def path_of(self, name: str) -> str:
        """Where a pin of this name is. Raises ValueError for a name that is no plain file name."""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a pin: use letters, digits and . _ + = @ -")
        return os.path.join(self._directory, PINNED, name + SUFFIX)

    def kept(self) -> dict[int, str]:
        """The copies that the rules have made, path by step."""
        found = {}
        for name in self._names_in(KEPT):
            match = COPY.fullmatch(name)
            if match:
                found[int(match.group(1))] = os.path.join(self._directory, KEPT, name)
        return dict(sorted(found.items()))

    def look(self, store: Store) -> None:
        """Copy what has become durable since the last look and is to stay, then remove what no rule wants any more."""
        if self._retention is None:
            return
        fresh = [record for record in store.records() if record.sequence > self._seen]
        for record in reversed(fresh):
            self._copy_if_wanted(store, record)
            self._seen = record.sequence
        if fresh:
            copies = self._copies()
            for step in self._retention.superfluous(copies):
                os.unlink(self.kept()[step])

    def _copy_if_wanted(self, store: Store, record: Record) -> None:
        assert self._retention is not None
        if record.step in self.kept() or not self._retention.wants(record.step, record.saved_at, self._copies()):
            return
        path = os.path.join(self._directory, KEPT, f"step-{record.step:012d}{SUFFIX}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with suppress(Damaged):  # its slot was used again: somebody else saves into the store as well
            copy_out(store, record, path)

    def _copies(self) -> list[tuple[int, float]]:
        found = []
        for step, path in self.kept().items():
            with suppress(StoreError, OSError):
                found.append((step, open_state_file(path).saved_at))
        return found

    def _names_in(self, folder: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(os.path.join(self._directory, folder)) if name.endswith(SUFFIX))
        except FileNotFoundError:
            return []


class Keeping:
    """What a checkpointer has for checkpoints that stay; it sets the attributes named here."""

    directory: Any
    capture: Any
    _store: Store | None
    _tracker: Any
    _retention: Retention | None
    _own_keeper: Keeper | None = None

    @property
    def keeper(self) -> Keeper:
        """The copies of this store's checkpoints."""
        if self._own_keeper is None:
            self._own_keeper = Keeper(self.directory, self._retention)
        return self._own_keeper

    def pin(self, step: int, name: str) -> str:
        """Copy the checkpoint of `step` into a file that stays, under a name; returns its path once it is durable.

        A save of that step which is in flight is waited for. Pinning a name again replaces it. Raises NoStore when the
        store holds no such step (any more), SaveFailed when its save failed.
        """
        self.capture.settle()
        for ticket in list(self._tracker.in_flight):
            if ticket.step == step:
                ticket.wait()
        if self._store is not None:
            return self.keeper.pin(self._store, step, name)
        with Store.open(self.directory, read_only=True) as store:
            return self.keeper.pin(store, step, name)

    def keep_due(self, store: Store | None) -> None:
        """Copy what the retention rules want of the checkpoints that have become durable."""
        if self._retention is None:
            return
        if store is not None:
            self.keeper.look(store)
            return
        with Store.open(self.directory, read_only=True) as reopened:
            self.keeper.look(reopened)
