"""What stands between the machine and a store. Write one class with three methods; the others have sensible defaults."""

from __future__ import annotations

from typing import Any

from .disk import Disk
from .fibres import Schedule
from .ledger import Save


class Busy(Exception):
    """The store refused a save because it had too much to do: no failure, as long as it says so."""


class Adapter:
    """One kind of store. A whole one, for a store that writes a new file and renames it over the old one:

    class Renaming(Adapter):
        def open(self, disk):                           # a process begins: make the store where there is none
            return disk

        def save(self, disk, number, payload):
            file = disk.open("new", create=True)        # every call is a step: others may run, or the power fail
            file.write(0, payload)
            file.persist()
            disk.rename("new", "checkpoint")
            disk.persist_names()
            return True                                 # acknowledged

        def read(self, disk):
            if "checkpoint" not in disk.names():
                return None                             # nothing was ever saved here
            file = disk.open("checkpoint")
            return file.read(0, file.size())            # or raise: what is there is not whole

    TestRenaming = machine_for(Renaming).TestCase

    (It is not quite right: a process that was killed leaves "new" behind, and the next save fails. The machine says so.)

    A store that calls `os` or a device of its own is given one that calls the disk. One that uses threads, locks or sleep
    takes them from `Threads(schedule)` and `StandingTime(schedule)`; `begin_process` is the place for that.
    """

    in_flight = 1
    """Saves that may be under way at once; the machine begins no more."""
    keep = 1
    """Newest checkpoints that are kept. With more than one, damage to the newest must leave the next. May change at `open`."""
    payload_bytes = 3000
    """The largest payload."""
    reads_beside = True
    """Whether a read may run beside saves."""
    has_readers = False
    """Whether another process may read beside the one that saves: see `look_beside`."""
    chores: tuple[str, ...] = ()
    """What else the store can be told to do, at any moment: see `do`."""
    room_bytes: int | None = None
    """What all files together may take (promise `bounded`)."""

    # --- what every store has ----------------------------------------------------------------------------------------

    def open(self, disk: Disk) -> Any:
        """The store on this disk, made where there is none yet."""
        raise NotImplementedError

    def save(self, store: Any, number: int, payload: bytes) -> bool:
        """Save, and return once it is durable: True. False: it gave way to a newer one that is. Raises when it failed."""
        raise NotImplementedError

    def read(self, store: Any) -> bytes | None:
        """The newest payload, None when nothing was ever saved. Raises when there should be one and none is whole."""
        raise NotImplementedError

    # --- what some have ----------------------------------------------------------------------------------------------

    def close(self, store: Any) -> None:
        """The end in good order. Raises when a failure was not told yet."""

    def do(self, store: Any, chore: str) -> None:
        """One of the chores. Raises when it failed; nothing that is kept may suffer."""

    def sequence(self, number: int) -> int | None:
        """Where a save stands in the store's own order, where it has one; else the later one of two is the newer."""
        return None

    def durable(self, store: Any) -> set[int]:
        """Saves that the store calls durable at this moment, perhaps before `save` has returned."""
        return set()

    def saves_in(self, disk: Disk, name: str) -> set[int] | None:
        """The saves that this file holds, so that damage to it must not touch others; None: perhaps any."""
        return None

    def may_be_damaged(self, name: str) -> bool:
        """Whether the store should survive changed bytes in this file, saves in it apart."""
        return True

    def check(self, store: Any) -> None:
        """After every step: raise AssertionError that begins with a promise where the store is inconsistent."""

    def check_at_rest(self, store: Any, newest: list[Save]) -> None:
        """The same when nothing is under way; `newest` are the acknowledged ones that must be kept, undamaged ones only."""

    def begin_process(self, schedule: Schedule) -> None:
        """A process begins; its threads are to be fibres of this schedule."""

    def end_process(self) -> None:
        """It has ended, in good order or not."""

    def peek(self, disk: Disk) -> bytes | None:
        """What a fresh process finds; the disk is thrown away afterwards."""
        return self.read(self.open(disk))

    def look_beside(self, disk: Disk) -> bytes | None:
        """What a reader in another process finds beside the one that saves."""
        raise NotImplementedError
