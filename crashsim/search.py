"""Breadth-first search, with a visited set, over any system of states and moves. Trusted.

A system says where it starts, which moves each state allows, which states count as the same, and judges a state.
Breadth first means that the first counterexample has as few moves as any: nothing needs to be shrunk.

    Clean and exhaustive   every reachable state within the bounds was visited and judged
    Clean, not exhaustive  the limit on states or time came first: a sample, and the verdict says so
    Violated               the shortest way there

`random_walks` samples schedules where the whole is too large; it finds, it never clears.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from .promises import Violation

State = tuple[int, ...]


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
    depth: int = field(default=0)


def breadth_first(
    system: System,
    *,
    state_limit: int | None = None,
    second_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Visit every state, nearest first, until one is broken or a limit is met."""
    began = time.perf_counter()
    result = Result()
    states: list[State] = []
    came_from: list[tuple[int, str]] = []
    visited: set[State] = set()

    def finish(parent: int, last: tuple[str, ...], violation: Violation | None) -> Result:
        if violation is not None:
            start, moves = _path(came_from, parent)
            result.counterexample = Counterexample(start, (*moves, *last), violation)
        result.states = len(states)
        result.seconds = time.perf_counter() - began
        return result

    for name, state in system.initial():
        visited.add(system.canonical(state))
        states.append(state)
        came_from.append((-1, name))
        violation = system.judge(state)
        if violation is not None:
            return finish(len(states) - 1, (), violation)
    position = 0
    while position < len(states):
        if position % 4096 == 0:
            if progress is not None:
                progress(len(states), len(states) - position)
            if second_limit is not None and time.perf_counter() - began > second_limit:
                return finish(position, (), None)
        for move, following, broken in system.moves(states[position]):
            result.transitions += 1
            if broken is not None:
                return finish(position, (move,), broken)
            key = system.canonical(following)
            if key in visited:
                continue
            if state_limit is not None and len(states) >= state_limit:
                return finish(position, (), None)
            visited.add(key)
            states.append(following)
            came_from.append((position, move))
            violation = system.judge(following)
            if violation is not None:
                return finish(len(states) - 1, (), violation)
        position += 1
    result.exhaustive = True
    return finish(0, (), None)


def _path(came_from: list[tuple[int, str]], index: int) -> tuple[str, tuple[str, ...]]:
    """The initial state's name, and the moves from it to the state with this index."""
    moves = []
    while came_from[index][0] >= 0:
        index, move = came_from[index]
        moves.append(move)
    return came_from[index][1], tuple(reversed(moves))


def random_walks(
    system: System, walks: int, seed: int, *, progress: Callable[[int, int], None] | None = None, length: int = 10_000
) -> Result:
    """Walk at random from the start until nothing moves, judging every state on the way, this many times."""
    began = time.perf_counter()
    result = Result()
    choose = random.Random(seed)
    visited: set[State] = set()
    for walk in range(walks):
        if progress is not None and walk % 64 == 0:
            progress(walk, walks - walk)
        name, state = choose.choice(system.initial())
        moves: list[str] = []
        for _ in range(length):
            violation = None
            key = system.canonical(state)
            if key not in visited:
                visited.add(key)
                violation = system.judge(state)
            if violation is None:
                choices = list(system.moves(state))
                if not choices:
                    break
                move, state, violation = choose.choice(choices)
                moves.append(move)
                result.transitions += 1
            if violation is not None:
                result.counterexample = Counterexample(name, tuple(moves), violation)
                break
        if result.counterexample is not None:
            break
    result.states = len(visited)
    result.seconds = time.perf_counter() - began
    return result
