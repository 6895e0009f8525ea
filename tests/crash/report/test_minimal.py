"""A counterexample has nothing in it that could be left out: no move, no lost write."""

from __future__ import annotations

from functools import cache
from itertools import chain, combinations

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import explore, replay, target_named
from lastgood.crashsim.core_minimal import lost_operations, minimised, walk
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import rules
from lastgood.crashsim.mutant_table import KILLED, Cell
from lastgood.crashsim.promises import LOUD, NEVER_WRONG, NEWEST_SURVIVES
from lastgood.crashsim.replay import Replay, decode
from lastgood.crashsim.search import Counterexample
from tests.crash.mutants.goldens import kept

SHORT = [
    cell
    for cell in kept()
    if cell.medium == "page-cache" and cell.outcome == KILLED and cell.way != "trusted" and cell.moves <= 20
]
LOSING = [cell for cell in kept() if cell.medium in ("page-cache", "block", "pmem") and cell.lost_writes]
LOSING = LOSING[:: max(1, len(LOSING) // 24)]


@cache
def system_of(cell: Cell) -> tuple[CoreSystem, Counterexample]:
    """A system that judges the cell's promise only, in its way of recovering, and the counterexample."""
    wanted = decode(cell.replay)
    found = wanted.counterexample
    digests = (found.violation.digests,) if found.violation.digests else ("trusted", "ignored")
    target = target_named(wanted.program, wanted.bounds.medium)
    return CoreSystem(target, wanted.bounds, digests, (found.violation.promise,)), found


def id_of(cell: Cell) -> str:
    return f"{cell.medium}-{cell.mutant}-{cell.way}"


@pytest.mark.parametrize("cell", SHORT, ids=id_of)
def test_without_any_one_move_it_is_impossible_or_harmless(cell: Cell) -> None:
    system, found = system_of(cell)
    for position in range(len(found.moves)):
        shorter = found.moves[:position] + found.moves[position + 1 :]
        reached = walk(system, found.start, shorter)
        assert reached is None or reached.violation is None, f"move {position + 1} is not needed"


@pytest.mark.parametrize("cell", LOSING, ids=id_of)
def test_with_any_of_the_lost_writes_given_back_it_is_harmless(cell: Cell) -> None:
    """Every power loss that takes a real part of what is lost here, from the same state, breaks nothing."""
    system, found = system_of(cell)
    reached = walk(system, found.start, found.moves)
    assert reached is not None
    if found.violation.crash[0] == "K" or "/" in found.violation.crash or ":" in found.violation.crash:
        fewer = CoreSystem(system.target, system.bounds, system.digests, (cell.promise,), losses=cell.lost_writes - 1)
        again = walk(fewer, found.start, found.moves)
        assert again is None or again.violation is None
        return
    medium, ghost = reached.state[1], system.ghosts.values[reached.state[2]]
    losses = system.store.power_losses(medium)
    lost = losses[int(found.violation.crash[1:])][1]
    assert len(lost) == cell.lost_writes
    smaller = set(chain.from_iterable(combinations(lost, size) for size in range(len(lost))))
    for image, taken in losses:
        run = system.aftermaths[0].recovery.run(image)
        broken = {
            NEWEST_SURVIVES: rules.sequence_of(run.recovered) < rules.sequence_of(max(ghost.acknowledged, default=0)),
            NEVER_WRONG: any(promise == NEVER_WRONG for promise, _ in run.problems),
            LOUD: ghost.marked and not system.store.contents(image).mark,
        }
        if taken in smaller:
            assert not broken[cell.promise], f"{taken} is enough"
        elif taken == lost:
            assert broken[cell.promise]


def test_a_random_walk_is_shortened() -> None:
    """A walk blunders through every save; what is kept of it is about as short as what a search finds."""
    bounds = Bounds(saves=3)
    report = explore("drop-record-persist", bounds, ("trusted",), ("newest-survives",), walks=200, seed=5)
    found = report.result.counterexample
    assert found is not None
    shortest = explore("drop-record-persist", bounds, ("trusted",), ("newest-survives",)).result.counterexample
    assert shortest is not None
    assert len(found.moves) <= 2 * len(shortest.moves)
    again = replay(decode(report.replay))
    assert (again.sentence, again.replay) == (report.sentence, report.replay)


def test_a_loss_that_is_not_needed_is_seen() -> None:
    """A larger image of the same crash breaks the promise too: it is not what is kept."""
    cell = next(cell for cell in kept() if cell.mutant == "drop-record-persist" and cell.medium == "page-cache")
    system, found = system_of(cell)
    state = walk(system, found.start, found.moves)
    assert state is not None
    losses = system.store.power_losses(state.state[1])
    larger = next(number for number, (_, taken) in enumerate(losses) if len(taken) > cell.lost_writes)
    wasteful = Counterexample(found.start, found.moves, found.violation._replace(crash=f"P{larger}"))
    assert len(lost_operations(system, wasteful)) > cell.lost_writes
    smaller = minimised(system, wasteful)
    assert len(lost_operations(system, smaller)) == cell.lost_writes
    assert decode(cell.replay) == Replay(cell.mutant, system.bounds, decode(cell.replay).counterexample)
