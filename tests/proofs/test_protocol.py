"""The protocol's proof: how much of it there is, that it fails where it must, and that both its readings agree."""

from __future__ import annotations

import random
from typing import Any

import pytest
import z3

from proofs.logic import Symbols
from proofs.protocol import BY_SAVER, BY_SLOT, GLOBALS
from proofs.protocol_invariant import CLAUSES
from proofs.protocol_mutants import HARMLESS, MUTANTS, ROUND, Mutant
from proofs.protocol_proof import Group, Symbolic, conclusion, invariant_is_inductive, prove
from proofs.protocol_search import Arena, every_reachable_state, replay, shortest_break, thaw
from proofs.protocol_theorems import STATE_THEOREMS, STEP_THEOREMS
from proofs.protocol_tool import inductive_with

OBLIGATIONS = 561
"""Clauses times (steps and the start). Another number is another protocol: read it again before changing this one."""


def label(mutant: Mutant) -> str:
    return f"{mutant.name}: {mutant.theorem}"


def test_the_whole_induction_is_proved() -> None:
    proof = invariant_is_inductive()
    assert proof.failures == ()
    assert proof.obligations == OBLIGATIONS


@pytest.mark.parametrize("theorem", [*STATE_THEOREMS, *STEP_THEOREMS])
def test_each_theorem_follows(theorem: str) -> None:
    proof = prove(conclusion(Symbolic(), theorem))
    assert proof.failures == ()
    assert proof.obligations == (1 if theorem in STATE_THEOREMS else OBLIGATIONS // len(CLAUSES) - 1)


@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_the_proof_fails_when_a_mistake_is_made(mutant: Mutant) -> None:
    assert not inductive_with(mutant.name)


@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_a_mistake_is_shown_by_its_trace(mutant: Mutant) -> None:
    assert replay(mutant.trace, mutant.theorem, mutant.arena()) == len(mutant.trace)


@pytest.mark.parametrize("mutant", MUTANTS, ids=label)
def test_without_the_mistake_the_trace_is_harmless_or_cannot_be_taken(mutant: Mutant) -> None:
    try:
        broken_at = replay(mutant.trace, mutant.theorem, mutant.arena(with_mistake=False))
    except ValueError:
        return
    assert broken_at is None


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant.name != "slot-compared"], ids=label)
def test_the_search_finds_the_same_trace_again(mutant: Mutant) -> None:
    """Golden: the trace in the table is a shortest one, and stays the one that is found."""
    assert shortest_break(mutant.theorem, mutant.arena()) == mutant.trace


@pytest.mark.slow
def test_the_search_finds_the_recycled_slot_again() -> None:
    """What the published listing does: an old save swaps over a newer checkpoint that lies in the slot it saw."""
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == "slot-compared")
    assert shortest_break(mutant.theorem, mutant.arena()) == mutant.trace


@pytest.mark.parametrize("name", HARMLESS)
def test_one_of_two_defences_is_enough(name: str) -> None:
    arena = Arena(slots=3, savers=2, sequences=2, wrong=frozenset({name}), steps=ROUND)
    assert shortest_break("root-never-goes-back", arena) is None


@pytest.mark.slow
def test_two_savers_reach_no_state_that_breaks_anything() -> None:
    count, wrong = every_reachable_state(Arena(slots=2, savers=2, sequences=2), 20_000)
    assert wrong == []
    assert count == 15_338


def test_a_step_that_cannot_be_taken_is_said() -> None:
    with pytest.raises(ValueError, match=r"step 1, publish 0, cannot be taken"):
        replay(("publish 0",), "root-never-goes-back", Arena(1, 1, 1))


def test_nothing_is_proved_of_nothing() -> None:
    number = z3.Int("number")
    proof = prove(iter([Group("impossible", (z3.And(number > 0, number < 0),), {"anything": number == 7})]))
    assert proof.failures == ("impossible: what is given is unsat",)


def test_what_is_not_decided_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofs.protocol_proof.MILLISECONDS", 1)
    first, second, third = z3.Ints("first second third")
    cubes = first * first * first + second * second * second
    proof = prove(iter([Group("hard", (first > 2, second > 2), {"fermat": cubes != third * third * third})]))
    assert proof.failures


def random_state(random_source: random.Random, slots: int, savers: int) -> tuple[tuple[Any, ...], ...]:
    """Any state, most of them impossible."""
    words = [
        (random_source.randrange(3), *(random_source.randrange(4) for _ in range(2)), 0, random_source.randrange(4), 0)
    ]
    for name in BY_SLOT:
        most = {"kind": 6, "owner": savers, "record_dirty": 2, "payload_dirty": 2}.get(name, 3)
        words.append(tuple(random_source.randrange(most) for _ in range(slots)))
    for name in BY_SAVER:
        most = {"place": 13, "slot": slots, "seen_slot": slots, "left_slot": slots}.get(name, 4)
        words.append(tuple(random_source.randrange(most) for _ in range(savers)))
    return tuple(tuple(row) for row in words)


def pinned(symbolic: Symbolic, frozen: tuple[tuple[Any, ...], ...], slots: int, savers: int) -> list[z3.BoolRef]:
    """Formulas that say that z3's state is this one."""
    logic: Symbols = symbolic.logic
    slot = [z3.Const(f"slot{number}", logic.slot_sort) for number in range(slots)]
    saver = [z3.Const(f"saver{number}", logic.saver_sort) for number in range(savers)]
    any_slot, any_saver = z3.Const("any_slot", logic.slot_sort), z3.Const("any_saver", logic.saver_sort)
    said = [
        z3.Distinct(*slot),
        z3.Distinct(*saver),
        z3.ForAll([any_slot], z3.Or([any_slot == each for each in slot])),
        z3.ForAll([any_saver], z3.Or([any_saver == each for each in saver])),
    ]

    def value(name: str, plain: Any) -> Any:
        if name in ("root_slot", "witness", "slot", "seen_slot", "left_slot"):
            return slot[plain]
        if name == "owner":
            return saver[plain]
        return bool(plain) if name.endswith("dirty") else plain

    for name, plain in zip(GLOBALS, frozen[0], strict=True):
        said.append(getattr(symbolic.state, name) == value(name, plain))
    for name, row in zip((*BY_SLOT, *BY_SAVER), frozen[1:], strict=True):
        for which, plain in zip(slot if name in BY_SLOT else saver, row, strict=True):
            said.append(getattr(symbolic.state, name)(which) == value(name, plain))
    return said


@pytest.mark.parametrize("seed", range(8))
def test_both_readings_agree_on_every_clause(seed: int) -> None:
    """z3's formula and Python's answer are the same for the same state, or one of the two proves something else."""
    slots, savers = 2, 2
    frozen = random_state(random.Random(seed), slots, savers)
    symbolic = Symbolic()
    solver = z3.Solver()
    solver.add(*pinned(symbolic, frozen, slots, savers))
    assert solver.check() == z3.sat
    values = Arena(slots, savers, 4).logic
    for name, clause in {**CLAUSES, **STATE_THEOREMS}.items():
        holds = clause(values, thaw(frozen))
        formula = clause(symbolic.logic, symbolic.state)
        assert solver.check(z3.Not(formula) if holds else formula) == z3.unsat, name
