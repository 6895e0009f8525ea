"""The state machine: what Hypothesis may do to a `World`, and how it shrinks what it finds."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from .adapter import Adapter
from .fibres import Fibre
from .operations import ON_THE_WAY, Loss, Refusal
from .world import World

ANY = st.integers(0, 2**16)
"""A choice among however many there are: it is counted round."""
FEW = st.integers(0, 7)
STEPS = st.just(0) | st.integers(1, 40)
KINDS = st.just("persist") | st.sampled_from(ON_THE_WAY)
LOSSES = st.builds(
    Loss,
    operations=st.integers(0, 2**16 - 1),
    torn=st.integers(-1, 15),
    sectors=st.integers(0, 2**16 - 1),
)
REFUSALS = st.builds(Refusal, st.sampled_from([errno.EIO, errno.ENOSPC]), st.integers(0, 3))


class StoreMachine(RuleBasedStateMachine):
    """Make one with `machine_for`. Each rule can be done at any moment, so that none waits for another to be drawn."""

    make_adapter: ClassVar[Callable[[], Adapter]]

    def __init__(self) -> None:
        """A new disk, and nobody there."""
        super().__init__()
        self.world = World(type(self).make_adapter())

    def _open(self) -> None:
        """There is a process, and its store is open (unless all was lost to damage)."""
        world = self.world
        if world.schedule is None:
            if world.ledger.is_damaged and not world.ledger.floor():
                world.start_over()
            world.open()
            world.settle()

    def _begin(self, size: int) -> bool:
        world = self.world
        may_begin = world.store is not None and world.saves_under_way() < world.adapter.in_flight
        if may_begin:
            world.begin(4 + size % (world.adapter.payload_bytes - 3))
        return may_begin

    def _advance(self, which: int, steps: int) -> None:
        ready = self.world.ready()
        if ready:
            self.world.advance(ready[-1 - which % len(ready)], steps)

    def _stand_before(self, size: int, warm: bool, kind: str, passed: int) -> Fibre | None:
        """Everybody goes on, a new save where there is none, until somebody stands before such an operation.

        With `warm` one save is brought to its end before: the first one of a process may do much that others need not.
        """
        if warm or self.world.schedule is None:
            self._open()
        if warm and self._begin(size):
            self.world.settle()
        if not self.world.calls:
            self._begin(size)
        return self.world.go_on_until(kind, passed)

    @rule(size=ANY, which=FEW, steps=STEPS)
    def begin(self, size: int, which: int, steps: int) -> None:
        """A save, beside those that are under way; then somebody, the new one first of all, makes some steps."""
        self._open()
        self._begin(size)
        self._advance(which, steps)

    @rule(which=FEW, steps=STEPS)
    def go_on(self, which: int, steps: int) -> None:
        """Somebody makes some steps."""
        self._advance(which, steps)

    @rule(size=ANY, kind=KINDS, passed=st.integers(0, 3), again=st.booleans())
    def overtake(self, size: int, kind: str, passed: int, again: bool) -> None:
        """Somebody is held back before such an operation, while new saves begin and go on as far as they can without it."""
        self._open()
        self._begin(size)
        held = self.world.go_on_until(kind, passed)
        for number in range(1 + again):
            if held is not None and self._begin(size + number):
                self.world.go_on_without(held)

    @rule(beside=st.booleans(), steps=st.integers(1, 15), size=ANY, count=st.integers(1, 4))
    def read_slowly(self, beside: bool, steps: int, size: int, count: int) -> None:
        """Somebody reads, in this process or beside it, and whole saves come and go between two of its steps."""
        self._open()
        world = self.world
        if world.store is None or not world.adapter.reads_beside:
            return
        world.settle()
        reader = world.look_beside() if beside and world.adapter.has_readers else world.read()
        world.advance(reader, steps)
        for number in range(count):
            if self._begin(size + number):
                world.go_on_without(reader)
        world.settle()

    @rule(size=ANY, count=st.integers(1, 3))
    def save_on(self, size: int, count: int) -> None:
        """Whole saves, one after the other, when everybody has ended."""
        self._open()
        self.world.settle()
        for number in range(count):
            if self._begin(size + number):
                self.world.settle()

    @rule(size=ANY, warm=st.booleans(), kind=KINDS, passed=st.integers(0, 3), refusal=REFUSALS, dies=st.booleans())
    def refuse(self, size: int, warm: bool, kind: str, passed: int, refusal: Refusal, dies: bool) -> None:
        """Everybody goes on until an operation of that kind fails, which the process may die of, once all was said."""
        fibre = self._stand_before(size, warm, kind, passed)
        if fibre is not None:
            self.world.step(fibre, refusal)
            if dies:
                self.world.settle()
                self.world.crash(None)

    @rule()
    def settle(self) -> None:
        """Everybody goes on to the end."""
        self.world.settle()

    @rule(steps=STEPS)
    def read(self, steps: int) -> None:
        """A read in the process that saves."""
        self._open()
        if not self.world.adapter.reads_beside:
            self.world.settle()
        if self.world.store is not None and "read" not in self.world.calls:
            self.world.advance(self.world.read(), steps if steps and self.world.adapter.reads_beside else 100)

    @precondition(lambda self: self.world.adapter.chores)
    @rule(which=FEW, steps=STEPS)
    def do(self, which: int, steps: int) -> None:
        """What else the store can do."""
        self._open()
        chore = self.world.adapter.chores[which % len(self.world.adapter.chores)]
        if self.world.store is not None and chore not in self.world.calls:
            self.world.advance(self.world.do(chore), steps)

    @precondition(lambda self: self.world.adapter.reads_beside and self.world.adapter.has_readers)
    @rule(steps=STEPS)
    def look_beside(self, steps: int) -> None:
        """A reader in another process."""
        if self.world.store is not None and "look beside" not in self.world.calls:
            self.world.advance(self.world.look_beside(), steps)

    @rule(size=ANY, warm=st.booleans(), kind=KINDS, passed=st.integers(0, 3), loss=st.none() | LOSSES)
    def crash(self, size: int, warm: bool, kind: str, passed: int, loss: Loss | None) -> None:
        """Everybody goes on until an operation of that kind; then the process dies, or the power fails."""
        self._stand_before(size, warm, kind, passed)
        self.world.crash(loss)

    @rule()
    def ask_what_a_crash_would_leave(self) -> None:
        """Without one."""
        self.world.ask_what_a_crash_would_leave()

    @rule(which=FEW, steps=STEPS)
    def close_and_begin_to_open(self, which: int, steps: int) -> None:
        """The process ends in good order, and the next one is left standing while it opens the store."""
        self.world.settle()
        if self.world.store is not None:
            self.world.close()
        self.world.open()
        self._advance(which, steps)

    @rule(which=ANY, offset=ANY, mask=st.integers(1, 255))
    def damage(self, which: int, offset: int, mask: int) -> None:
        """The process ends, and a byte changes while nobody looks."""
        world = self.world
        world.settle()
        if world.store is not None:
            world.close()
        sizes = {
            name: world.disk.open(name).size() for name in world.disk.names() if world.adapter.may_be_damaged(name)
        }
        names = [name for name, size in sizes.items() if size]
        if names:
            name = names[which % len(names)]
            world.damage(name, offset % sizes[name], mask)

    def teardown(self) -> None:
        """Nobody is left behind."""
        self.world.end_process()


def machine_for(make_adapter: Callable[[], Adapter]) -> type[StoreMachine]:
    """The state machine over this kind of store; its `TestCase` is what pytest collects."""
    return type("Machine", (StoreMachine,), {"make_adapter": staticmethod(make_adapter)})
