"""The real store, opened in another way each time, beside a reader that stays."""

from __future__ import annotations

from typing import Any

from lastgood.core import Damaged, Store
from lastgood.core.reader import Reader
from lastgood.core.record import Record
from lastgood.crashsim.core_simulated_files import SimulatedDirectory
from lastgood.crashsim.core_stateful import CoreAdapter
from lastgood.crashsim.core_whereabouts import kept_records
from lastgood.crashsim.promises import NEVER_WRONG
from lastgood.crashsim.stateful import BrokenPromise, Disk, Schedule
from tests.crash.stateful.planted import SURVIVES, swap


class Changing(CoreAdapter):
    """Each process shares the slots in another way between saves in flight and checkpoints kept.

    One reader is opened by the first look beside a process, and goes on looking while that one first saves, and grows.
    No byte is changed behind its back, so whatever is kept must be whole.
    """

    def __init__(self, **options: Any) -> None:
        """See CoreAdapter."""
        super().__init__(**options)
        self._slots = self._geometry["in_flight"] + self._geometry["keep"]
        self._processes = 0
        self._reader: Store | None = None

    def begin_process(self, schedule: Schedule) -> None:
        """See Adapter."""
        super().begin_process(schedule)
        self._processes += 1
        self._reader = None

    def open(self, disk: Disk) -> Store:
        """See Adapter."""
        most = self._slots - 1
        self._shares = {"keep": most - self._processes % most}  # less each time, and then most
        store = super().open(disk)
        self.keep = store._wanted.keep
        self.in_flight = store._wanted.in_flight + 1
        return store

    def look_beside(self, disk: Disk) -> bytes | None:
        """See Adapter."""
        if self._reader is None:
            self._reader = Store.open(SimulatedDirectory(disk), read_only=True)
        return self.read(self._reader)

    def may_be_damaged(self, name: str) -> bool:
        """See Adapter."""
        return False

    def check_at_rest(self, store: Store, newest: list[Any]) -> None:
        """See Adapter: also what was free before, and is kept because more is."""
        super().check_at_rest(store, newest)
        for record in kept_records(store) if store._engine is not None else ():
            try:
                store.read(record)
            except Damaged as error:
                raise BrokenPromise(f"{NEVER_WRONG}: save {record.step} is kept, and is not whole: {error}") from error


def taking_leftovers(*arguments: Any) -> None:
    """Whatever record lies in a slot is kept when more are to be kept, also where a save has begun to write over it."""


def looking_once(reader: Reader) -> list[Record]:
    """A reader goes by what it saw first."""
    return reader._engine.kept() if reader._engine is not None else reader._scan.in_order()[: reader.keep]


CHANGES = {
    "take-leftovers": swap(
        taking_leftovers.__doc__ or "", {NEVER_WRONG}, "ready", "_reject_half_overwritten", taking_leftovers, keep=2
    ),
    "look-once-for-good": swap(looking_once.__doc__ or "", {SURVIVES, "loud"}, "reader", "Reader._seen", looking_once),
}
