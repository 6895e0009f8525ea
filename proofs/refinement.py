"""The core's own programs, followed by the protocol step by step: that the code is what is proved is *tested* here.

Several `save` programs of the core run over one set of shared words, in a random order, each device step answered at
random; now and then the store crashes, and `survey` and `make_ready` bring it back. After every step of a program the
protocol must have a step that does the same: one whose guard holds, and after which every shared word says what the
protocol's state says. A program that does anything else is a `Departure`. What lies on the medium is the protocol's.

The step is guessed from what the program did to the shared words, never from its source.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from lastgood.core import cells, recover, rules, save, steps

from . import protocol
from .protocol import State
from .protocol_search import Arena, freeze, thaw
from .protocol_steps import STEPS

REMADE = [steps.REWRITE_RECORD, steps.PERSIST_RECORD], [steps.WRITE_EMPTY_RECORD, steps.PERSIST_EMPTY_RECORD]
"""What recovery must do with the record of a slot that it keeps, and of one that is empty."""
NEVER_FAILS = (steps.STEP, steps.ACQUIRED, steps.ACKNOWLEDGE, steps.WAIT)
TAKES = {action.name: action.take for action in STEPS}


class Departure(AssertionError):
    """A program did what the protocol does not allow."""


class Model:
    """The protocol's state, moved along with the programs."""

    def __init__(self, arena: Arena) -> None:
        """A new store."""
        self.arena = arena
        self.state: State = thaw(arena.start())

    def take(self, name: str, *about: Any) -> None:
        """Take a step of the protocol; its guard must hold."""
        guard, after = TAKES[name](self.arena.logic, self.state, self.arena.wrong, *about)
        if not guard:
            raise Departure(f"{name} is not allowed in {freeze(self.state, self.arena)}")
        self.state = thaw(tuple(map(tuple, rows_of(after, self.arena))))

    def slots_of(self, *kinds: int) -> set[int]:
        """The slots that are of these kinds."""
        return {slot for slot in range(self.arena.slots) if self.state.kind(slot) in kinds}


def rows_of(state: State, arena: Arena) -> Iterator[list[Any]]:
    """A state as rows, with nothing forgotten."""
    yield [getattr(state, name) for name in protocol.GLOBALS]
    for name in protocol.BY_SLOT:
        yield [getattr(state, name)(slot) for slot in range(arena.slots)]
    for name in protocol.BY_SAVER:
        yield [getattr(state, name)(saver) for saver in range(arena.savers)]


class Saver:
    """One save of the core, under way."""

    def __init__(self, shared: Any, words: int, keep: int) -> None:
        """Begin a save."""
        self.mine = cells.new_mine()
        self.program: Any = save.save(shared, self.mine, words, keep, 0)
        self.asked = steps.STEP

    def local(self, name: str, otherwise: int) -> int:
        """What the program holds in a variable of its own."""
        frame = self.program.gi_frame
        return int(frame.f_locals.get(name, otherwise)) if frame is not None else otherwise


class Run:
    """One store, its savers, and the protocol beside them."""

    def __init__(self, seed: int, *, savers: int, keep: int, in_flight: int) -> None:
        """A new store."""
        self.chance = random.Random(seed)
        self.keep, self.savers, self.slots = keep, savers, in_flight + keep
        self.words = rules.words_for(self.slots)
        self.model = Model(Arena(self.slots, savers, 2**40))
        self.shared = cells.new_cells()
        self.shared[cells.FREE] = 2**self.slots - 1
        self.working: list[Saver | None] = [None] * savers
        self.compare()

    def move(self) -> None:
        """Something happens: a step of a save, a whim of the cache, or now and then a crash."""
        drawn = self.chance.random()
        if drawn < 0.003:
            self.crash()
        elif drawn < 0.2:
            self.write_back()
        else:
            self.move_saver(self.chance.randrange(self.savers))

    def write_back(self) -> None:
        """The cache does something of its own accord, if it can."""
        name = self.chance.choice(["write_back_record", "tear_record", "write_back_payload", "tear_payload"])
        slot = self.chance.randrange(self.slots)
        guard, _ = TAKES[name](self.model.arena.logic, self.model.state, self.model.arena.wrong, slot)
        if guard:
            self.model.take(name, slot)

    def move_saver(self, saver: int) -> None:
        """One step of a save, which the protocol must be able to follow."""
        working = self.working[saver]
        if working is None:
            working = self.working[saver] = Saver(self.shared, self.words, self.keep)
        before = self.shared.copy()
        asked = next(working.program, None)
        self.follow(saver, working, before)
        if asked is None:
            self.working[saver] = None
            if self.model.state.place(saver) != protocol.IDLE:
                raise Departure(f"a save ended at place {self.model.state.place(saver)}")
        else:
            self.perform(saver, working, asked)
        self.compare()

    def follow(self, saver: int, working: Saver, before: Any) -> None:
        """Take the protocol's step for what the program just did to the shared words."""
        place = self.model.state.place(saver)
        gained, lost = self.moved(before, cells.FREE)
        doubted, trusted = self.moved(before, cells.QUARANTINED)
        if place == protocol.IDLE and working.mine[cells.OUTCOME] == rules.PENDING:
            self.model.take("load", saver)
        elif place == protocol.LOADED:
            self.model.take("count", saver)
        elif lost or trusted:
            self.model.take("acquire" if lost else "acquire_doubtful", saver, *(lost or trusted))
        elif doubted:
            failed = "fail_empty_record" if place in (protocol.EMPTYING, protocol.EMPTIED) else "fail_record"
            flags = [self.chance.random() < 0.5 for _ in range(2 if failed == "fail_record" else 1)]
            self.model.take(failed, saver, *flags)
        elif gained and place in (protocol.ACQUIRED, protocol.FILLING, protocol.FILLED):
            if working.mine[cells.STATUS] == rules.DONE:
                self.model.take("overtaken", saver)
            else:
                self.model.take("fail_payload", saver, self.chance.random() < 0.5)
        elif place == protocol.ACKNOWLEDGED:
            self.follow_publish(saver, working, before)
        if self.model.state.place(saver) == protocol.CARRYING:
            self.follow_leftover(saver, before, gained)

    def follow_publish(self, saver: int, working: Saver, before: Any) -> None:
        """The swap was tried and found something in the root, or it was not tried."""
        state = self.model.state
        if self.shared[cells.ROOT] != before[cells.ROOT]:
            self.model.take("publish", saver)
            return
        found = working.local("found", self.tag(state.seen(saver), state.seen_slot(saver)))
        if rules.sequence_of(found) > state.mine(saver) or working.mine[cells.OUTCOME] == rules.SUPERSEDED:
            self.model.take("superseded", saver)
        elif found != self.tag(state.seen(saver), state.seen_slot(saver)):
            self.model.take("look_again", saver)

    def follow_leftover(self, saver: int, before: Any, gained: list[int]) -> None:
        """A cell took what was left over, or its slot was released."""
        row = slice(cells.KEPT, cells.KEPT + self.keep - 1)
        changed = [(int(old), int(new)) for old, new in zip(before[row], self.shared[row], strict=True) if old != new]
        for old, new in changed:
            if rules.slot_of(new) != self.model.state.left_slot(saver):
                raise Departure(f"a cell took {new}, which is not what was left over")
            if old == rules.NO_TAG:
                self.model.take("keep", saver)
            else:
                self.model.take("exchange", saver, rules.slot_of(old))
        if gained:
            self.model.take("release", saver)

    def perform(self, saver: int, working: Saver, asked: int) -> None:
        """Do what the program asks for, or fail to."""
        if asked == steps.ACKNOWLEDGE:
            self.model.take("acknowledge", saver)
        if asked in NEVER_FAILS:
            return
        fails = self.chance.random() < 0.06
        working.mine[cells.STATUS] = rules.BROKEN if fails else rules.DONE
        if asked == steps.WRITE_PAYLOAD:
            self.model.take("begin_payload", saver)
            if not fails:
                self.model.take("end_payload", saver)
        elif not fails and asked in DOES:
            self.model.take(DOES[asked], saver)

    def moved(self, before: Any, cell: int) -> tuple[list[int], list[int]]:
        """The slots that came into a slot set, and those that left it."""
        old, new = int(before[cell]), int(self.shared[cell])
        came = [slot for slot in range(self.slots) if new >> slot & 1 and not old >> slot & 1]
        return came, [slot for slot in range(self.slots) if old >> slot & 1 and not new >> slot & 1]

    def tag(self, sequence: int, slot: int) -> int:
        """The tag of a sequence, which may be none."""
        return rules.tag_of(sequence, slot) if sequence else rules.NO_TAG

    def compare(self) -> None:
        """Every shared word says what the protocol's state says."""
        state = self.model.state
        kept = {rules.slot_of(int(tag)) for tag in self.shared[cells.KEPT : cells.KEPT + self.keep - 1] if tag}
        said = {
            "root": (int(self.shared[cells.ROOT]), self.tag(state.root, state.root_slot)),
            "sequence": (int(self.shared[cells.SEQUENCE]), state.counter),
            "free": (int(self.shared[cells.FREE]), sum(2**slot for slot in self.model.slots_of(protocol.FREE))),
            "doubt": (
                int(self.shared[cells.QUARANTINED]),
                sum(2**slot for slot in self.model.slots_of(protocol.DOUBTFUL)),
            ),
            "kept": (kept, self.model.slots_of(protocol.KEPT)),
        }
        for name, (program, model) in said.items():
            if program != model:
                raise Departure(f"{name} is {program}, and {model} in the protocol")

    def crash(self) -> None:
        """The process is gone, or the power; then the core's own recovery, perhaps only at the second try."""
        self.model.take(self.chance.choice(["kill", "lose_power"]))
        self.working = [None] * self.savers
        if self.chance.random() < 0.3:
            self.recover(fails_at=self.chance.randrange(1, 4))
        if self.model.state.phase != protocol.RUNNING:
            self.recover(fails_at=0)
        self.compare()

    def recover(self, *, fails_at: int) -> None:
        """Read what there is and make the store ready; device step number `fails_at` of that fails."""
        state = self.model.state
        mine, verdict = cells.new_mine(), [recover.EMPTY] * self.slots
        tags = [self.tag(state.cached_record(slot), slot) for slot in range(self.slots)]
        for step in recover.survey(mine, tags, verdict, self.slots):
            slot = int(mine[cells.MY_SLOT])
            if step == steps.READ_RECORD and tags[slot]:
                verdict[slot] = recover.CANDIDATE
            mine[cells.STATUS] = rules.DONE
        newest = int(mine[cells.MY_TAG])
        self.shared[:] = 0
        self.shared[cells.MARKED] = rules.MARK_DURABLE if state.acknowledged else rules.MARK_ABSENT
        done: dict[int, list[int]] = {slot: [] for slot in range(self.slots)}
        asked = 0
        for step in recover.make_ready(self.shared, mine, tags, verdict, self.slots, self.keep, 0):
            asked += step != steps.STEP
            if asked == fails_at and step != steps.STEP:
                mine[cells.STATUS] = rules.BROKEN
            elif step in REMADE[0] + REMADE[1]:
                done[int(mine[cells.MY_SLOT])].append(step)
        kept = [slot for slot in range(self.slots) if verdict[slot] == recover.KEPT_RECORD]
        empty = [slot for slot in range(self.slots) if tags[slot] == rules.NO_TAG]
        if any(done[slot] != REMADE[0] for slot in kept):
            raise Departure(f"recovery kept {kept}, and wrote {done}")
        if mine[cells.STATUS] == rules.DONE and any(done[slot] != REMADE[1] for slot in empty):
            raise Departure(f"recovery found {empty} empty, and wrote {done}")
        if newest == rules.NO_TAG:
            self.model.take("survey_nothing")
        else:
            self.model.take("survey", rules.slot_of(newest), [slot in kept for slot in range(self.slots)].__getitem__)
        if mine[cells.STATUS] == rules.DONE:
            self.model.take("make_ready")
            return
        if self.shared[cells.FREE] != 0:
            raise Departure("a slot was handed out though recovery failed")
        self.model.take("fail_ready", [self.chance.random() < 0.5 for _ in range(self.slots)].__getitem__)


DOES = {
    steps.PERSIST_PAYLOAD: "persist_payload",
    steps.WRITE_RECORD: "write_record",
    steps.PERSIST_RECORD: "persist_record",
    steps.WRITE_EMPTY_RECORD: "write_empty_record",
    steps.PERSIST_EMPTY_RECORD: "persist_empty_record",
}
"""The protocol's step for what a program asks its driver for, when it is done."""


SEEDS, MOVES = 100, 400


def programs_follow_the_protocol() -> int:
    """The core's save and recovery programs do, step by step, only what the protocol allows; so random runs show.

    Several stores of several shapes; answers how many moves were followed.
    """
    for seed in range(SEEDS):
        run = Run(seed, savers=2 + seed % 2, keep=1 + seed % 3, in_flight=2 + seed % 3)
        for _ in range(MOVES):
            run.move()
    return SEEDS * MOVES
