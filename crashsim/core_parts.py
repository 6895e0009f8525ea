"""A search of the core's protocol in parts, for any executor of `concurrent.futures`: threads, processes, a cluster.

A state is a row of numbers, and each process numbers what it meets in its own order. So a part travels with the things
that its numbers stand for, each once:

    Part(words, media, ghosts, savers, rows)       a saver is the answers that its program was given, and its chunks

A worker keeps what it has worked out from one part to the next, as long as its process lives. Where a crashed process
starts again, moves into its next life are counted once for each state, not once for each medium; states are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

from .bounds import Bounds
from .core_driver import Saver
from .core_system import CoreSystem
from .core_target import Target
from .promises import Violation
from .search import State
from .spread import Answer


class Problem(NamedTuple):
    """What is searched: enough to make it again in another process."""

    program: str
    bounds: Bounds
    digests: tuple[str, ...]
    promises: tuple[str, ...]
    target_named: Callable[[str, str], Target]
    """A function of some module, which makes the target from the program's name and the medium's."""

    def system(self) -> CoreSystem:
        """A system of its own."""
        target = self.target_named(self.program, self.bounds.medium)
        return CoreSystem(target, self.bounds, self.digests, self.promises)


class Part(NamedTuple):
    """States that can travel."""

    words: list[Any]
    media: list[Any]
    ghosts: list[Any]
    savers: list[tuple[tuple[int, ...], int]]
    rows: list[State]


class Luggage:
    """States of one system on their way out: each thing is packed once."""

    def __init__(self, system: CoreSystem) -> None:
        self.system = system
        self._numbers: tuple[dict[int, int], ...] = ({}, {}, {}, {})
        self.rows: list[State] = []

    def add(self, state: State) -> int:
        """Pack a state; which row it is."""
        row = [self._number(min(place, 3), each) for place, each in enumerate(state)]
        self.rows.append(tuple(row))
        return len(self.rows) - 1

    def _number(self, kind: int, number: int) -> int:
        known = self._numbers[kind]
        return known.setdefault(number, len(known))

    def packed(self) -> Part:
        """All of it."""
        system = self.system
        words, media, ghosts, savers = (list(each) for each in self._numbers)
        return Part(
            [system.driver.cells.values[each] for each in words],
            [system.store.states[each] for each in media],
            [system.ghosts.values[each] for each in ghosts],
            [(saver.node.history, saver.written) for saver in map(system.driver.savers.values.__getitem__, savers)],
            self.rows,
        )


def unpacked(part: Part, system: CoreSystem) -> Iterator[State]:
    """The states of a part, in this system's own numbers."""
    words = [system.driver.cells.number(each) for each in part.words]
    media = [system.store.number(each) for each in part.media]
    ghosts = [system.ghosts.number(each) for each in part.ghosts]
    savers = []
    for history, written in part.savers:
        node = system.driver.program.first
        for answer in history:
            node = system.driver.program.after(node, answer)
        savers.append(system.driver.savers.number(Saver(node, written)))
    for row in part.rows:
        yield (words[row[0]], media[row[1]], ghosts[row[2]], *(savers[each] for each in row[3:]))


Told = list[tuple[Violation | None, list[tuple[str, int, Violation | None]]]]
"""For each state of a part: what is broken there, and its moves, each to a row of the part that comes back."""


@functools.lru_cache(maxsize=2)
def _system(problem: Problem) -> CoreSystem:
    return problem.system()


def work(problem: Problem, part: Part) -> tuple[Told, Part, list[int]]:
    """What a worker does: judge each state of a part, and list its moves. Last, how many images each medium has."""
    system = _system(problem)
    luggage = Luggage(system)
    told: Told = []
    for state in unpacked(part, system):
        moves = [(move, luggage.add(following), broken) for move, following, broken in system.moves(state)]
        told.append((system.judge(state), moves))
    images = [len(system.store.power_losses(system.store.number(medium))) for medium in part.media]
    return told, luggage.packed(), images


class Spread:
    """Hands the states of one system to an executor's workers, so many parts at a time."""

    def __init__(self, executor: Executor, problem: Problem, parts: int) -> None:
        self.executor = executor
        self.problem = problem
        self.parts = parts
        self.system = problem.system()
        self.images: dict[int, int] = {}

    def ask(self, states: Sequence[State]) -> Iterable[Answer]:
        """What the workers say of each state, in this order."""
        size = max(1, -(-len(states) // self.parts))
        waiting = []
        for start in range(0, len(states), size):
            luggage = Luggage(self.system)
            for state in states[start : start + size]:
                luggage.add(state)
            going = luggage.packed()
            waiting.append((going.media, self.executor.submit(work, self.problem, going)))
        for media, each in waiting:
            told, part, images = each.result()
            self.images.update(zip(map(self.system.store.number, media), images, strict=True))
            following = list(unpacked(part, self.system))
            for judged, moves in told:
                yield Answer(judged, [(move, following[row], broken) for move, row, broken in moves])
