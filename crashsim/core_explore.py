"""Explore the core's protocol, or a mutant of it, within bounds; and replay a counterexample. Behind `lastgood explore`.

`explore` searches breadth first (or samples) and judges every state; its report says what was covered. `replay` runs the
moves of one string and judges where they lead.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

from .bounds import Bounds
from .core_lazy import LazySystem
from .core_minimal import again, lost_operations, minimised
from .core_parts import Problem, Spread
from .core_recovery import IGNORED, TRUSTED
from .core_scene import scene
from .core_story import verdict
from .core_surgery import cuts
from .core_system import CoreSystem
from .core_target import Target, mutant_target, real_target
from .mutants import EQUIVALENT, MUTANTS
from .picture_text import plain
from .promises import PROMISES
from .replay import BadReplay, Replay, encode
from .scene import Scene
from .search import Counterexample, Result, breadth_first
from .spread import spread_breadth_first
from .walks import random_walks

DIGESTS = {"trusted": (TRUSTED,), "ignored": (IGNORED,), "both": (TRUSTED, IGNORED)}
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Report:
    """What an exploration came to."""

    program: str
    bounds: Bounds
    digests: tuple[str, ...]
    promises: tuple[str, ...]
    result: Result
    images: int
    sentence: str = ""
    lines: list[str] = field(default_factory=list)
    replay: str = ""
    scene: Scene | None = None
    lost_writes: int = 0

    def as_json(self) -> dict[str, Any]:
        """One object that says the same."""
        found = self.result.counterexample
        return {
            "verdict": "violated" if found else "clean",
            "program": self.program,
            "promise": found.violation.promise if found else None,
            "sentence": self.sentence or None,
            "promises": list(self.promises),
            "exhaustive": self.result.exhaustive,
            "states": self.result.states,
            "transitions": self.result.transitions,
            "images": self.images,
            "seconds": round(self.result.seconds, 3),
            "bounds": {**self.bounds._asdict(), "slots": self.bounds.slots, "chunks": self.bounds.chunks},
            "digests": list(self.digests),
            "missing_edge": self.scene.edge.sentence if self.scene and self.scene.edge else None,
            "lost_writes": self.lost_writes if found else None,
            "replay": self.replay or None,
        }


def target_named(program: str, medium: str) -> Target:
    """The real programs, or a mutant's on this medium."""
    if program == "real":
        return real_target()
    return mutant_target(MUTANTS[program] if program in MUTANTS else cuts()[program], medium)


def is_known(program: str) -> bool:
    """Whether there is a program of this name."""
    return program == "real" or program in MUTANTS or program in cuts()


def promises_of(program: str, digests: tuple[str, ...]) -> tuple[str, ...]:
    """What to judge when nobody says: every promise for the real programs, for a mutant those that it is known to break.

    A mutant may break one promise on the way to another; its table names the one that a user would feel.
    """
    if program not in MUTANTS:
        return tuple(PROMISES)
    mutant = MUTANTS[program]
    named = {getattr(mutant, each) for each in digests} - {EQUIVALENT}
    return tuple(each for each in PROMISES if each in named) or tuple(PROMISES)


def explore(
    program: str,
    bounds: Bounds,
    digests: tuple[str, ...],
    promises: tuple[str, ...],
    *,
    walks: int = 0,
    seed: int = 0,
    depth: int = 0,
    executor: Executor | None = None,
    parts: int = 16,
    put_off: bool = False,
    second_limit: float | None = None,
    progress: Progress | None = None,
) -> Report:
    """Search within the bounds, or take random walks, and report.

    Walks go by priorities when `depth` is not 0 (`walks`). An `executor` of `concurrent.futures`, or one that a cluster
    offers, is handed each level of the search in so many parts; verdict and counts are those of one process. With
    `put_off`, steps that nobody else can notice are put off (`core_lazy`): fewer states, which stand for the others.
    """
    if executor is not None and not walks:
        spread = Spread(executor, Problem(program, bounds, digests, promises, target_named), parts)
        system = spread.system
        result = spread_breadth_first(system, spread.ask, second_limit=second_limit, progress=progress)
        images = sum(spread.images.values())
    else:
        system = CoreSystem(target_named(program, bounds.medium), bounds, digests, promises, restart_once=not walks)
        if walks:
            result = random_walks(system, walks, seed, depth=depth, progress=progress)
        elif put_off:
            lazy = LazySystem(system)
            result = breadth_first(lazy, second_limit=second_limit, progress=progress)
            result.counterexample = result.counterexample and lazy.told(result.counterexample)
        else:
            result = breadth_first(system, second_limit=second_limit, progress=progress)
        images = system.images()
    if result.counterexample is not None:
        result.counterexample = minimised(system, result.counterexample)
    return _report(program, system, result, images)


def replay(wanted: Replay) -> Report:
    """Run the moves of a counterexample, and judge where they lead. Raises BadReplay when they cannot be run."""
    if not is_known(wanted.program):
        raise BadReplay(f"this replay string is of a mutant that is not known: {wanted.program}")
    found = wanted.counterexample
    digests = (found.violation.digests,) if found.violation.digests else (TRUSTED, IGNORED)
    system = CoreSystem(
        target_named(wanted.program, wanted.bounds.medium), wanted.bounds, digests, (found.violation.promise,)
    )
    state = dict(system.initial())[found.start]
    violation = None
    for number, move in enumerate(found.moves, 1):
        choices = {token: (after, broken) for token, after, broken in system.moves(state)}
        if move not in choices:
            raise BadReplay(f"move {number} ({move}) of this replay string is not possible: the program has changed")
        state, violation = choices[move]
        if violation is not None:
            break
    violation = violation or again(system, found, state)
    result = Result(states=len(found.moves) + 1)
    if violation is not None:
        result.counterexample = Counterexample(found.start, found.moves, violation)
    return _report(wanted.program, system, result, system.images())


def _report(program: str, system: CoreSystem, result: Result, images: int) -> Report:
    found = result.counterexample
    promises = tuple(each for each in PROMISES if each in system.promises)
    report = Report(program, system.bounds, system.digests, promises, result, images)
    if found is None:
        return report
    string = encode(Replay(program, system.bounds, found))
    fresh = CoreSystem(system.target, system.bounds, system.digests, promises)
    drawn = scene(fresh, program, found)
    lost = len(lost_operations(fresh, found))
    return replace(
        report,
        sentence=verdict(found),
        lines=plain(drawn),
        replay=string,
        scene=drawn,
        lost_writes=lost,
    )
