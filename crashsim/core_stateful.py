"""The real `Store` under the state machine: real engine, real writer threads, one step at a time.

    Store ── Engine ── Flight ── save program       every yield of the program is a step
      │         └── writer threads, conditions      fibres of the schedule (`schedule.threading`)
      └── Directory ── Device                       every operation on the disk is a step (`SimulatedDirectory`)

What is swapped is what a process is given from outside: the modules `threading`, `queue` and `time`, and a directory. The code
between is the code that runs. A `Target` may bring other programs in: that is how its mutants are made.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any

from lastgood.core.cells import OUTCOME, ROOT
from lastgood.core.errors import NoStore, SaveFailed, SaveSkipped
from lastgood.core.layout import HEADER_BYTES
from lastgood.core.rules import NO_TAG, PENDING, slot_of
from lastgood.core.store import Store
from lastgood.core.ticket import Ticket

from .core_simulated_files import SimulatedDirectory
from .core_target import Target, real_target, steps
from .core_whereabouts import kept_records, step_in, whereabouts
from .promises import LOUD, MONOTONE, NEVER_WRONG, NO_HARM, NO_LEAK, NO_REUSE
from .stateful.adapter import Adapter, Busy
from .stateful.disk import Disk
from .stateful.fibres import Schedule
from .stateful.ledger import Save, require
from .stateful.threads import StandingTime, Threads

THREADED = ("arena", "engine", "scan", "store", "ticket", "writers")
SLOT_BYTES = 9000
GROWN_BYTES = SLOT_BYTES + 3 * 4096
TIMED = ("engine", "flight", "reader", "store")


class CoreAdapter(Adapter):
    """A small store of lastgood's. See Adapter."""

    payload_bytes = SLOT_BYTES
    chores = ("grow", "verify")
    has_readers = True

    def __init__(
        self,
        *,
        in_flight: int = 2,
        keep: int = 1,
        persists: int = 2,
        overload: str = "block",
        ignores_digests: bool = False,
        target: Target | None = None,
        swaps: tuple[tuple[str, str, Any], ...] = (),
    ) -> None:
        """`target` brings other programs, `swaps` other things: (module of the core, dotted name, replacement).

        With `ignores_digests` no payload is verified: the order of steps alone must be right, where nothing is damaged and
        nobody reads a slot that may be overwritten meanwhile.
        """
        self.in_flight, self.keep = in_flight + 1, keep  # one more than the store admits: it has to wait
        self.reads_beside = not ignores_digests
        self._ignores_digests = ignores_digests
        sizes = {"slot_bytes": SLOT_BYTES, "chunk_bytes": 4096, "meta_bytes": 800, "in_flight": in_flight, "keep": keep}
        self._geometry: dict[str, Any] = {**sizes, "persists": persists}
        self._options: dict[str, Any] = {"writers": 2, "overload": overload}
        self._target = target or real_target()
        self._swaps = swaps
        self._process, self._schedule = ExitStack(), Schedule()
        self._tickets: dict[int, Ticket] = {}
        self._of_this_process: list[int] = []
        self._undecided: set[int] = set()
        self._told, self._root, self._was_ready = 0, NO_TAG, False
        self._shares: dict[str, Any] = {}

    # --- a process ---------------------------------------------------------------------------------------------------

    def begin_process(self, schedule: Schedule) -> None:
        """See Adapter."""
        self._schedule = schedule
        self._of_this_process, self._undecided = [], set()
        self._told, self._root, self._was_ready = 0, NO_TAG, False
        swap = self._process.enter_context
        swap(self._other_programs())
        threads, time = Threads(schedule), StandingTime(schedule)
        for module in THREADED:
            swap(swapped(module, "threading", threads))
        swap(swapped("writers", "queue", threads))
        for module in TIMED:
            swap(swapped(module, "time", time))
        swap(swapped("flight", "save", self._stepped))

    def end_process(self) -> None:
        """See Adapter."""
        self._process.close()

    @contextmanager
    def _other_programs(self) -> Iterator[None]:
        with ExitStack() as stack:
            watch = SimpleNamespace(watch=ignore, forget=ignore)  # a killed process closes nothing at its exit
            stack.enter_context(swapped("store", "at_exit", watch))
            stack.enter_context(swapped("scan", "survey", self._target.survey))
            stack.enter_context(swapped("ready", "make_ready", self._target.make_ready))
            if self._ignores_digests:
                stack.enter_context(swapped("reading", "_fetch_chunk", unverified_chunk))
            for module, name, replacement in self._swaps:
                stack.enter_context(swapped(module, name, replacement))
            yield

    def _stepped(self, *arguments: Any) -> Iterator[int]:
        """The save program, which stands before every step until the schedule lets it go on."""
        for step in self._target.save(*arguments):
            self._schedule.pause(steps.NAMES[step])
            yield step

    # --- what every store has ----------------------------------------------------------------------------------------

    def open(self, disk: Disk) -> Store:
        """See Adapter. Saves continue the run that is there."""
        try:
            store = Store.open(SimulatedDirectory(disk), **self._options, **self._shares)
        except NoStore:
            store = Store.create(SimulatedDirectory(disk), **self._geometry, **self._options)
        store.continue_run()
        self.room_bytes = store.total_bytes + HEADER_BYTES  # the header is written aside when it is repaired
        self.payload_bytes = store.slot_bytes
        return store

    def do(self, store: Store, chore: str) -> None:
        """See Adapter."""
        if chore == "verify":
            store.verify()
        elif store.slot_bytes < GROWN_BYTES:
            self.room_bytes = 2 * store.total_bytes  # ample, until it is opened again
            store.grow(store.slot_bytes + 4096)
            self.payload_bytes = store.slot_bytes

    def save(self, store: Store, number: int, payload: bytes) -> bool:
        """See Adapter. Every third payload is pushed, a piece at a time, and some of these are abandoned."""
        meta = bytes([number % 256]) * (number * 97 % 800)
        try:
            if number % 3 == 0:
                ticket = self._pushed(store, number, payload, meta)
            else:
                ticket = store.save(payload, step=number, meta=meta)
        except SaveFailed as failure:
            self._note_told(failure)
            if failure.ticket is None:
                raise
            ticket = failure.ticket
        self._tickets[number] = ticket
        self._of_this_process.append(number)
        self._undecided.add(number)
        try:
            ticket.wait()
        except SaveSkipped as refusal:
            raise Busy(str(refusal)) from refusal
        return ticket.durable

    def _pushed(self, store: Store, number: int, payload: bytes, meta: bytes) -> Ticket:
        with suppress(SaveFailed):
            saving = store.begin(step=number, meta=meta, total_bytes=len(payload))
        for start in range(0, len(payload), 2500):
            self._schedule.pause("push")
            saving.push(payload[start : start + 2500])
        if number % 7 == 0 and not saving.ticket.done:  # else it has failed already, and is told of
            saving.abandon()
            raise Busy
        return saving.finish()

    def _note_told(self, failure: SaveFailed) -> None:
        more = re.search(r"and (\d+) more saves failed", str(failure))
        self._told += 1 + int(more[1]) if more else 1

    def read(self, store: Store) -> bytes | None:
        """See Adapter."""
        try:
            record, payload = store.read_with_record()
        except NoStore:
            return None
        found = payload.tobytes()
        says = f"the record of save {record.step} is over the bytes of another"
        require(int.from_bytes(found[:4], "little") == record.step, NEVER_WRONG, says)
        return found

    def close(self, store: Store) -> None:
        """See Adapter: every failure has been told once, by a later save or here (`loud`)."""
        try:
            store.close()
        except SaveFailed as failure:
            self._note_told(failure)
        failed = [number for number in self._of_this_process if self._tickets[number].outcome == "failed"]
        require(self._told == len(failed), LOUD, f"saves {failed} failed, and {self._told} failures were told of")

    def peek(self, disk: Disk) -> bytes | None:
        """See Adapter. A reader and a writer find the same."""
        try:
            with self._other_programs():
                with Store.open(SimulatedDirectory(disk), read_only=True) as reader:
                    seen = self.read(reader)
                with Store.open(SimulatedDirectory(disk)) as store:
                    found = self.read(store)
        except NoStore:
            return None
        require(seen == found, NEVER_WRONG, "a reader and a writer find different checkpoints")
        return found

    def look_beside(self, disk: Disk) -> bytes | None:
        """See Adapter."""
        with Store.open(SimulatedDirectory(disk), read_only=True) as reader:
            return self.read(reader)

    # --- what it says of itself --------------------------------------------------------------------------------------

    def sequence(self, number: int) -> int | None:
        """See Adapter."""
        ticket = self._tickets.get(number)
        return (ticket.sequence or None) if ticket is not None else None

    def durable(self, store: Store) -> set[int]:
        """See Adapter: what tickets say, and what is kept once the store was made ready."""
        found = {number for number in self._undecided if self._tickets[number].durable}
        self._undecided -= found
        if store._engine is not None and not self._was_ready:
            self._was_ready = True
            found.update(record.step for record in kept_records(store))
        return found

    def saves_in(self, disk: Disk, name: str) -> set[int]:
        """See Adapter."""
        return {step for step in [step_in(disk, name)] if step is not None}

    def may_be_damaged(self, name: str) -> bool:
        """See Adapter. The header has a copy of its own, and tests of its own."""
        return name.startswith("slot-") and not self._ignores_digests

    def check(self, store: Store) -> None:
        """`no-reuse`, `no-leak`, `monotone`, by the cells."""
        if store._engine is None:
            return
        engine: Any = store._engine
        free, quarantined, kept = whereabouts(store)
        require(kept.isdisjoint(free | quarantined), NO_REUSE, f"kept {kept}, free {free}, quarantined {quarantined}")
        require(free.isdisjoint(quarantined), NO_LEAK, f"free {free}, quarantined {quarantined}")
        root = int(engine.cells[ROOT])
        flights = [flight for flight in engine._flights if flight.tag and flight._mine[OUTCOME] == PENDING]
        # One that has swapped the root may have been displaced, and not know it yet.
        held = [slot_of(flight.tag) for flight in flights if flight.tag > root or not flight.ticket.durable]
        require(len(held) == len(set(held)), NO_REUSE, f"two saves hold the same slot: {held}")
        require(free.isdisjoint(held), NO_REUSE, f"saves hold {held}, free are {free}")
        require(root >= self._root, MONOTONE, f"the root went back from tag {self._root} to {root}")
        self._root = root

    def check_at_rest(self, store: Store, newest: list[Save]) -> None:
        """`no-leak`: everything is somewhere. `no-harm`: what is to be kept is there, byte for byte."""
        if store._engine is None:
            return
        engine: Any = store._engine
        free, quarantined, kept = whereabouts(store)
        everywhere = sorted([*free, *quarantined, *kept])
        slots = list(range(store.in_flight + store.keep))
        require(everywhere == slots, NO_LEAK, f"kept {kept}, free {free}, quarantined {quarantined} of {slots}")
        require(engine.arena.free_bytes == engine.arena.total_bytes, NO_LEAK, "staging memory is missing")
        require(not engine._flights, NO_LEAK, "a place is missing")
        there = {record.step: record for record in kept_records(store)}
        for save in newest:
            require(save.number in there, NO_HARM, f"save {save.number} is to be kept, and kept are {sorted(there)}")
            found = store.read(there[save.number]).tobytes()
            require(found == save.payload, NO_HARM, f"save {save.number} has other bytes now")


@contextmanager
def swapped(module: str, name: str, replacement: Any) -> Iterator[None]:
    """Another thing under a (dotted) name in a module of the core, for a while."""
    holder: Any = importlib.import_module(f"lastgood.core.{module}")
    *way, last = name.split(".")
    for each in way:
        holder = getattr(holder, each)
    original = getattr(holder, last)
    setattr(holder, last, replacement)
    try:
        yield
    finally:
        setattr(holder, last, original)


def unverified_chunk(device: Any, offset: int, piece: Any, *_: object) -> None:
    """What lies where the chunk should."""
    device.read(offset, piece)


def ignore(store: object) -> None:
    """Nothing."""
