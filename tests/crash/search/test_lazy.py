"""Steps that are put off: the states left out are exactly those that the kept ones stand for, and no mutant survives."""

from __future__ import annotations

from typing import Any

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import explore, replay
from lastgood.crashsim.core_lazy import LazySystem
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import mutant_target, real_target
from lastgood.crashsim.mutants import MUTANTS
from lastgood.crashsim.promises import PROMISES
from lastgood.crashsim.replay import Replay, decode, encode
from lastgood.crashsim.search import breadth_first
from tests.crash.exploring import assert_clean

State = tuple[int, ...]
KILLED = [
    name
    for name, mutant in MUTANTS.items()
    if mutant.ignored
    and not mutant.bounds.restarts
    and not mutant.bounds.one_persist
    and (mutant.save or mutant.compare_swap)
]


def met(searched: CoreSystem | LazySystem, every: Any) -> tuple[set[State], int]:
    """Every state that a search meets or stands for, whoever of the savers is who; and how many it kept."""
    found: set[State] = set()

    class Watched:
        def initial(self) -> Any:
            return searched.initial()

        def moves(self, state: State) -> Any:
            return searched.moves(state)

        def canonical(self, state: State) -> State:
            return searched.canonical(state)

        def judge(self, state: State) -> None:
            found.update((*each[:3], *sorted(each[3:])) for each in every(state))

    result = breadth_first(Watched())
    assert result.exhaustive
    return found, result.states


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(Bounds(saves=3), id="page-cache"),
        pytest.param(Bounds(saves=2, writers=3), id="three-writers"),
        pytest.param(Bounds(savers=3, saves=2), id="three-savers"),
        pytest.param(Bounds(saves=2, faults=1), id="a-step-fails"),
        pytest.param(Bounds(saves=2, medium="pmem"), id="pmem"),
        pytest.param(Bounds(saves=2, medium="pmem-eadr"), id="pmem-eadr"),
        pytest.param(Bounds(saves=2, keep=2, medium="ext4"), id="ext4"),
        pytest.param(Bounds(saves=2, faults=1, medium="failing-fsync"), id="failing-fsync"),
    ],
)
def test_what_is_left_out_is_what_is_stood_for(bounds: Bounds) -> None:
    system = CoreSystem(real_target(), bounds, ("ignored",))
    lazy = LazySystem(system)
    every, states = met(system, lambda state: [state])
    stood_for, fewer = met(lazy, lambda state: [each for _, each in lazy.expanded(state)])
    assert stood_for == every
    assert fewer < states


@pytest.mark.parametrize("name", KILLED)
def test_no_mutant_survives_and_its_string_replays(name: str) -> None:
    mutant = MUTANTS[name]
    system = CoreSystem(mutant_target(mutant), mutant.bounds, ("ignored",), (mutant.ignored,))
    lazy = LazySystem(system)
    found = breadth_first(lazy).counterexample
    assert found is not None
    told = lazy.told(found)
    assert told.violation.promise == mutant.ignored
    assert replay(decode(encode(Replay(name, mutant.bounds, told)))).sentence


def test_the_orders_in_which_four_writers_finish_are_not_told_apart() -> None:
    bounds = Bounds(saves=2, writers=4)
    arguments = ("real", bounds, ("trusted", "ignored"), tuple(PROMISES))
    one, other = explore(*arguments), explore(*arguments, put_off=True)
    for report in (one, other):
        assert_clean(report)
    assert one.images == other.images
    assert other.result.states * 3 < one.result.states


def test_explore_tells_a_counterexample_in_plain_moves() -> None:
    """One that minimising, drawing and replaying can walk."""
    arguments = ("drop-record-persist", Bounds(saves=2), ("ignored",), tuple(PROMISES))
    one, other = explore(*arguments), explore(*arguments, put_off=True)
    assert (one.sentence, one.lost_writes) == (other.sentence, other.lost_writes)


def test_with_sequences_by_their_order_too() -> None:
    """Both at once meet every kind of state that there is."""
    system = CoreSystem(real_target(), Bounds(saves=3), ("ignored",), by_order=True)
    assert system.same is not None
    key = system.same.key
    lazy = LazySystem(system)
    every, _ = met(system, lambda state: [state])
    stood_for, _ = met(lazy, lambda state: [each for _, each in lazy.expanded(state)])
    assert {key(state) for state in stood_for} == {key(state) for state in every}


@pytest.mark.parametrize("bounds", [Bounds(medium="block"), Bounds(medium="strict"), Bounds(restarts=1)])
def test_where_nothing_is_private_it_is_refused(bounds: Bounds) -> None:
    with pytest.raises(ValueError, match="cannot be put off"):
        LazySystem(CoreSystem(real_target(), bounds, ("ignored",), tuple(PROMISES)))
