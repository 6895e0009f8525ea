"""The protocol, proved: the invariant is inductive and the theorems follow, for any number of slots, savers and cells.

Slots, savers and cells are of sorts that a solver knows nothing about, and every word of the state is a constant or a
function of one of them. An *obligation* is one clause after one step, or at the start, or one theorem: the solver is
asked for a state in which the invariant holds, the step can be taken, and the clause fails afterwards; there must be
none. Two solvers are asked, which share no code. For each step z3 is also asked for a state in which the step can be
taken, and there must be one: nothing is proved of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import z3

from .logic import Few, Symbols
from .protocol import steps_of
from .protocol.invariant import CLAUSES
from .protocol.state import MEANT, OF, Action, State, Step, Variant, start
from .protocol.theorems import STATE_THEOREMS, STEP_THEOREMS
from .second_solver import second_word

MILLISECONDS = 60_000
"""For one question; the slowest takes a hundredth of it."""


@dataclass(frozen=True)
class Group:
    """Obligations that share what is given: that, and what must follow, by name."""

    name: str
    given: tuple[z3.BoolRef, ...]
    wanted: dict[str, z3.BoolRef]
    witnessed: bool = False
    """The search has a state in which the step can be taken, so z3 need not look for one."""


@dataclass(frozen=True)
class Proof:
    """What the solvers said: how many obligations they were asked, and each that is not proved by both."""

    obligations: int
    failures: tuple[str, ...]


class Symbolic:
    """Any state of the protocol, or of a variant, in z3's terms, and any step from it."""

    def __init__(self, variant: Variant = frozenset(), few: Few | None = None) -> None:
        """Name every word. With `few` the same for a few slots and savers."""
        self.logic: Symbols = few or Symbols()
        self.variant = variant
        kinds = {name: kind for kind, names in OF.items() for name in names}
        words: dict[str, Any] = {}
        for each in fields(State):
            sort, name = self.sort(MEANT[each.name]), each.name
            kind = kinds.get(name)
            words[name] = z3.Function(name, self.logic.sorts[kind], sort) if kind else z3.Const(name, sort)
        self.state = State(**words)
        self.axioms = list(self.logic.axioms)
        if "one-persist" in variant and few is None:
            self.axioms.append(self.logic.digests_differ())
        self.invariant = tuple(clause(self.logic, self.state, variant) for clause in CLAUSES.values())

    def sort(self, meant: str) -> z3.SortRef:
        """What a word, or what a step is about, is to z3."""
        return {"number": z3.IntSort(), "bool": z3.BoolSort(), **self.logic.sorts}[meant]

    def any_step(self, action: Action) -> Step:
        """The step, about anything."""
        about: list[Any] = []
        for number, kind in enumerate(action.about):
            if kind == "bools":
                about.append(z3.Function(f"answers_{number}", self.logic.sorts["slot"], z3.BoolSort()))
            else:
                about.append(z3.Const(f"the_{kind}_{number}", self.sort(kind)))
        guard, after = action.take(self.logic, self.state, self.variant, *about)
        return z3.BoolVal(guard) if isinstance(guard, bool) else guard, after

    def given(self, *more: z3.BoolRef) -> tuple[z3.BoolRef, ...]:
        """The invariant, and more."""
        return (*self.axioms, *self.invariant, *more)


def induction(symbolic: Symbolic) -> Iterator[Group]:
    """The invariant holds of a new store, and every step keeps every clause."""
    logic, variant = symbolic.logic, symbolic.variant
    new = start(logic, symbolic.state)
    clauses = {name: clause(logic, symbolic.state, variant) for name, clause in CLAUSES.items()}
    yield Group("start", (*symbolic.axioms, new), clauses, "one-persist" in variant)
    for action in steps_of(variant):
        guard, after = symbolic.any_step(action)
        kept = {name: clause(logic, after, variant) for name, clause in CLAUSES.items()}
        yield Group(action.name, symbolic.given(guard), kept, "one-persist" in variant)


def conclusion(symbolic: Symbolic, theorem: str) -> Iterator[Group]:
    """The theorem follows from the invariant."""
    logic, variant, witnessed = symbolic.logic, symbolic.variant, "one-persist" in symbolic.variant
    if theorem in STATE_THEOREMS:
        said = {theorem: STATE_THEOREMS[theorem](logic, symbolic.state, variant)}
        yield Group("any state", symbolic.given(), said, witnessed)
        return
    for action in steps_of(variant):
        guard, after = symbolic.any_step(action)
        said = {theorem: STEP_THEOREMS[theorem](logic, symbolic.state, after, variant)}
        yield Group(action.name, symbolic.given(guard), said, witnessed)


def prove(groups: Iterator[Group], *, twice: bool = True) -> Proof:
    """Ask both solvers. Every answer but `unsat` is a failure of the obligation, `unknown` and a time-out included."""
    count = 0
    failures: list[str] = []
    for group in groups:
        solver = z3.Solver()
        solver.set("timeout", MILLISECONDS)
        solver.add(*group.given)
        if not group.witnessed and (possible := solver.check()) != z3.sat:
            failures.append(f"{group.name}: what is given is {possible}")
        for name, wanted in group.wanted.items():
            count += 1
            word, solver_name = answers(group.given, z3.Not(wanted), twice=twice)
            if word != "unsat":
                failures.append(f"{group.name}: {name} is {word} ({solver_name})")
    return Proof(count, tuple(failures))


PROVED: dict[z3.ExprRef, list[tuple[z3.ExprRef, ...]]] = {}
"""What cannot be, and what of the given it was that both solvers needed to say so. Variants share most of it."""


def answers(given: Sequence[z3.BoolRef], denied: z3.BoolRef, *, twice: bool) -> tuple[str, str]:
    """The word of the solver that was asked last. The second one is shown what the first one needed, or all.

    The very same question, or one with more given, is not asked again.
    """
    known = {formula.get_id() for formula in given}
    if any(known.issuperset(formula.get_id() for formula in needed) for needed in PROVED.get(denied, ())):
        return "unsat", "both"
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    for number, formula in enumerate(given):
        solver.assert_and_track(formula, f"given_{number}")
    solver.add(denied)
    word = str(solver.check())
    if word != "unsat" or not twice:
        return word, "z3"
    needed = [given[int(str(name).removeprefix("given_"))] for name in solver.unsat_core()]
    word = second_word([*needed, denied])
    if word != "unsat":
        needed = list(given)
        word = second_word([*needed, denied])
    if word == "unsat":
        PROVED.setdefault(denied, []).append(tuple(needed))
    return word, "cvc5"


def invariant_is_inductive() -> Proof:
    """The protocol's invariant holds of a new store, and every step of saves, recovery, cache and crashes keeps it."""
    return prove(induction(Symbolic()))
