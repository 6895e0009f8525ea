"""The protocol, proved: z3 shows that the invariant is inductive and that the theorems follow, for any number of slots.

Slots and savers are of sorts that z3 knows nothing about, and every word of the state is a constant or a function of one
of them. An *obligation* is one clause after one step, or at the start, or one theorem: z3 is asked for a state in which
the invariant holds, the step can be taken, and the clause fails afterwards; there must be none. For each step it is also
asked for a state in which the step can be taken, and there must be one: nothing is proved of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import z3

from .logic import Symbols
from .protocol import Action, State, Step, start
from .protocol_invariant import CLAUSES
from .protocol_steps import STEPS
from .protocol_theorems import STATE_THEOREMS, STEP_THEOREMS

MILLISECONDS = 20_000
"""For one question; the slowest takes a hundredth of it."""


@dataclass(frozen=True)
class Group:
    """Obligations that share what is given: that, and what must follow, by name."""

    name: str
    given: tuple[z3.BoolRef, ...]
    wanted: dict[str, z3.BoolRef]


@dataclass(frozen=True)
class Proof:
    """What z3 said: how many obligations it was asked, and each that is not proved."""

    obligations: int
    failures: tuple[str, ...]


class Symbolic:
    """Any state of the protocol, in z3's terms, and any step from it."""

    def __init__(self, wrong: frozenset[str] = frozenset()) -> None:
        """Name every word; `wrong` are the mistakes that are made."""
        self.logic = Symbols()
        self.wrong = wrong
        sorts = {"slot": self.logic.slot_sort, "saver": self.logic.saver_sort}
        words: dict[str, Any] = {}
        for each in fields(State):
            of, meant = each.metadata.get("of"), each.metadata.get("is")
            if each.name in ("root_slot", "witness"):
                meant = "slot"
            sort = z3.BoolSort() if each.metadata.get("bool") else sorts.get(meant, z3.IntSort())
            words[each.name] = z3.Function(each.name, sorts[of], sort) if of else z3.Const(each.name, sort)
        self.state = State(**words)
        self.invariant = tuple(clause(self.logic, self.state) for clause in CLAUSES.values())

    def any_step(self, action: Action) -> Step:
        """The step, about anything."""
        about: list[Any] = []
        for number, kind in enumerate(action.about):
            if kind == "bool":
                about.append(z3.Bool(f"answer{number}"))
            elif kind == "bools":
                about.append(z3.Function(f"answers{number}", self.logic.slot_sort, z3.BoolSort()))
            else:
                sort = self.logic.slot_sort if kind == "slot" else self.logic.saver_sort
                about.append(z3.Const(f"the_{kind}", sort))
        return action.take(self.logic, self.state, self.wrong, *about)


def induction(symbolic: Symbolic) -> Iterator[Group]:
    """The invariant holds of a new store, and every step keeps every clause."""
    logic = symbolic.logic
    new = start(logic, symbolic.state)
    yield Group("start", (new,), {name: clause(logic, symbolic.state) for name, clause in CLAUSES.items()})
    for action in STEPS:
        guard, after = symbolic.any_step(action)
        given = (*symbolic.invariant, z3.BoolVal(guard) if isinstance(guard, bool) else guard)
        yield Group(action.name, given, {name: clause(logic, after) for name, clause in CLAUSES.items()})


def conclusion(symbolic: Symbolic, theorem: str) -> Iterator[Group]:
    """The theorem follows from the invariant."""
    logic = symbolic.logic
    if theorem in STATE_THEOREMS:
        yield Group("any state", symbolic.invariant, {theorem: STATE_THEOREMS[theorem](logic, symbolic.state)})
        return
    for action in STEPS:
        guard, after = symbolic.any_step(action)
        given = (*symbolic.invariant, z3.BoolVal(guard) if isinstance(guard, bool) else guard)
        yield Group(action.name, given, {theorem: STEP_THEOREMS[theorem](logic, symbolic.state, after)})


def prove(groups: Iterator[Group], *, to_the_end: bool = True) -> Proof:
    """Ask z3. Every answer but `unsat` is a failure of the obligation, `unknown` and a time-out included."""
    count = 0
    failures: list[str] = []
    for group in groups:
        solver = z3.Solver()
        solver.set("timeout", MILLISECONDS)
        solver.add(*group.given)
        possible = solver.check()
        if possible != z3.sat:
            failures.append(f"{group.name}: what is given is {possible}")
        for name, wanted in group.wanted.items():
            if failures and not to_the_end:
                return Proof(count, tuple(failures))
            count += 1
            solver.push()
            solver.add(z3.Not(wanted))
            word = solver.check()
            if word != z3.unsat:
                failures.append(f"{group.name}: {name} is {word}")
            solver.pop()
    return Proof(count, tuple(failures))


def invariant_is_inductive() -> Proof:
    """The protocol's invariant holds of a new store, and every step of saves, recovery, cache and crashes keeps it."""
    return prove(induction(Symbolic()))
