"""Checkpoints that stay: pinned by name, every N-th step, a time ladder. Copies that no slot is ever reused for.

A store keeps its newest `keep`; what is to stay longer is copied out of its slot, verified, into a state file beside the
slots, before the slot can be used again:

    store/pinned/best.lastgood                 `pin(step, "best")`; only `unpin` removes it
    store/kept/step-000000012000.lastgood      `Retention(every=…, ladder=…)`; thinned as the ladder says

N1 copy-first     a copy is durable before anything that it replaces is removed (`whole_file.py`)
N2 own-only       nothing is removed but copies made by the ladder; slots and pins never (promise `no-harm`)
N3 one-at-least   so at every instant, whoever is killed, the store's newest checkpoint is whole, and every pin is
N4 one-thread     the copy is made by the training's thread: it starts no save meanwhile, so the slot is not used again
N5 not-overtaken  a save of a step that `every` keeps is waited for before as many others are begun as would displace it
N6 told           what was to stay and could not be copied is told of by `NotKept`, once, at the next step or at close
N7 newest-save    when a step is saved again, by a run that has gone back or another one, its copy is replaced
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from lastgood.core import NoStore, Record, SaveFailed, Store, StoreError, Ticket

from .cadence import seconds_of
from .errors import NotKept
from .exports import copy_out
from .state_file import SUFFIX, StateFile, open_state_file
from .whole_file import make_directory

logger = logging.getLogger("lastgood")

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
            seconds = float(interval) if isinstance(interval, int | float) else seconds_of(interval, "ladder")
            if seconds <= 0 or isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ValueError(f"ladder has ({interval!r}, {count!r}): give a time above 0 and how many, 1 or more")
            rungs.append((seconds, count))
        object.__setattr__(self, "every", every)
        object.__setattr__(self, "ladder", tuple(rungs))

    def wants(self, step: int, saved_at: float, kept: Iterable[tuple[int, float]]) -> bool:
        """Whether a checkpoint is to be copied, given the steps and times of the copies there are."""
        if self.wants_step(step):
            return True
        times = [time for _, time in kept]
        return any(saved_at // gap not in {time // gap for time in times} for gap, _ in self.ladder)

    def wants_step(self, step: int) -> bool:
        """Whether this very step is to stay, for good."""
        return self.every is not None and step % self.every == 0

    def superfluous(self, kept: Iterable[tuple[int, float]]) -> list[int]:
        """The steps of those copies that no rule wants any longer."""
        copies = sorted(kept, key=lambda copy: copy[1])
        wanted = {step for step, _ in copies if self.wants_step(step)}
        for gap, count in self.ladder:
            first: dict[float, int] = {}
            for step, time in copies:
                first.setdefault(time // gap, step)
            wanted |= {first[span] for span in sorted(first)[-count:]}
        return [step for step, _ in copies if step not in wanted]


def checked_retention(retention: Any) -> Any:
    """A rule, or None. Raises TypeError for anything else."""
    if retention is not None and not all(hasattr(retention, each) for each in ("wants", "wants_step", "superfluous")):
        raise TypeError(f"retention={retention!r}: give a Retention, like Retention(every=1000)")
    return retention


class Keeper:
    """The copies of one store's checkpoints."""

    def __init__(self, directory: str | os.PathLike[str], retention: Retention | None = None) -> None:
        """Nothing is made before the first copy."""
        if not isinstance(directory, str | os.PathLike):
            raise StoreError("pins and retention need a store in a directory of files")
        self._directory = os.fspath(directory)
        self._retention = retention
        self._seen = 0
        self._looked_into: dict[str, StateFile | None] = {}  # None for a copy that is not whole

    def pin(self, store: Store, step: int, name: str) -> str:
        """Copy the newest save of `step` under a name and return the file's path; a name is pinned anew by replacing it.

        Raises NoStore when the store holds no such step of the run that goes on, ValueError for a name that is no plain
        file name.
        """
        path = self.path_of(name)
        records = store.records()
        run = store.run or next((record.run.hex() for record in records), "")
        mine = [record for record in records if record.run.hex() == run]
        for record in mine:
            if record.step == step:
                make_directory(os.path.dirname(path))
                copy_out(store, record, path, replace=True)
                return path
        told = f"no checkpoint of step {step} in {store.path} to pin: it holds steps {sorted({each.step for each in mine})}"
        if any(record.step == step for record in records):
            told += " of this run; its step of that number is another run's, and can be exported"
        raise NoStore(told)

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
        """Copy what has become durable since the last look and is to stay, then remove what no rule wants any more.

        Raises NotKept, after all else was done, when something could not be copied.
        """
        if self._retention is None:
            return
        problems = []
        fresh = [record for record in store.records() if record.sequence > self._seen]
        for record in reversed(fresh):
            self._seen = record.sequence
            try:
                self._copy_if_wanted(self._retention, store, record)
            except (StoreError, OSError) as problem:
                problems.append(f"step {record.step} was to stay and could not be copied: {problem}")
        if fresh:
            kept = self.kept()
            for step in self._retention.superfluous(self._copies(kept)):
                os.unlink(kept[step])
                self._looked_into.pop(kept[step], None)
        if problems:
            raise NotKept("; ".join(problems))

    def _copy_if_wanted(self, rule: Retention, store: Store, record: Record) -> None:
        kept = self.kept()
        if record.step in kept:
            copy = self._look_into(kept[record.step])
            wanted = copy is not None and copy.is_overtaken_by(record)  # N7
        else:
            wanted = rule.wants(record.step, record.saved_at, self._copies(kept))
        if wanted:
            path = kept.get(record.step) or os.path.join(self._directory, KEPT, f"step-{record.step:012d}{SUFFIX}")
            make_directory(os.path.dirname(path))
            self._looked_into.pop(path, None)
            copy_out(store, record, path, replace=True)

    def _copies(self, kept: dict[int, str]) -> list[tuple[int, float]]:
        """Step and time of each copy; one that cannot be looked into is no copy, and stays."""
        copies = ((step, self._look_into(path)) for step, path in kept.items())
        return [(step, copy.saved_at) for step, copy in copies if copy is not None]

    def _look_into(self, path: str) -> StateFile | None:
        """What a copy says of itself, read once; None, and said, when it cannot be read."""
        if path not in self._looked_into:
            try:
                self._looked_into[path] = open_state_file(path)
            except (StoreError, OSError) as problem:
                logger.warning("%s does not count as kept: %s", path, problem)
                self._looked_into[path] = None
        return self._looked_into[path]

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
    check_open: Callable[[], None]
    _own_keeper: Keeper | None = None
    _not_kept: NotKept | None = None

    @property
    def keeper(self) -> Keeper:
        """The copies of this store's checkpoints."""
        if self._own_keeper is None:
            self._own_keeper = Keeper(self.directory, self._retention)
        return self._own_keeper

    def pin(self, step: int, name: str) -> str:
        """Copy the checkpoint of `step` into a file that stays, under a name; returns its path once it is durable.

        A save of that step which is in flight is waited for. Pinning a name again replaces it. Raises NoStore when the
        store holds no such step (any more) of this run, SaveFailed when its save failed, StoreClosed after `close`.
        """
        self.check_open()
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
        try:
            if store is not None:
                self.keeper.look(store)
            else:
                with Store.open(self.directory, read_only=True) as reopened:
                    self.keeper.look(reopened)
        except NotKept as problem:
            self._not_kept = problem

    def make_way(self) -> None:
        """Before a save begins: wait for those that are to stay and that it could displace before they are copied (N5)."""
        if self._retention is None or self._store is None:
            return
        others = self._store.keep - 1
        for ticket in self._tracker.in_flight[: max(0, len(self._tracker.in_flight) - others)]:
            if self._retention.wants_step(ticket.step):
                with suppress(SaveFailed):  # told by whoever hears of it
                    ticket.wait()
                self.keep_due(self._store)

    def tell_of_copies(self, ticket: Ticket | None) -> None:
        """Raise what could not be kept, once; `ticket` is the save just started (N6)."""
        problem, self._not_kept = self._not_kept, None
        if problem is not None:
            problem.ticket = ticket
            raise problem

    def keep_the_last(self) -> None:
        """At the end: copy and tell, or only log while another exception is being handled, which stays in front."""
        self.keep_due(None)
        if sys.exception() is None:
            self.tell_of_copies(None)
        elif self._not_kept is not None:
            logger.error("%s", self._not_kept)
