"""The protocol's proof: how much of it there is, that it fails where it must, and that all its readings agree."""

from __future__ import annotations

import random
from typing import Any

import pytest
import z3

from proofs import protocol_search
from proofs.logic import Symbols
from proofs.protocol import steps_of
from proofs.protocol.invariant import CLAUSES
from proofs.protocol.state import GLOBALS, MEANT, OF
from proofs.protocol.theorems import STATE_THEOREMS
from proofs.protocol_counterexample import counterexample
from proofs.protocol_mutants import HARMLESS, MUTANTS, RACES, TRACES, Mutant
from proofs.protocol_proof import Group, Symbolic, conclusion, induction, prove
from proofs.protocol_search import ROWS, Arena, replay, shortest_break, thaw
from proofs.protocol_tool import OBLIGATIONS, TAKEN_IN_RACES
from proofs.second_solver import second_word

SEARCHED_FOR_LONG = {
    *("takes-anything", "slot-compared", "ghosts-left", "emptied-unpersisted", "mark-trusted", "mark-not-rewritten"),
    *("released-before-swap", "superseded-released", "count-first no-guard"),
}
"""Mistakes whose shortest run takes more than a few seconds to find."""


def label(mutant: Mutant) -> str:
    return f"{mutant.name}: {mutant.theorem}"


def test_obligations_are_clauses_times_steps() -> None:
    """The gate asserts these numbers of what the solvers were asked; here, that they are what they should be."""
    for variant, count in OBLIGATIONS.items():
        assert count == len(CLAUSES) * (len(steps_of(frozenset(variant.split()))) + 1)


def test_every_step_keeps_the_row() -> None:
    """A part of the induction, by one solver: the whole of it, by two, is a claim of the gate."""
    symbolic = Symbolic()
    for group in induction(symbolic):
        wanted = {name: group.wanted[name] for name in ("row-is-durable", "row-descends", "free-is-below")}
        assert prove(iter([Group(group.name, group.given, wanted)]), twice=False).failures == ()


@pytest.mark.parametrize("theorem", STATE_THEOREMS)
def test_each_theorem_follows(theorem: str) -> None:
    proof = prove(conclusion(Symbolic(), theorem))
    assert proof.failures == ()
    assert proof.obligations == 1


@pytest.mark.parametrize("mutant", [MUTANTS[0], MUTANTS[-1]], ids=label)
def test_the_proof_fails_with_a_readable_state(mutant: Mutant) -> None:
    """All mistakes: the gate."""
    found = counterexample(frozenset(mutant.name.split()), mutant.theorem)
    assert found is not None
    assert found.breaks in {*CLAUSES, *STATE_THEOREMS} or "," in found.breaks
    assert "slot 0: " in str(found)
    assert "phase" in str(found)


def test_no_state_breaks_the_protocol_itself() -> None:
    assert counterexample(frozenset(), "recovered-is-whole") is None


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


def test_every_trace_belongs_to_a_mistake() -> None:
    assert {path.name for path in TRACES.iterdir()} == {mutant.path.name for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant.name not in SEARCHED_FOR_LONG], ids=label)
def test_the_search_finds_the_same_trace_again(mutant: Mutant) -> None:
    """Golden: the trace in the folder is a shortest one, and stays the one that is found."""
    assert shortest_break(mutant.theorem, mutant.arena()) == mutant.trace


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant.name in SEARCHED_FOR_LONG], ids=label)
def test_the_search_finds_the_long_traces_again(mutant: Mutant) -> None:
    """Among them what the published listing does: an old save swaps over a newer checkpoint in the slot that it saw."""
    assert shortest_break(mutant.theorem, mutant.arena()) == mutant.trace


@pytest.mark.parametrize("name", HARMLESS)
def test_what_may_be_exchanged_is_found_harmless_by_the_search(name: str) -> None:
    arena = Arena(slots=2, savers=1, sequences=2, variant=frozenset({name}), steps=RACES | {"kill", "lose_power"})
    reached = protocol_search.every_reachable_state(arena, 20_000)
    assert reached.wrong == ()
    assert 50 < reached.states < 20_000


@pytest.mark.nightly
@pytest.mark.parametrize(("variant", "states"), [("", 4434), ("one-persist", 3730)])
def test_two_savers_and_a_row_of_two_reach_no_state_that_breaks_anything(variant: str, states: int) -> None:
    arena = Arena(slots=4, savers=2, sequences=2, cells=2, variant=frozenset(variant.split()), steps=RACES)
    reached = protocol_search.every_reachable_state(arena, 10 * states)
    assert reached.wrong == ()
    assert reached.states == states


def test_every_step_is_taken_by_some_run() -> None:
    """Nothing is proved of nothing. The gate takes all other steps, in a store with one saver."""
    taken = set()
    for steps in RACING.values():
        assert replay(steps, "row-survives", Arena(slots=4, savers=2, sequences=3, cells=2, steps=RACES)) is None
        taken |= {step.split()[0] for step in steps}
    assert taken >= TAKEN_IN_RACES


BOTH_COUNT = "load 0; load 1; count 0; count 1; acquire 0 0; acquire 1 1; begin_payload 0; end_payload 0; "
DURABLE = "begin_payload {0}; end_payload {0}; persist_payload {0}; write_record {0}; persist_record {0}; "
NEWER = (
    f"{DURABLE.format(1)}claim_mark 1; write_mark 1; persist_mark 1; settle_mark 1; acknowledge 1; publish 1; load 1; "
    f"count 1; acquire 1 2; {DURABLE.format(1)}find_mark 1; acknowledge 1; publish 1; exchange 1 1; "
)
OLDER = "persist_payload 0; write_record 0; persist_record 0; "
RACING = {
    name: tuple(steps.split("; "))
    for name, steps in {
        "overtaken": f"{BOTH_COUNT}{NEWER}overtaken 0",
        "passed on": f"{BOTH_COUNT}{OLDER}{NEWER}find_mark 0; acknowledge 0; superseded 0; pass_on 0 1; release 0",
        "looked again": (
            f"{BOTH_COUNT}{OLDER}claim_mark 0; write_mark 0; persist_mark 0; settle_mark 0; acknowledge 0; "
            f"{DURABLE.format(1)}find_mark 1; acknowledge 1; publish 0; look_again 1; publish 1; exchange 1 1"
        ),
    }.items()
}
"""Races that a search of a store with one saver does not reach."""


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


def test_the_second_solver_is_asked_and_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one solver proves and the other does not is not proved; cvc5 gives each answer by itself."""
    number = z3.Int("number")
    assert second_word([number > 1, number < 1]) == "unsat"
    assert second_word([number > 1, number < 3]) == "sat"
    group = Group("said", (number > 1,), {"positive": number > 0})
    assert prove(iter([group])).failures == ()
    monkeypatch.setattr("proofs.protocol_proof.second_word", lambda formulas: "unknown")
    other = Group("said", (number > 2,), {"above one": number > 1})
    assert prove(iter([other])).failures == ("said: above one is unknown (cvc5)",)


def test_what_was_proved_is_not_asked_again_unless_less_is_given() -> None:
    number, other = z3.Ints("number other")
    weak, strong, wanted = number > 5, other > number, {"so": other > 4}
    assert prove(iter([Group("all", (weak, strong), wanted)])).failures == ()
    assert prove(iter([Group("more", (weak, strong, other > 0), wanted)])).failures == ()
    assert prove(iter([Group("less", (weak,), wanted)])).failures == ("less: so is sat (z3)",)
    assert prove(iter([Group("none of it", (other > 0,), wanted)])).failures == ("none of it: so is sat (z3)",)


def test_digests_never_collide_in_the_variant_that_rests_on_them() -> None:
    """Without that assumption, one persist is not enough: a solver finds the collision."""
    symbolic = Symbolic(frozenset({"one-persist"}))
    (group,) = conclusion(symbolic, "recovered-is-whole")
    assert prove(iter([group])).failures == ()
    without = [formula for formula in group.given if "payload_of" not in formula.sexpr()]
    assert len(without) == len(group.given) - 1
    assert prove(iter([Group(group.name, tuple(without), group.wanted, True)]), twice=False).failures


def random_state(random_source: random.Random, counts: dict[str, int]) -> tuple[tuple[Any, ...], ...]:
    """Any state, most of them impossible."""
    most = {"number": 4, "bool": 2, **counts}
    special = {"phase": 3, "marked": 3, "mark_again": 3, "kind": 7, "place": 18}

    def value(name: str) -> int:
        return random_source.randrange(special.get(name, most[MEANT[name]]))

    rows = (tuple(value(name) for _ in range(counts[kind])) for name, kind in ROWS)
    return (tuple(value(name) for name in GLOBALS), *rows)


def pinned(symbolic: Symbolic, frozen: tuple[tuple[Any, ...], ...], counts: dict[str, int]) -> list[z3.BoolRef]:
    """Formulas that say that z3's state is this one."""
    logic: Symbols = symbolic.logic
    members = {kind: [z3.Const(f"{kind}{each}", logic.sorts[kind]) for each in range(counts[kind])] for kind in OF}
    said = list(symbolic.axioms)
    for kind, these in members.items():
        anything = z3.Const(f"any_{kind}", logic.sorts[kind])
        said += [z3.Distinct(*these), z3.ForAll([anything], z3.Or([anything == each for each in these]))]
    said += [logic.before(*members["cell"]), logic.first == members["cell"][0], logic.last == members["cell"][-1]]

    def value(name: str, plain: Any) -> Any:
        meant = MEANT[name]
        return members[meant][plain] if meant in members else bool(plain) if meant == "bool" else plain

    said += [getattr(symbolic.state, name) == value(name, each) for name, each in zip(GLOBALS, frozen[0], strict=True)]
    for (name, kind), row in zip(ROWS, frozen[1:], strict=True):
        for which, plain in zip(members[kind], row, strict=True):
            said.append(getattr(symbolic.state, name)(which) == value(name, plain))
    return said


@pytest.mark.parametrize("seed", range(6))
def test_both_readings_agree_on_every_clause(seed: int) -> None:
    """z3's formula and Python's answer are the same for the same state, or one of the two proves something else."""
    counts = {"slot": 2, "saver": 2, "cell": 2}
    variant = frozenset({"one-persist"} if seed % 2 else ())
    frozen = random_state(random.Random(seed), counts)
    symbolic = Symbolic(variant)
    solver = z3.Solver()
    solver.add(*pinned(symbolic, frozen, counts))
    values = Arena(2, 2, 4, 2).logic
    for name, clause in {**CLAUSES, **STATE_THEOREMS}.items():
        holds = clause(values, thaw(frozen), variant)
        formula = clause(symbolic.logic, symbolic.state, variant)
        assert solver.check(z3.Not(formula) if holds else formula) == z3.unsat, name
