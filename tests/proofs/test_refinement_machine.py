"""Hypothesis drives the core's programs, as Python and as machine code, with the protocol beside them.

It chooses which save goes on, what fails, what the cache writes back and when the store crashes; after each step all of
memory is compared. What it must find: mistakes planted in the programs, in machine code too.
"""

from __future__ import annotations

import random
from functools import cache

import numba
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from proofs import weakened
from proofs.refinement import Departure, Programs, Run, Shape, compiled, interpreted
from proofs.twins import in_place_of

COMPILED = not numba.config.DISABLE_JIT
compiled_once = cache(compiled)
PLANTED = {
    "save.tag_displaced": weakened.always_its_own,
    "save.keeps_offered": weakened.takes_anything,
    "save.publish_outcome": weakened.gives_up,
    "recover.next_sequence": weakened.forgets_records,
}


def machine(programs: Programs) -> type[RuleBasedStateMachine]:
    """A machine over these programs."""

    class Beside(RuleBasedStateMachine):
        @initialize(
            savers=st.integers(2, 3), keep=st.integers(1, 3), one_persist=st.booleans(), seed=st.integers(0, 2**16)
        )
        def new_store(self, savers: int, keep: int, one_persist: bool, seed: int) -> None:
            self.run = Run(random.Random(seed), Shape(savers, keep, savers, one_persist), programs)

        @rule(saver=st.integers(0, 2), times=st.integers(1, 12), fails=st.booleans())
        def go_on(self, saver: int, times: int, fails: bool) -> None:
            for left in reversed(range(times)):
                self.run.move_saver(saver % self.run.shape.savers, fails=fails and left == 0)

        @rule(what=st.integers(0, 4), slot=st.integers(0, 5))
        def write_back(self, what: int, slot: int) -> None:
            self.run.write_back(what, slot % self.run.shape.slots)

        @rule(power=st.booleans())
        def crash(self, power: bool) -> None:
            self.run.crash(power=power)

    return Beside


def drive(programs: Programs, *, examples: int, steps: int = 40, shrink: bool = False) -> None:
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    chosen = settings(max_examples=examples, stateful_step_count=steps, phases=phases, derandomize=True, deadline=None)
    run_state_machine_as_test(machine(programs), settings=settings(chosen, database=None))


def test_interpreted_programs_follow_the_protocol() -> None:
    drive(interpreted(), examples=25)


@pytest.mark.skipif(not COMPILED, reason="runs compiled code")
def test_compiled_programs_follow_the_protocol() -> None:
    drive(compiled_once(), examples=60)


@pytest.mark.nightly
@pytest.mark.skipif(not COMPILED, reason="runs compiled code")
def test_compiled_programs_follow_the_protocol_for_long() -> None:
    drive(compiled_once(), examples=1000, steps=80)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_mistake_is_found(planted: str) -> None:
    with in_place_of(f"lastgood.core.{planted}", PLANTED[planted]), pytest.raises(Departure):
        drive(interpreted(), examples=400)


@pytest.mark.skipif(not COMPILED, reason="runs compiled code")
def test_a_planted_mistake_is_found_in_machine_code() -> None:
    with in_place_of("lastgood.core.save.tag_displaced", numba.njit(weakened.always_its_own)), pytest.raises(Departure):
        drive(compiled(), examples=400)


@pytest.mark.nightly
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.skipif(not COMPILED, reason="runs compiled code")
def test_every_planted_mistake_is_found_in_machine_code(planted: str) -> None:
    with in_place_of(f"lastgood.core.{planted}", numba.njit(PLANTED[planted])), pytest.raises(Departure):
        drive(compiled(), examples=400)
