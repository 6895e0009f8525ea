"""Sampled schedules, for what is too large to visit: random walks, and schedules by priority. They find, never clear.

    random      at every state, any of its moves with equal chance
    priority    every thread has a random priority, and the highest that can move does; at d − 1 random moments the one
                that runs falls behind all others. A bug that takes d such orders is met with a chance of at least
                1 / (threads · length^(d − 1)) in each walk (PCT; Burckhardt et al., ASPLOS'10)

Every walk has a seed of its own, made of the seed that is given and the walk's number: the same walks every time.
A system's moves begin with the digit of the thread that makes them; a move that does not is nobody's (a crash and a
restart), and is taken now and then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .promises import Violation
from .search import Counterexample, Result, State, System, measured

Move = tuple[str, State, Violation | None]
NOBODYS_CHANCE = 0.02
LONGEST = 10_000


@dataclass
class Chooser:
    """Chooses the moves of one walk. With `depth` 0 at random, else by priorities that change `depth` − 1 times."""

    random: random.Random
    depth: int
    length: int

    def __post_init__(self) -> None:
        self.taken = 0
        self.priorities: dict[str, float] = {}
        self.changes = {self.random.randrange(1, self.length) for _ in range(self.depth - 1)}

    def choose(self, moves: Sequence[Move]) -> Move:
        """One of these moves."""
        self.taken += 1
        if self.depth == 0:
            return self.random.choice(moves)
        nobodys = [each for each in moves if not each[0][0].isdigit()]
        if nobodys and (len(nobodys) == len(moves) or self.random.random() < NOBODYS_CHANCE):
            return self.random.choice(nobodys)
        threads = sorted({each[0][0] for each in moves if each[0][0].isdigit()})
        for thread in threads:
            self.priorities.setdefault(thread, 1 + self.random.random())
        if self.taken in self.changes:
            self.fall_behind(max(threads, key=self.priorities.__getitem__))
        first = max(threads, key=self.priorities.__getitem__)
        return self.random.choice([each for each in moves if each[0][0] == first])

    def fall_behind(self, thread: str) -> None:
        """From now on this thread runs only when no other can."""
        self.priorities[thread] = -float(self.taken)


@measured
def random_walks(
    system: System,
    walks: int,
    seed: int,
    *,
    depth: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Walk from the start until nothing moves, judging every state on the way, this many times."""
    result = Result()
    visited: set[State] = set()
    length = 100
    for walk in range(walks):
        if progress is not None and walk % 64 == 0:
            progress(walk, walks - walk)
        chooser = Chooser(random.Random(f"{seed}/{walk}"), depth, length)
        start, moves, violation = _walk(system, chooser, visited)
        length = max(length, len(moves))
        result.transitions += len(moves)
        if violation is not None:
            result.counterexample = Counterexample(start, tuple(moves), violation)
            break
    result.states = len(visited)
    return result


def _walk(system: System, chooser: Chooser, visited: set[State]) -> tuple[str, list[str], Violation | None]:
    """One walk: where it began, its moves, and what broke at its end."""
    start, state = chooser.random.choice(system.initial())
    moves: list[str] = []
    violation: Violation | None = None
    passed: set[State] = set()
    for _ in range(LONGEST):
        key = system.canonical(state)
        if key not in visited:
            visited.add(key)
            violation = system.judge(state)
        if key in passed and moves:  # it waits for somebody: that one has to run
            chooser.fall_behind(moves[-1][0])
        passed.add(key)
        choices = list(system.moves(state)) if violation is None else []
        if not choices:
            break
        move, state, violation = chooser.choose(choices)
        moves.append(move)
        if violation is not None:
            break
    return start, moves, violation
