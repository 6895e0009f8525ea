"""The core's own programs, followed by the protocol step by step: that the code is what is proved is *tested* here.

Several `save` programs of the core run over one set of shared words, in any order, each device step answered at will; now
and then the store crashes, and `survey` and `make_ready` bring it back. After every step of a program the protocol must
have steps that do the same: whose guards hold, and after which every shared word, and every word of the save's own, says
what the protocol's state says. A program that does anything else is a `Departure`. What lies on the medium is the
protocol's.

The step is guessed from what the program did to the shared words, never from its source: so machine code is followed as
the interpreted program is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from lastgood.core import cells, recover, rules, save, steps

from .follower import Departure, Follower
from .protocol import state as states
from .protocol_search import Arena

NEVER_FAILS = (steps.STEP, steps.ACQUIRED, steps.ACKNOWLEDGE, steps.WAIT)


class Programs(NamedTuple):
    """The three programs of the core, as Python runs them or as machine code."""

    save: Callable[..., Any]
    survey: Callable[..., Any]
    make_ready: Callable[..., Any]


def interpreted() -> Programs:
    """The programs as they are in the core now."""
    return Programs(save.save, recover.survey, recover.make_ready)


def compiled() -> Programs:
    """The same as machine code."""
    import numba

    return Programs(*(numba.njit(nogil=True)(program) for program in interpreted()))


class Chance(Protocol):
    """Where decisions come from: `random.Random`, or a search for the decisions that break something."""

    def random(self) -> float:
        """A number from 0 to 1."""

    def randrange(self, stop: int) -> int:
        """A number below `stop`."""


class Shape(NamedTuple):
    """What a store is created with."""

    savers: int
    keep: int
    in_flight: int
    one_persist: bool = False

    @property
    def slots(self) -> int:
        """Slots of such a store."""
        return self.in_flight + self.keep


class Saver:
    """One save of the core, under way."""

    def __init__(self, programs: Programs, shared: Any, shape: Shape) -> None:
        """Begin a save."""
        self.mine = cells.new_mine()
        words = rules.words_for(shape.slots)
        self.program: Any = programs.save(shared, self.mine, words, shape.keep, int(shape.one_persist))


class Run:
    """One store, its savers, and the protocol beside them."""

    def __init__(self, chance: Chance, shape: Shape, programs: Programs | None = None) -> None:
        """A new store."""
        self.chance, self.shape = chance, shape
        self.programs = programs or interpreted()
        self.new_store()

    def new_store(self) -> None:
        """Nothing written, everything free."""
        shape = self.shape
        variant = frozenset({"one-persist"} if shape.one_persist else ())
        self.follower = Follower(Arena(shape.slots, shape.savers, 2**40, shape.keep, variant))
        self.shared = cells.new_cells()
        self.shared[cells.FREE] = 2**shape.slots - 1
        self.working: list[Saver | None] = [None] * shape.savers
        self.follower.compare(self.shared)

    def move(self) -> None:
        """Something happens: a step of a save, a whim of the cache, or now and then a crash."""
        drawn = self.chance.random()
        if drawn < 0.004:
            self.crash(power=self.chance.random() < 0.5)
        elif drawn < 0.2:
            self.write_back(self.chance.randrange(5), self.chance.randrange(self.shape.slots))
        else:
            self.move_saver(self.chance.randrange(self.shape.savers), fails=self.chance.random() < 0.06)

    def write_back(self, what: int, slot: int) -> None:
        """The cache does something of its own accord, if it can."""
        name = ("write_back_record", "tear_record", "write_back_payload", "tear_payload", "write_back_mark")[what]
        self.follower.take_if_it_can_be(name, *(() if name == "write_back_mark" else (slot,)))

    def flag(self) -> bool:
        """Yes or no."""
        return self.chance.random() < 0.5

    def flags(self) -> Callable[[int], bool]:
        """Yes or no for each slot."""
        return [self.flag() for _ in range(self.shape.slots)].__getitem__

    def move_saver(self, saver: int, *, fails: bool) -> None:
        """One step of a save, which the protocol must be able to follow."""
        working = self.working[saver]
        if working is None:
            working = self.working[saver] = Saver(self.programs, self.shared, self.shape)
        before = self.shared.copy()
        asked = next(working.program, None)
        self.follower.follow(saver, working.mine, before, self.shared, self.flag)
        if asked is None:
            self.working[saver] = None
            self.follower.expect_ended(saver)
        else:
            self.perform(saver, working, asked, fails=fails and asked not in NEVER_FAILS)
        self.follower.compare(self.shared)

    def perform(self, saver: int, working: Saver, asked: int, *, fails: bool) -> None:
        """Do what the program asks for, or fail to."""
        if asked not in (steps.STEP, steps.WAIT):
            self.follower.compare_own(saver, working.mine)
        if asked not in NEVER_FAILS:
            working.mine[cells.STATUS] = rules.BROKEN if fails else rules.DONE
        self.follower.perform(saver, asked, fails=fails)

    def crash(self, *, power: bool) -> None:
        """The process is gone, or the power; then the core's own recovery, perhaps only at the second try."""
        self.follower.take("lose_power" if power else "kill")
        self.working = [None] * self.shape.savers
        if self.chance.random() < 0.3:
            self.recover(fails_at=1 + self.chance.randrange(6))
        if self.follower.state.phase == states.STOPPED:
            self.recover(fails_at=0)
        self.follower.compare(self.shared)

    def recover(self, *, fails_at: int) -> None:
        """Read what there is and make the store ready; device step number `fails_at` of that fails."""
        follower, slots = self.follower, self.shape.slots
        state = follower.state
        mine, verdict, tags = cells.new_mine(), np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        for step in self.programs.survey(mine, tags, verdict, slots):
            slot = int(mine[cells.MY_SLOT])
            mine[cells.STATUS] = rules.DONE
            if step == steps.READ_RECORD and state.cached_record(slot):
                tags[slot], verdict[slot] = follower.tag(state.cached_record(slot), slot), recover.CANDIDATE
            elif step == steps.VERIFY_PAYLOAD:
                mine[cells.STATUS] = follower.verify(slot)
        if state.cached_mark and mine[cells.MY_TAG] == rules.NO_TAG:
            self.new_store()  # the driver refuses this one: something was acknowledged, or nearly
            return
        follower.survey([rules.sequence_of(int(tag)) for tag in tags])
        self.shared[:] = 0
        self.shared[cells.MARKED] = rules.MARK_DURABLE if state.cached_mark else rules.MARK_ABSENT
        mine[cells.STATUS] = rules.DONE
        asked = 0
        one_persist = int(self.shape.one_persist)
        for step in self.programs.make_ready(self.shared, mine, tags, verdict, slots, self.shape.keep, one_persist):
            asked += step != steps.STEP
            slot = int(mine[cells.MY_SLOT])
            if step == steps.VERIFY_PAYLOAD:
                mine[cells.STATUS] = follower.verify(slot)
            elif step != steps.STEP and asked == fails_at:
                mine[cells.STATUS] = rules.BROKEN
            else:
                mine[cells.STATUS] = rules.DONE
                follower.recovered(step, slot)
        if mine[cells.STATUS] == rules.DONE:
            follower.take("ready")
        elif self.shared[cells.FREE] != 0:
            raise Departure("a slot was handed out though recovery failed")
        else:
            follower.take("fail_ready", self.flags(), self.flag())
            self.shared[:] = 0


SEEDS, MOVES = 100, 400


def shape_of(seed: int) -> Shape:
    """Stores of several shapes."""
    return Shape(2 + seed % 2, 1 + seed % 3, 2 + seed % 3, seed % 4 == 3)


def programs_follow_the_protocol(seeds: int = SEEDS, programs: Programs | None = None) -> int:
    """The core's save and recovery programs do, step by step, only what the protocol allows; so random runs show.

    Several stores of several shapes; answers how many moves were followed.
    """
    for seed in range(seeds):
        run = Run(random.Random(seed), shape_of(seed), programs)
        for _ in range(MOVES):
            run.move()
    return seeds * MOVES


def machine_code_follows_the_protocol() -> int:
    """The same programs as machine code, stepped from Python, do only what the protocol allows, in the same random runs."""
    return programs_follow_the_protocol(SEEDS, compiled())
