"""Every mutant on every medium: killed, with its smallest counterexample, or equivalent, by an exhaustive search.

A mutant is judged in each way of recovering: with the payload digests trusted, and with them ignored. What a user would
feel is looked for first (the promise that stands with the mutant), then any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from functools import cache, partial
from typing import Any

from .bounds import Bounds
from .core_edge import missing_edge
from .core_explore import Report, explore, promises_of, target_named
from .core_minimal import lost_operations
from .core_surgery import SABOTEUR, cuts
from .core_system import CoreSystem
from .media import MEDIA
from .mutant_table import EQUIVALENT, KILLED, SURVIVED, Cell
from .mutants import MUTANTS
from .promises import PROMISES
from .replay import decode

BOTH = ("trusted", "ignored")

LADDER = (
    Bounds(saves=2),
    Bounds(savers=1, saves=3, faults=1),
    Bounds(saves=3),
    Bounds(saves=2, faults=1),
    Bounds(savers=1, saves=3, faults=2),
    Bounds(saves=3, keep=2),
)
"""The bounds that a cut made by a machine is searched within, until one of them kills it."""


def cells_of(mutant: str, medium: str, *, second_limit: float | None = None) -> Iterator[Cell]:
    """The cells of one mutant on one medium, one a way of recovering; none where nothing is claimed."""
    if mutant in MUTANTS:
        for way in ways_of(mutant, medium, fails=claims_failures(medium)):
            yield _cell(mutant, medium, way, second_limit)
    else:
        yield _cut_cell(mutant, medium, second_limit)


def ways_of(mutant: str, medium: str, *, fails: bool) -> tuple[str, ...]:
    """The ways of recovering in which it is judged here; `fails`: whether anything is claimed about steps that fail."""
    if mutant not in MUTANTS:
        return ("both",)
    claimed = MUTANTS[mutant].bounds.faults == 0 or fails
    return tuple(way for way in MUTANTS[mutant].ways if claimed and way in claimed_ways(medium))


@cache
def claims_failures(medium: str) -> bool:
    """Whether the real protocol holds here when a step fails; a mutant could not be blamed for what it breaks itself."""
    bounds = Bounds(saves=2, faults=1, medium=medium)
    return not explore("real", bounds, claimed_ways(medium), claimed_promises(medium)).sentence


def claimed_ways(medium: str) -> tuple[str, ...]:
    """The ways of recovering in which anything is claimed on this medium."""
    return tuple(way for way in BOTH if way in MEDIA[medium].digests)


def claimed_promises(medium: str) -> tuple[str, ...]:
    """The promises that are claimed on this medium."""
    return tuple(promise for promise in PROMISES if promise in MEDIA[medium].promises)


def bounds_on(medium: str, *ladder: Bounds) -> list[Bounds]:
    """These bounds on this medium; where it is one that fails by itself, first as they are, then two saves with failures."""
    asked = [bounds._replace(medium=medium) for bounds in ladder if bounds.faults == 0 or claims_failures(medium)]
    faults, saves = MEDIA[medium].faults, 2
    failing = [
        bounds._replace(faults=faults, saves=min(bounds.saves, saves)) for bounds in asked if bounds.faults < faults
    ]
    return list(dict.fromkeys([*asked, *failing]))


def hunt(program: str, bounds: Bounds, ways: tuple[str, ...], **how: Any) -> Report:
    """Look for what a user would feel first, then for any promise that is claimed on this medium."""
    claimed = claimed_promises(bounds.medium)
    felt = tuple(promise for promise in promises_of(program, ways) if promise in claimed)
    report = explore(program, bounds, ways, felt or claimed, **how)
    if report.sentence or len(felt) in (0, len(claimed)):
        return report
    return explore(program, bounds, ways, claimed, **how)


def _cell(mutant: str, medium: str, way: str, second_limit: float | None) -> Cell:
    states = 0
    for bounds in bounds_on(medium, MUTANTS[mutant].bounds):
        report = hunt(mutant, bounds, (way,), second_limit=second_limit)
        states += report.result.states
        if report.sentence or not report.result.exhaustive:
            break
    return _told(report, mutant, medium, way, states)


def _cut_cell(name: str, medium: str, second_limit: float | None) -> Cell:
    states = 0
    for bounds in bounds_on(medium, *LADDER):
        report = explore(name, bounds, claimed_ways(medium), claimed_promises(medium), second_limit=second_limit)
        states += report.result.states
        if report.sentence or not report.result.exhaustive:
            break
    return _told(report, name, medium, "both", states)


def _told(report: Report, mutant: str, medium: str, way: str, states: int) -> Cell:
    found = report.result.counterexample
    if found is None:
        outcome = EQUIVALENT if report.result.exhaustive else SURVIVED
        return Cell(mutant, medium, way, outcome, "", 0, 0, states, "", "", "")
    replayed = decode(report.replay)
    program, digests = replayed.program, found.violation.digests
    system = CoreSystem(
        target_named(program, medium),
        replayed.bounds,
        (digests,) if digests else report.digests,
        (found.violation.promise,),
    )
    edge = missing_edge(system, found)
    lost = len(lost_operations(system, found))
    text = edge.sentence if edge else ""
    return Cell(
        mutant, medium, way, KILLED, found.violation.promise, lost, len(found.moves), states, report.sentence, text,
        report.replay,
    )  # fmt: skip


def saboteur(medium: str) -> Report:
    """The control: what never persists anything must be caught, or the explorer sees nothing."""
    return explore(SABOTEUR, Bounds(saves=1, medium=medium), BOTH, tuple(PROMISES))


def table(
    mutants: Iterable[str],
    media: Iterable[str],
    *,
    second_limit: float | None = None,
    executor: Executor | None = None,
    progress: Callable[[str], None] | None = None,
) -> Iterator[Cell]:
    """Every cell of these mutants on these media, in their order; any executor of `concurrent.futures` may do the work."""
    names = list(mutants)
    pairs = [(name, medium) for medium in media for name in names]
    work = partial(_cells_of_pair, second_limit)
    for number, cells in enumerate(executor.map(work, pairs) if executor else map(work, pairs), 1):
        if progress is not None:
            progress(f"{number} of {len(pairs)}: {cells[0].mutant if cells else 'nothing claimed'}")
        yield from cells


def _cells_of_pair(second_limit: float | None, pair: tuple[str, str]) -> list[Cell]:
    return list(cells_of(*pair, second_limit=second_limit))


def every_mutant() -> list[str]:
    """The named ones, then the cuts."""
    return [*MUTANTS, *cuts()]


def says() -> dict[str, str]:
    """What every mutant is, in the order of the table."""
    return {name: (MUTANTS[name] if name in MUTANTS else cuts()[name]).says for name in every_mutant()}
