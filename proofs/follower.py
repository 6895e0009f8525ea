"""The protocol, moved along with what a store does: which of its steps explains what was just seen?

What is seen are the shared words before and after, a save's own words, and what was asked of the device. Some steps of the
protocol change nothing that can be seen, such as passing a cell that holds something newer. They are taken as late as
possible: their guards stay true once they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lastgood.core import cells, rules, steps

from .protocol import STEPS
from .protocol import state as states
from .protocol.state import State
from .protocol_search import Arena, freeze, rows_of, thaw

TAKES = {action.name: action.take for action in STEPS}
DOES = {
    steps.PERSIST_PAYLOAD: "persist_payload",
    steps.WRITE_RECORD: "write_record",
    steps.PERSIST_RECORD: "persist_record",
    steps.WRITE_MARK: "write_mark",
    steps.PERSIST_MARK: "persist_mark",
    steps.WRITE_EMPTY_RECORD: "write_empty_record",
    steps.PERSIST_EMPTY_RECORD: "persist_empty_record",
}
"""The protocol's step for what a save asks its driver for, when it is done."""
MAKES_READY = {
    steps.WRITE_MARK: "rewrite_mark",
    steps.PERSIST_MARK: "persist_mark_again",
    steps.WRITE_EMPTY_RECORD: "empty",
    steps.PERSIST_EMPTY_RECORD: "persist_emptied",
}
"""The same for recovery."""
BEFORE_RECORD = (states.ACQUIRED, states.FILLING, states.FILLED)


class Departure(AssertionError):
    """A program did what the protocol does not allow."""


class Follower:
    """The protocol's state, and the steps that were taken to get there."""

    def __init__(self, arena: Arena) -> None:
        """A new store."""
        self.arena = arena
        self.state: State = thaw(arena.start())

    def attempt(self, name: str, *about: Any) -> State | None:
        """The state after a step of the protocol, None when it cannot be taken."""
        guard, after = TAKES[name](self.arena.logic, self.state, self.arena.variant, *about)
        return thaw(rows_of(after, self.arena)) if guard else None

    def take(self, name: str, *about: Any) -> None:
        """Take a step of the protocol; its guard must hold."""
        after = self.attempt(name, *about)
        if after is None:
            raise Departure(f"{name} is not allowed in {freeze(self.state, self.arena)}")
        self.state = after

    def take_if_it_can_be(self, name: str, *about: Any) -> None:
        """Take a step of the protocol if its guard holds."""
        self.state = self.attempt(name, *about) or self.state

    def tag(self, sequence: int, slot: int) -> int:
        """The tag of a sequence, which may be none."""
        return rules.tag_of(sequence, slot) if sequence else rules.NO_TAG

    # --- saves -------------------------------------------------------------------------------------------------------

    def follow(self, saver: int, mine: Any, before: Any, after: Any, flag: Callable[[], bool]) -> None:
        """Take the steps for what a save just did to the shared words; `flag` answers what cannot be seen."""
        place = self.state.place(saver)
        gained, lost = self.moved(before, after, cells.FREE)
        doubted, trusted = self.moved(before, after, cells.QUARANTINED)
        if place == states.IDLE and mine[cells.OUTCOME] == rules.PENDING:
            self.take("load", saver)
        elif before[cells.SEQUENCE] != after[cells.SEQUENCE]:
            self.take("count", saver)
        elif before[cells.MARKED] != after[cells.MARKED]:
            self.follow_mark(saver, int(after[cells.MARKED]), flag)
        elif lost or trusted:
            self.take("acquire" if lost else "acquire_doubtful", saver, *(lost or trusted))
        elif doubted and place in (states.EMPTYING, states.EMPTIED):
            self.take("fail_empty_record", saver, flag())
        elif doubted:
            self.take("fail_record", saver, flag(), flag())
        elif gained and place in BEFORE_RECORD and mine[cells.STATUS] == rules.DONE:
            self.take("overtaken", saver)
        elif gained and place in BEFORE_RECORD:
            self.take("fail_payload", saver, flag())
        else:
            self.follow_publish(saver, mine, before, after, gained)

    def follow_mark(self, saver: int, now: int, flag: Callable[[], bool]) -> None:
        """The word that says how far the mark is has changed."""
        if now == rules.MARK_UNDER_WAY:
            self.take("claim_mark", saver)
        elif now == rules.MARK_DURABLE:
            self.take("settle_mark", saver)
        else:
            self.take("fail_mark", saver, flag(), flag())

    def follow_publish(self, saver: int, mine: Any, before: Any, after: Any, gained: list[int]) -> None:
        """The root was swapped, or found newer; a cell took what was left over; or a slot was released."""
        state = self.state
        if before[cells.ROOT] != after[cells.ROOT]:
            if (state.seen(saver), state.seen_slot(saver)) != (state.held(0), state.held_slot(0)):
                self.take("look_again", saver)
            self.take("publish", saver)
        elif state.place(saver) == states.ACKNOWLEDGED and mine[cells.OUTCOME] == rules.SUPERSEDED:
            self.take("superseded", saver)
        for cell in range(1, self.arena.cells):
            if before[cells.KEPT + cell - 1] != after[cells.KEPT + cell - 1]:
                self.pass_on(saver, cell - 1)
                self.take("exchange", saver, cell)
        if gained:
            self.pass_on(saver, self.arena.cells - 1)
            if self.state.place(saver) != states.CARRYING or gained != [self.state.left_slot(saver)]:
                raise Departure(f"slot {gained} was released, which was not left over")
            self.take("release", saver)

    def pass_on(self, saver: int, cell: int) -> None:
        """What was left over was offered to every cell up to this one, and none took it."""
        while self.state.cell(saver) < cell:
            self.take("pass_on", saver, self.state.cell(saver) + 1)

    def perform(self, saver: int, asked: int, *, fails: bool) -> None:
        """Take the steps for what the driver did, or failed to do."""
        if asked == steps.ACKNOWLEDGE:
            if self.state.place(saver) == states.DURABLE:
                self.take("find_mark", saver)
            self.take("acknowledge", saver)
        elif asked == steps.WRITE_PAYLOAD:
            self.take("begin_payload", saver)
            if not fails:
                self.take("end_payload", saver)
        elif asked in DOES and not fails:
            self.take(DOES[asked], saver)

    def expect_ended(self, saver: int) -> None:
        """The program came to its end: so must the save."""
        place = self.state.place(saver)
        if place != states.IDLE:
            raise Departure(f"a save ended while it was {place}")

    def moved(self, before: Any, after: Any, cell: int) -> tuple[list[int], list[int]]:
        """The slots that came into a slot set, and those that left it."""
        old, new = int(before[cell]), int(after[cell])
        came = [slot for slot in range(self.arena.slots) if new >> slot & 1 and not old >> slot & 1]
        return came, [slot for slot in range(self.arena.slots) if old >> slot & 1 and not new >> slot & 1]

    # --- recovery ----------------------------------------------------------------------------------------------------

    def verify(self, slot: int) -> int:
        """What reading a payload says. With two persists digests are ignored, as the proof ignores them."""
        whole = "one-persist" not in self.arena.variant or self.state.cached_payload(slot) == self.state.cached_record(
            slot
        )
        return rules.DONE if whole else rules.BROKEN

    def survey(self, sequences: list[int]) -> None:
        """All records were read."""
        newest = max(range(self.arena.slots), key=sequences.__getitem__)
        if sequences[newest]:
            self.take("survey", newest)
        else:
            self.take("survey_nothing")

    def recovered(self, step: int, slot: int) -> None:
        """Take the step for what recovery did. With one persist a payload is written again before its record."""
        one_persist = "one-persist" in self.arena.variant
        if step == (steps.REWRITE_PAYLOAD if one_persist else steps.REWRITE_RECORD):
            self.take("take", slot)
        elif step == steps.PERSIST_PAYLOAD:
            self.take_if_it_can_be("write_back_payload", slot)
        elif step == steps.PERSIST_RECORD:
            self.take("persist_taken", slot, sum(map(self.state.taken, range(self.arena.cells))))
        elif step in (steps.WRITE_MARK, steps.PERSIST_MARK):
            self.take(MAKES_READY[step])
        elif step in MAKES_READY:
            self.take(MAKES_READY[step], slot)

    # --- all of memory -----------------------------------------------------------------------------------------------

    def compare(self, shared: Any) -> None:
        """Every shared word says what the protocol's state says."""
        state, slots = self.state, range(self.arena.slots)
        row = [self.tag(state.held(cell), state.held_slot(cell)) for cell in range(self.arena.cells)]
        said = {
            "row": ([int(shared[cell]) for cell in (cells.ROOT, *range(cells.KEPT, cells.KEPT + len(row) - 1))], row),
            "sequence": (int(shared[cells.SEQUENCE]), state.counter),
            "mark": (int(shared[cells.MARKED]), state.marked),
            "free": (int(shared[cells.FREE]), sum(2**slot for slot in slots if state.kind(slot) == states.FREE)),
            "doubt": (
                int(shared[cells.QUARANTINED]),
                sum(2**slot for slot in slots if state.kind(slot) == states.DOUBTFUL),
            ),
        }
        for name, (program, model) in said.items():
            if program != model:
                raise Departure(f"{name} is {program}, and {model} in the protocol")

    def compare_own(self, saver: int, mine: Any) -> None:
        """A save's own words say what the protocol's state says of it."""
        place = self.state.place(saver)
        if states.COUNTED <= place <= states.ACKNOWLEDGED and mine[cells.MY_SEQUENCE] != self.state.mine(saver):
            raise Departure(f"save {mine[cells.MY_SEQUENCE]} is {self.state.mine(saver)} in the protocol")
        if place in states.OWNING and mine[cells.MY_SLOT] != self.state.slot(saver):
            raise Departure(f"slot {mine[cells.MY_SLOT]} is {self.state.slot(saver)} in the protocol")
