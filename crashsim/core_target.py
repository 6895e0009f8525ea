"""Where the explorer is aimed at the core: the real save and recovery programs over plain single-threaded primitives.

The only module here that imports `core`. A `Target` holds the programs' code objects, rebound: the same code, with
`load`, `compare_swap` and `fetch_add` taken from the explorer in place of the processor's. What the core calls its
steps, cells and decisions is used under the same names.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lastgood.core import cells, recover, rules, save, steps

from .mutants import SLOT_ONLY, Mutant
from .programs import Call, Program

PRIMITIVES = ("load", "compare_swap", "fetch_add")

CompareSwap = Callable[[int, int, int], tuple[int, int]]
"""`(found, seen, wanted) -> (left behind, answer)`."""


def whole_word_compare_swap(found: int, seen: int, wanted: int) -> tuple[int, int]:
    """The real one: swapped exactly when the whole word is the one that was seen."""
    return (wanted if found == seen else found), found


def slot_only_compare_swap(found: int, seen: int, wanted: int) -> tuple[int, int]:
    """The published listing's: an address is compared, so another checkpoint in the same slot passes for the one seen.

    "No checkpoint" is the null address. Slot sets are compared whole: every bit of theirs lies in the slot's part.
    """
    same = rules.slot_of(found) == rules.slot_of(seen) and (found == 0) == (seen == 0)
    return (wanted, seen) if same else (found, found)


@dataclass(frozen=True)
class Target:
    """The programs to explore, the one primitive that a mutant may change, and what its writers do."""

    name: str
    save: Callable[..., Iterator[int]]
    survey: Callable[..., Iterator[int]]
    make_ready: Callable[..., Iterator[int]]
    compare_swap: CompareSwap = whole_word_compare_swap
    writers_persist: bool = True
    """Whether each writer persists what it stored itself, where the medium asks for that."""

    def saver(self, words: int, keep: int, one_persist: int) -> Program:
        """The save program as an automaton."""

        def build(call: Call) -> tuple[Iterator[int], list[int]]:
            mine = [0] * cells.MINE_COUNT
            primitives = {name: _passed_to(call, name) for name in PRIMITIVES}
            program = rebound(self.save, primitives)
            return program(None, mine, words, keep, one_persist), mine

        return Program(
            build,
            quiet=frozenset({steps.STEP, steps.ACQUIRED}),
            noted=frozenset({steps.ACKNOWLEDGE}),
            status_word=cells.STATUS,
        )


def _passed_to(call: Call, name: str) -> Callable[..., int]:
    """A primitive that hands its name and arguments, without the array, to the explorer."""

    def primitive(array: Any, *arguments: int) -> int:
        return call(name, *arguments)

    return primitive


def rebound(program: Any, names: dict[str, Any]) -> Callable[..., Iterator[int]]:
    """The same code object over other globals; a compiled function is unwrapped first."""
    plain = getattr(program, "py_func", program)
    return types.FunctionType(plain.__code__, {**plain.__globals__, **names}, plain.__name__)


def edited(program: Any, edits: Sequence[tuple[str, str]]) -> Callable[..., Iterator[int]]:
    """The program with each text replaced, which must occur exactly once, compiled in its own module's namespace."""
    plain = getattr(program, "py_func", program)
    source = inspect.getsource(plain)
    for old, new in edits:
        assert source.count(old) == 1, f"{plain.__name__}: this text occurs {source.count(old)} times, not once:\n{old}"
        source = source.replace(old, new)
    namespace = dict(plain.__globals__)
    code = compile("from __future__ import annotations\n" + source, f"<{plain.__name__}, edited>", "exec")
    exec(code, namespace)
    made: Callable[..., Iterator[int]] = namespace[plain.__name__]
    return made


def real_target() -> Target:
    """The programs as they are."""
    return Target("real", save.save, recover.survey, recover.make_ready)


def mutant_target(mutant: Mutant, medium: str = "") -> Target:
    """The programs with one mutant's changes, which on some media may be no change."""
    if medium in mutant.unless:
        return real_target()
    return Target(
        mutant.name,
        edited(save.save, mutant.save),
        edited(recover.survey, mutant.survey),
        edited(recover.make_ready, mutant.make_ready),
        slot_only_compare_swap if mutant.compare_swap == SLOT_ONLY else whole_word_compare_swap,
        mutant.writers_persist,
    )


__all__ = ["Target", "cells", "edited", "mutant_target", "real_target", "rebound", "recover", "rules", "save", "steps"]
