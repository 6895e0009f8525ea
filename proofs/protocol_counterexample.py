"""Why the proof fails when a mistake is made: a state in which the invariant holds and from which a step breaks it.

The same formulas, for three slots, two savers and two cells, so that z3 can show the state. Such a state need not be
one that a store can reach; whether a mistake really breaks a promise is decided by its trace, replayed in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import z3

from .logic import Few
from .protocol.state import GLOBALS, IDLE, OF, Variant
from .protocol_proof import MILLISECONDS, Symbolic, conclusion, induction

SHOWN = {
    "kind": ("free", "held", "owned", "carried", "doubtful", "rewritten", "emptied again"),
    "phase": ("stopped", "surveyed", "running"),
    "marked": ("absent", "durable", "under way"),
    "place": (
        *("idle", "loaded", "counted", "emptying", "emptied", "acquired", "filling", "filled", "persisted", "recorded"),
        *("durable", "marking", "mark written", "mark persisted", "unmarked", "marked", "acknowledged", "carrying"),
    ),
}
"""Numbers that stand for something, in words."""
UNSHOWN = ("cached_pointer", "cached_pointer_slot", "medium_pointer", "medium_pointer_slot", "mark_again", "marker")


@dataclass(frozen=True)
class Counterexample:
    """A step from a state where all is well, and the clause or theorem that does not hold afterwards."""

    step: str
    breaks: str
    state: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.step} breaks {self.breaks} from {'; '.join(self.state)}"


def counterexample(variant: Variant, theorem: str) -> Counterexample | None:
    """A state that breaks the induction when these mistakes are made, or the theorem; None when there is none."""
    symbolic = Symbolic(variant, Few(slot=3, saver=2, cell=2))
    for group in chain(induction(symbolic), conclusion(symbolic, theorem)):
        solver = z3.Solver()
        solver.set("timeout", MILLISECONDS)
        solver.add(*group.given, z3.Not(z3.And(*group.wanted.values())))
        if solver.check() == z3.sat:
            model = solver.model()
            breaks = [name for name, wanted in group.wanted.items() if not z3.is_true(model.eval(wanted, True))]
            return Counterexample(group.name, ", ".join(breaks), tuple(readable(symbolic, model)))
    return None


def readable(symbolic: Symbolic, model: z3.ModelRef) -> Iterator[str]:
    """A state in words: what there is once, then each cell, slot and saver."""
    state = symbolic.state
    assert isinstance(symbolic.logic, Few)

    def value(name: str, *which: Any) -> str:
        holder = getattr(state, name)
        said = str(model.eval(holder(*which) if which else holder, True))
        return (
            SHOWN[name][int(said)]
            if name in SHOWN
            else said.replace("_", " ").replace("True", "yes").replace("False", "no")
        )

    def words(names: tuple[str, ...], *which: Any) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value(name, *which)}" for name in names if name not in UNSHOWN)

    yield words(GLOBALS)
    for kind, names in OF.items():
        for which in symbolic.logic.members[kind]:
            idle = kind == "saver" and value("place", which) == SHOWN["place"][IDLE]
            yield f"{str(which).replace('_', ' ')}: {'idle' if idle else words(names, which)}"
