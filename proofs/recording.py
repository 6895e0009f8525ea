"""The real Store, with its real threads and its machine code, watched: one trace of what happened, in order.

A trace is written under one lock. What it says of a step of a save program was seen in the shared words before and after;
what it says of the device was seen at the device, and of an acknowledgement at the ticket, not believed from the driver.
`accepted` lets the protocol follow a trace. A driver that asks the device for less than its program asked for, or tells
more than was done, leaves a trace that the protocol cannot follow.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from lastgood.core import Store, flight, save, steps, ticket
from lastgood.core.cells import MY_SLOT
from lastgood.core.errors import SaveFailed, SaveSkipped
from lastgood.core.memory import MemoryDevice, MemoryDirectory

from .follower import Departure, Follower
from .protocol import state as states
from .protocol_search import Arena

PAYLOAD_BYTES, CHUNK_BYTES = 8192, 4096
HEADER = -1
SEEN_IN_WORDS = (steps.STEP, steps.WAIT, steps.ACQUIRED)
"""What a program yields that asks the device for nothing."""


@dataclass(frozen=True)
class Stepped:
    """A save program took one step."""

    saver: int
    before: Any
    after: Any
    mine: Any
    asked: int | None


@dataclass(frozen=True)
class Performed:
    """The driver resumed a program; whether the device had done what was asked."""

    saver: int
    asked: int
    done: bool


@dataclass(frozen=True)
class Told:
    """A ticket was told that its save is durable."""

    sequence: int


@dataclass
class Done:
    """What a device has done since a program asked it for something."""

    persists: int = 0
    payload_bytes: int = 0
    record_writes: int = 0


def where(asked: int, mine: Any) -> int:
    """The file that a step is about."""
    return HEADER if asked in (steps.WRITE_MARK, steps.PERSIST_MARK) else int(mine[MY_SLOT])


@dataclass
class Recorder:
    """Watches one store."""

    chance: random.Random
    fault_rate: float
    trace: list[Any] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)
    done: dict[int, Done] = field(default_factory=dict)
    area_bytes: int = 0
    savers: set[int] = field(default_factory=set)

    def fails(self) -> bool:
        """Whether the device breaks now."""
        with self.lock:
            return self.chance.random() < self.fault_rate

    def program(self, shared: Any, mine: Any, *arguments: Any) -> Iterator[int]:
        """The save program, recorded. Nobody else takes a step while one is taken and written down."""
        taking = save.save(shared, mine, *arguments)
        with self.lock:
            saver = min(set(range(len(self.savers) + 1)) - self.savers)
            self.savers.add(saver)
        asked: int | None = None
        while True:
            with self.lock:
                if asked is not None and asked not in SEEN_IN_WORDS:
                    self.trace.append(Performed(saver, asked, self.was_done(asked, mine)))
                before = shared.copy()
                asked = next(taking, None)
                self.trace.append(Stepped(saver, before, shared.copy(), mine.copy(), asked))
                if asked is None:
                    self.savers.discard(saver)
                    return
                if asked not in SEEN_IN_WORDS:
                    self.done[where(asked, mine)] = Done()
            yield asked

    def was_done(self, asked: int, mine: Any) -> bool:
        """Whether the device did it."""
        done = self.done[where(asked, mine)]
        if asked == steps.WRITE_PAYLOAD:
            return done.payload_bytes == PAYLOAD_BYTES
        if asked in (steps.WRITE_RECORD, steps.WRITE_EMPTY_RECORD, steps.WRITE_MARK):
            return done.record_writes == 1
        return done.persists == 1 or asked == steps.ACKNOWLEDGE


class RecordingDevice(MemoryDevice):
    """A file in memory that says what was done to it, and breaks now and then."""

    recorder: Recorder
    slot: int

    def write(self, offset: int, data: Any) -> None:
        """See Device."""
        if self.recorder.fails():
            raise OSError(5, "planted")
        super().write(offset, data)
        with self.recorder.lock:
            done = self.recorder.done.setdefault(self.slot, Done())
            if self.slot != HEADER and offset >= self.recorder.area_bytes:
                done.payload_bytes += data.size
            else:
                done.record_writes += 1

    def persist(self) -> None:
        """See Device."""
        if self.recorder.fails():
            raise OSError(5, "planted")
        with self.recorder.lock:
            self.recorder.done.setdefault(self.slot, Done()).persists += 1


class RecordingDirectory(MemoryDirectory):
    """A directory of such files."""

    def __init__(self, recorder: Recorder) -> None:
        """An empty one."""
        super().__init__("recorded")
        self.recorder = recorder

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Any:
        """See Directory."""
        super().open(name, create=create, writable=writable)
        plain = self.files[name]
        if not isinstance(plain, RecordingDevice):
            device = RecordingDevice(plain.content)
            device.recorder = self.recorder
            device.slot = int(name.rpartition("-")[2]) if name.startswith("slot-") else HEADER
            self.files[name] = device
        return self.files[name]


@dataclass(frozen=True)
class Recorded:
    """What was recorded of one store, and its shape."""

    trace: tuple[Any, ...]
    in_flight: int
    keep: int


def record(seed: int, *, saves: int = 6, mutant: Callable[[], Any] | None = None) -> Recorded:
    """Let several threads save into a new store of some shape; `mutant` is a context that breaks the driver."""
    chance = random.Random(seed)
    recorder = Recorder(chance, fault_rate=chance.choice((0.0, 0.02, 0.1)))
    in_flight, keep = chance.randint(1, 3), chance.randint(1, 3)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(flight, "save", recorder.program))
        stack.enter_context(mock.patch.object(ticket.Ticket, "acknowledge", telling(recorder)))
        rate, recorder.fault_rate = recorder.fault_rate, 0.0
        store = Store.create(
            RecordingDirectory(recorder),
            slot_bytes=PAYLOAD_BYTES,
            chunk_bytes=CHUNK_BYTES,
            in_flight=in_flight,
            keep=keep,
            overload=chance.choice(("block", "block", "skip", "replace")),
            writers=chance.randint(1, 3),
        )
        recorder.area_bytes = store._layout.area_bytes
        store._started()
        recorder.fault_rate = rate
        if mutant is not None:
            stack.enter_context(mutant())
        threads = [threading.Thread(target=save_some, args=(store, saves)) for _ in range(in_flight + 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with suppress(SaveFailed):
            store.close()
    return Recorded(tuple(recorder.trace), in_flight, keep)


def save_some(store: Any, saves: int) -> None:
    """One training job of several: saves, and does not mind when one fails."""
    for step in range(saves):
        try:
            store.save(bytes([step]) * PAYLOAD_BYTES, step=step)
        except (SaveFailed, SaveSkipped):
            continue


def telling(recorder: Recorder) -> Callable[..., None]:
    """`Ticket.acknowledge`, written down."""
    acknowledge = ticket.Ticket.acknowledge

    def told(self: Any, told_record: Any) -> None:
        with recorder.lock:
            recorder.trace.append(Told(told_record.sequence))
        acknowledge(self, told_record)

    return told


def accepted(recorded: Recorded) -> int:
    """Let the protocol follow a trace; how many events there were. Raises Departure where it cannot."""
    slots = recorded.in_flight + recorded.keep
    follower = Follower(Arena(slots, recorded.in_flight, 2**40, recorded.keep))
    chance = random.Random(0)
    last = None
    for event in recorded.trace:
        if isinstance(event, Told):
            tell(follower, event.sequence, recorded.in_flight)
        elif isinstance(event, Performed):
            if event.asked == steps.ACKNOWLEDGE:
                expect_told(follower, event.saver)
            else:
                follower.perform(event.saver, event.asked, fails=not event.done)
        else:
            if last is not None and last.tobytes() != event.before.tobytes():
                raise Departure("somebody else than a save program changed the shared words")
            last = event.after
            follower.follow(event.saver, event.mine, event.before, event.after, lambda: chance.random() < 0.5)
            follower.compare(event.after)
            if event.asked is None:
                follower.expect_ended(event.saver)
            elif event.asked not in (steps.STEP, steps.WAIT):
                follower.compare_own(event.saver, event.mine)
    return len(recorded.trace)


def tell(follower: Follower, sequence: int, savers: int) -> None:
    """Somebody was told that this save is durable."""
    for saver in range(savers):
        if follower.state.mine(saver) == sequence and follower.state.place(saver) in states.OWNING:
            follower.perform(saver, steps.ACKNOWLEDGE, fails=False)
            return
    raise Departure(f"save {sequence} was acknowledged, and is not under way")


def expect_told(follower: Follower, saver: int) -> None:
    """The program asked for the acknowledgement: it must have been given."""
    if follower.state.place(saver) != states.ACKNOWLEDGED:
        raise Departure(f"save {follower.state.mine(saver)} goes on unacknowledged")


def real_runs_are_accepted(runs: int = 300, mutant: Callable[[], Any] | None = None) -> int:
    """Traces of the real Store, with real threads and machine code, are what the protocol allows."""
    return sum(accepted(record(seed, mutant=mutant)) for seed in range(runs))
