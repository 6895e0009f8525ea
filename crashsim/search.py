"""Breadth-first search, with a visited set, over any system of states and moves. Trusted.

A system says where it starts, which moves each state allows, which states count as the same, and judges a state.
Breadth first means that the first counterexample has as few moves as any: nothing needs to be shrunk.

    Clean and exhaustive   every reachable state within the bounds was visited and judged
    Clean, not exhaustive  the limit on states or time came first: a sample, and the verdict says so
    Violated               the shortest way there

`spread` does the same over many processes; `walks` samples schedules where the whole is too large.
"""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ParamSpec, Protocol

from .promises import Violation

State = tuple[int, ...]
Asked = ParamSpec("Asked")


class System(Protocol):
    """What can be searched."""

    def initial(self) -> list[tuple[str, State]]:
        """Where it may start, each with a name."""

    def moves(self, state: State) -> Iterable[tuple[str, State, Violation | None]]:
        """Every move: how it is written down, where it leads, the promise it breaks if any."""

    def canonical(self, state: State) -> State:
        """The state that stands for all that behave like this one."""

    def judge(self, state: State) -> Violation | None:
        """The promise that is broken if the machine stops here, if any."""


@dataclass(frozen=True)
class Counterexample:
    """A way to a broken promise: the initial state's name, the moves from there, and what broke."""

    start: str
    moves: tuple[str, ...]
    violation: Violation


@dataclass
class Result:
    """What a search came to."""

    states: int = 0
    transitions: int = 0
    seconds: float = 0.0
    exhaustive: bool = False
    counterexample: Counterexample | None = None


class Known:
    """The states that were found, in order, and how: enough to tell the way to each."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.states: list[State] = []
        self.transitions = 0
        self._visited: set[State] = set()
        self._parents: list[int] = []
        self._moves: list[str] = []

    def add(self, state: State, parent: int, move: str) -> bool:
        """Whether this state is new; then it is known from now on, by the move from its parent that led there."""
        key = self.system.canonical(state)
        if key in self._visited:
            return False
        self._visited.add(key)
        self.states.append(key if key == state else state)
        self._parents.append(parent)
        self._moves.append(move)
        return True

    def counterexample(self, index: int, last: tuple[str, ...], violation: Violation) -> Counterexample:
        """The way to the state with this number, and on by these moves."""
        moves = []
        while self._parents[index] >= 0:
            moves.append(self._moves[index])
            index = self._parents[index]
        return Counterexample(self._moves[index], (*reversed(moves), *last), violation)


def measured(search: Callable[Asked, Result]) -> Callable[Asked, Result]:
    """Run a search without the collector of cycles, and say how long it took.

    A search keeps all that it makes, and none of it goes in circles: the collector would walk it again and again, and
    find nothing. What it makes up for at the end is part of the time.
    """

    @functools.wraps(search)
    def run(*arguments: Asked.args, **named: Asked.kwargs) -> Result:
        began = time.perf_counter()
        enabled = gc.isenabled()
        gc.disable()
        try:
            result = search(*arguments, **named)
        finally:
            if enabled:
                gc.enable()
        result.seconds = time.perf_counter() - began
        return result

    return run


@measured
def breadth_first(
    system: System,
    *,
    state_limit: int | None = None,
    second_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Visit every state, nearest first, until one is broken or a limit is met."""
    began = time.perf_counter()
    known = Known(system)
    states = known.states

    def finish(found: Counterexample | None, *, exhaustive: bool = False) -> Result:
        return Result(len(states), known.transitions, exhaustive=exhaustive, counterexample=found)

    for name, state in system.initial():
        known.add(state, -1, name)
        violation = system.judge(state)
        if violation is not None:
            return finish(known.counterexample(len(states) - 1, (), violation))
    for position, state in enumerate(states):  # which grows on the way
        if position % 4096 == 0:
            if progress is not None:
                progress(len(states), len(states) - position)
            if second_limit is not None and time.perf_counter() - began > second_limit:
                return finish(None)
        for move, following, broken in system.moves(state):
            known.transitions += 1
            if broken is not None:
                return finish(known.counterexample(position, (move,), broken))
            if known.add(following, position, move):
                violation = system.judge(following)
                if violation is not None:
                    return finish(known.counterexample(len(states) - 1, (), violation))
                if len(states) == state_limit:
                    return finish(None)
    return finish(None, exhaustive=True)
