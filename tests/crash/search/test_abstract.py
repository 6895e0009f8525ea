"""The compiled abstract model is the real protocol, state for state and move for move; and it clears the large bound.

Two texts of one protocol drift apart unless something looks. Here every reachable state and every move of both are
listed within small bounds and compared; then a difference is planted in either, and must show.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

from lastgood.crashsim.abstract import MEDIA, MISTAKES, Abstract
from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_target import mutant_target, real_target
from lastgood.crashsim.mutants import MUTANTS
from tests.crash.search.real_states import Edge, RealStates, of_the_model

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
compiled_only = pytest.mark.skipif(INTERPRETED, reason="the JIT is off, and this takes many thousand states")

SMALL = Bounds(saves=3)
TINY = Bounds(savers=1, saves=5)
SIZES = [
    pytest.param(TINY, id="one-saver"),
    pytest.param(Bounds(saves=4), id="two-savers", marks=compiled_only),
    pytest.param(Bounds(savers=3, saves=2), id="three-savers", marks=compiled_only),
    pytest.param(Bounds(saves=3, writers=1), id="one-writer", marks=compiled_only),
    pytest.param(Bounds(saves=2, writers=3), id="three-writers", marks=compiled_only),
]


@functools.cache
def modelled(bounds: Bounds, mistake: str = "") -> tuple[set[bytes], set[Edge]]:
    return of_the_model(Abstract(bounds, mistake))


def programmed(bounds: Bounds, program: str = "") -> tuple[set[bytes], set[Edge]]:
    target = mutant_target(MUTANTS[program], bounds.medium) if program else real_target()
    return RealStates(target, bounds).everything()


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("bounds", SIZES)
def test_the_model_is_the_protocol(bounds: Bounds, medium: str) -> None:
    bounds = bounds._replace(medium=medium)
    states, moves = programmed(bounds)
    assert modelled(bounds)[0] == states
    assert modelled(bounds)[1] == moves


@compiled_only
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_difference_is_noticed(mistake: str) -> None:
    """A mistake in the model alone, and in the programs alone; made in both, they agree again."""
    states, moves = programmed(SMALL, mistake)
    assert modelled(SMALL, mistake) == (states, moves)
    assert modelled(SMALL)[1] != moves
    assert modelled(SMALL, mistake)[1] != programmed(SMALL)[1]


@compiled_only
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_model_finds_the_mistakes(mistake: str) -> None:
    """As the explorer does, by a promise that the explorer finds broken too."""
    result = Abstract(Bounds(), mistake).search()
    mutant = MUTANTS[mistake]
    assert result.promise in (mutant.ignored, mutant.trusted, "monotone")
    assert (result.exhaustive, len(result.trace) > 0) == (False, True)


@compiled_only
@pytest.mark.parametrize(
    ("medium", "states", "moves"),
    [("page-cache", 827_256, 2_399_845), ("block", 2_638_937, 7_439_721), ("pmem", 2_587_239, 8_522_292)],
)
def test_three_savers_and_four_saves_break_nothing(medium: str, states: int, moves: int) -> None:
    """Every promise that one crash can break, in every state: slots are used again, and savers overtake each other."""
    result = Abstract(Bounds(savers=3, saves=4, medium=medium)).search()
    assert (result.promise, result.exhaustive) == ("", True)
    assert (result.states, result.transitions) == (states, moves)


def test_rows_grow_with_the_search() -> None:
    few, many = Abstract(TINY), Abstract(TINY)
    assert few.search(room=16).states == many.search().states
    assert few.states() == many.states()


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(keep=2),
        Bounds(faults=1),
        Bounds(restarts=1),
        Bounds(one_persist=1),
        Bounds(saves=0),
        Bounds(medium="strict"),
    ],
    ids=["keep", "faults", "restarts", "one-persist", "any-number", "medium"],
)
def test_what_is_beyond_the_model_is_refused(bounds: Bounds) -> None:
    with pytest.raises(ValueError, match="the abstract model"):
        Abstract(bounds)


def test_numba_is_loaded_only_when_a_model_is_made() -> None:
    script = (
        "import sys, lastgood.crashsim.abstract; print([name for name in sys.modules if name in ('numba', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
