"""The same breadth-first search, level by level, with the work spread over other processes. Trusted.

    search ── a level's states, in parts ──> workers:  judge each, list its moves
       ^                                        │
       └──── keeps what is known, in order <────┘

Whoever searches alone and whoever spreads it come to the same verdict and the same counts: what the workers answer is
taken in the order in which one process would have found it.

`Ask` hands parts to workers and returns their answers in the same order; `core_parts` makes one from any executor of
`concurrent.futures`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .promises import Violation
from .search import Counterexample, Known, Result, State, System, measured


class Answer(NamedTuple):
    """What a worker says of one state: what breaks if the machine stops there, and its moves."""

    judged: Violation | None
    moves: Sequence[tuple[str, State, Violation | None]]


Ask = Callable[[Sequence[State]], Iterable[Answer]]


@measured
def spread_breadth_first(
    system: System,
    ask: Ask,
    *,
    second_limit: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Visit every state, nearest first, until one is broken or the time is over. `system` tells only states apart."""
    began = time.perf_counter()
    known = Known(system)
    found_after: list[int] = []  # for each state: how many moves had been made when it was found

    def finish(states: int, transitions: int, found: Counterexample | None, *, exhaustive: bool = False) -> Result:
        return Result(states, transitions, exhaustive=exhaustive, counterexample=found)

    for name, state in system.initial():
        known.add(state, -1, name)
        found_after.append(0)
    level = 0
    while level < len(known.states):
        end = len(known.states)
        if progress is not None:
            progress(end, end - level)
        if second_limit is not None and time.perf_counter() - began > second_limit:
            return finish(end, known.transitions, None)
        answers = list(ask(known.states[level:end]))
        for position, answer in enumerate(answers, level):
            if answer.judged is not None:
                found = known.counterexample(position, (), answer.judged)
                return finish(position + 1, found_after[position], found)
        for position, answer in enumerate(answers, level):
            for move, following, violation in answer.moves:
                known.transitions += 1
                if violation is not None:  # unless a state that was found before it is broken too
                    for new, later in enumerate(ask(known.states[end:]), end):
                        if later.judged is not None:
                            return finish(new + 1, found_after[new], known.counterexample(new, (), later.judged))
                    found = known.counterexample(position, (move,), violation)
                    return finish(len(known.states), known.transitions, found)
                if known.add(following, position, move):
                    found_after.append(known.transitions)
        level = end
    return finish(len(known.states), known.transitions, None, exhaustive=True)
