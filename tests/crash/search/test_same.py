"""Sequences by their order alone: no state is lost by it, no mutant survives by it, and any number of saves comes to an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lastgood.cli import main
from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import edited, mutant_target, real_target
from lastgood.crashsim.mutants import MUTANTS
from lastgood.crashsim.search import breadth_first
from tests.crash.exploring import assert_clean, explored

State = tuple[int, ...]
KILLED = [
    name
    for name, mutant in MUTANTS.items()
    if mutant.ignored and not mutant.bounds.restarts and not mutant.bounds.one_persist  # which relies on digests
]


def kinds_met(system: CoreSystem, canonical: Callable[[State], State]) -> tuple[set[State], int]:
    """The kinds of states that a search meets which tells states apart like this; and how many states it kept."""
    assert system.same is not None
    key = system.same.key
    met = set()

    class Watched:
        def initial(self) -> Any:
            return system.initial()

        def moves(self, state: State) -> Any:
            return system.moves(state)

        def canonical(self, state: State) -> State:
            return canonical(state)

        def judge(self, state: State) -> None:
            met.add(key(state))

    result = breadth_first(Watched())
    assert result.exhaustive
    return met, result.states


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(Bounds(saves=3), id="page-cache"),
        pytest.param(Bounds(saves=3, medium="pmem"), id="pmem"),
        pytest.param(Bounds(saves=3, medium="block"), id="block"),
        pytest.param(Bounds(saves=3, medium="strict"), id="strict"),
        pytest.param(Bounds(saves=3, keep=2), id="keep-two"),
        pytest.param(Bounds(saves=2, faults=1), id="a-step-fails"),
    ],
)
def test_no_kind_of_state_is_lost(bounds: Bounds) -> None:
    """One state of each kind leads to every kind that all the states of that kind lead to."""
    system = CoreSystem(real_target(), bounds, ("ignored",), by_order=True)
    every, states = kinds_met(system, lambda state: (*state[:3], *sorted(state[3:])))
    kept, fewer = kinds_met(system, system.canonical)
    assert kept == every
    assert len(kept) == fewer < states


@pytest.mark.parametrize("name", KILLED)
def test_no_mutant_survives(name: str) -> None:
    mutant = MUTANTS[name]
    target = mutant_target(mutant)
    if set(target.save.__code__.co_varnames) - set(real_target().save.__code__.co_varnames):
        with pytest.raises(ValueError, match="variables of its own"):  # it is searched as it is, then
            CoreSystem(target, mutant.bounds, ("ignored",), by_order=True)
        return
    system = CoreSystem(target, mutant.bounds, ("ignored",), (mutant.ignored,), by_order=True)
    found = breadth_first(system).counterexample
    assert found is not None
    assert found.violation.promise == mutant.ignored


def test_what_cannot_be_told_by_order_is_refused() -> None:
    real = real_target()
    with pytest.raises(ValueError, match="starts again"):
        CoreSystem(real, Bounds(saves=0, restarts=1), ("ignored",))
    with pytest.raises(ValueError, match="too many slots"):
        CoreSystem(real, Bounds(saves=0, savers=9, keep=9), ("ignored",))
    own = edited(real.save, (("    tag = tag_of(sequence, slot)\n", "    tag = mine_own = tag_of(sequence, slot)\n"),))
    with pytest.raises(ValueError, match="variables of its own: mine_own"):
        CoreSystem(type(real)("edited", own, real.survey, real.make_ready), Bounds(saves=0), ("ignored",))


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(savers=1, saves=0), 59, id="one-saver"),
        pytest.param(Bounds(saves=0), 104_363, id="two-savers", marks=pytest.mark.slow),
    ],
)
def test_any_number_of_saves_keeps_every_promise(bounds: Bounds, states: int) -> None:
    """No bound on saves at all: whatever they do, it is one of these states, and every one of them was judged."""
    report = explored("real", bounds)
    assert_clean(report)
    assert report.result.states == states
    assert "any number of saves" in bounds.sentence()


def test_the_command_refuses_it_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--saves", "0", "--restarts", "1"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "starts again" in err
