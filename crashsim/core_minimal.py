"""Nothing in a counterexample that it does not need: the fewest moves, then the fewest lost writes. Trusted.

    N1 moves     without any one of its moves the schedule is not possible, or breaks nothing
    N2 losses    with fewer writes lost at a power loss the same schedule breaks nothing; so not with any one of them
                 given back either

A breadth-first search already finds a shortest schedule, and this changes only what is lost at its end. A random walk's
schedule is shortened by leaving out ever smaller pieces of it, to a fixed point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .core_system import CoreSystem, State
from .medium import Operation
from .promises import Violation
from .replay import split_path
from .search import Counterexample


class Reached(NamedTuple):
    """Where a schedule leads, and the promise that is broken there or on the last move."""

    state: State
    moves: tuple[str, ...]
    violation: Violation | None


def walk(system: CoreSystem, start: str, moves: tuple[str, ...]) -> Reached | None:
    """Run a schedule up to the first move that breaks a promise, or judge its end; None when it is not possible."""
    state = dict(system.initial())[start]
    for number, move in enumerate(moves, 1):
        taken = next((each for each in system.moves(state) if each[0] == move), None)
        if taken is None:
            return None
        _, state, broken = taken
        if broken is not None:
            return Reached(state, moves[:number], broken)
    return Reached(state, moves, system.judge(state))


def minimised(system: CoreSystem, found: Counterexample) -> Counterexample:
    """The counterexample with nothing in it that could be left out; of the same promise and way of recovering."""
    digests = (found.violation.digests,) if found.violation.digests else system.digests
    promise = (found.violation.promise,)
    judging = CoreSystem(system.target, system.bounds, digests, promise)
    moves = _fewest_moves(judging, found)
    most = 0
    while True:
        fewer = CoreSystem(system.target, system.bounds, digests, promise, losses=most)
        reached = walk(fewer, found.start, moves)
        if reached is not None and reached.violation is not None:
            return Counterexample(found.start, reached.moves, reached.violation)
        most += 1


def lost_operations(system: CoreSystem, found: Counterexample) -> tuple[Operation, ...]:
    """The writes that are lost in any of its power losses, first crash first."""
    return tuple(operation for lost in losses(system, found) for operation in lost)


def losses(system: CoreSystem, found: Counterexample) -> list[tuple[Operation, ...]]:
    """What each of its crashes takes, first crash first. The schedule and the crashes must be possible."""
    state = dict(system.initial())[found.start]
    taken: list[tuple[Operation, ...]] = []
    for move in found.moves:
        if move[0] in "KP":
            taken += _lost_along(system, state[1], move, found.violation.digests)
        state = next(following for token, following, _ in system.moves(state) if token == move)
    return [*taken, *_lost_along(system, state[1], found.violation.crash, found.violation.digests)]


def _lost_along(system: CoreSystem, medium: int, path: str, digests: str) -> Iterator[tuple[Operation, ...]]:
    """What each crash of one path takes."""
    aftermath = next((each for each in system.aftermaths if each.digests == digests), system.aftermaths[0])
    for crash, during in split_path(path):
        if crash[0] == "P":
            outstanding = system.store.outstanding(medium)
            lost = system.store.power_losses(medium)[int(crash[1:])][1]
            yield tuple(outstanding[index] for index in lost)
        medium = aftermath.recovery.left_by(dict(aftermath.crashes(medium))[crash], during)


def again(system: CoreSystem, wanted: Counterexample, reached: State) -> Violation | None:
    """What a counterexample that was written down comes to: by its own crash if that still breaks the promise, else by any.

    Its crash is the one that a search finds which lets a power loss take no more than it does (N2).
    """
    try:
        most = max((len(lost) for lost in losses(system, wanted)), default=0)
    except (KeyError, IndexError):  # a crash that is not possible any more
        return system.judge(reached)
    fewer = CoreSystem(system.target, system.bounds, system.digests, tuple(system.promises), losses=most)
    ended = walk(fewer, wanted.start, wanted.moves)
    return ended.violation if ended is not None and ended.violation is not None else system.judge(reached)


def _fewest_moves(system: CoreSystem, found: Counterexample) -> tuple[str, ...]:
    """Leave out ever smaller pieces of the schedule while what is left still breaks the promise (N1)."""
    moves = found.moves
    size = max(1, len(moves) // 2)
    while size:
        position = 0
        while position < len(moves):
            shorter = moves[:position] + moves[position + size :]
            reached = walk(system, found.start, shorter)
            if reached is not None and reached.violation is not None:
                moves = reached.moves
                size = max(1, min(size, len(moves) // 2))
                position = 0
            else:
                position += 1
        size //= 2
    return moves
