"""Every persist that somebody could leave out of core/save.py, every two neighbouring steps that somebody could swap.

The cuts are made by a machine from the source as it is. Each must be found by exploring, with the name of the promise,
unless the table shows it equivalent on every medium. The test beside this one replays the same counterexamples on the
real program, so a cut made by hand fails it in milliseconds.
"""

from __future__ import annotations

import ast
from itertools import pairwise

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_surgery import can_run, candidates, cuts, source
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_table import LADDER, cells_of
from lastgood.crashsim.core_target import mutant_target
from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.mutant_table import EQUIVALENT, KILLED, Cell
from lastgood.crashsim.mutants import Mutant
from lastgood.crashsim.promises import PROMISES
from lastgood.crashsim.search import breadth_first
from tests.crash.mutants.goldens import kept

SOURCE = source()
CELLS: dict[str, list[Cell]] = {name: [cell for cell in kept() if cell.mutant == name] for name in cuts()}
QUICK = [
    name for name, cells in CELLS.items() if sum(cell.states for cell in cells if cell.medium == "page-cache") < 700
]


def test_every_persist_is_left_out_once() -> None:
    persists = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Name) and node.id[:7] == "PERSIST"]
    assert len([name for name in cuts() if name.startswith("without-persist")]) == len(persists) == 4


def test_every_step_has_been_swapped_with_what_comes_next() -> None:
    """From one step that asks for something to the next, in the order of the source, each pair is there."""
    asked = [line.split()[1] for line in SOURCE.splitlines() if line.strip().startswith("yield ")]
    asked = [name.lower().replace("_", "-") for name in asked if name not in ("STEP", "WAIT")]
    pairs = {f"{first}-and-{second}" for first, second in pairwise(asked)}
    made = {name.split("-", 1)[1] for name in cuts() if name.startswith(("exchanged", "swapped"))}
    assert pairs <= made
    assert len(cuts()) >= 30


@pytest.mark.parametrize("name", cuts())
def test_a_cut_is_found_or_changes_nothing_on_any_medium(name: str) -> None:
    cells = CELLS[name]
    assert {cell.medium for cell in cells} == set(MEDIA)
    killed = [cell for cell in cells if cell.outcome == KILLED]
    if killed:
        assert all(
            cell.promise in PROMISES and cell.sentence.startswith(f"{cell.promise} is broken") for cell in killed
        )
    else:
        assert {cell.outcome for cell in cells} == {EQUIVALENT}
        assert all(cell.states > 10_000 for cell in cells), "within every step of the ladder"


@pytest.mark.parametrize("name", QUICK)
def test_a_cut_is_found_again_by_exploring(name: str) -> None:
    (found,) = cells_of(name, "page-cache")
    assert found == next(cell for cell in CELLS[name] if cell.medium == "page-cache")


NOT_RUN = {name: edit for name, _, edit in candidates() if not can_run(SOURCE.replace(*edit))}


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_is_left_out_could_not_run(name: str) -> None:
    """It reads a variable that it has not set: whoever cuts like that learns it from the first save."""
    target = mutant_target(Mutant(name, "", "", "", save=(NOT_RUN[name],)))
    with pytest.raises(UnboundLocalError):
        breadth_first(CoreSystem(target, Bounds(saves=3, keep=2), ("trusted",)))


def test_the_ladder_reaches_faults_and_reused_slots() -> None:
    assert any(bounds.faults >= 2 for bounds in LADDER)
    assert any(bounds.saves >= bounds.slots for bounds in LADDER)
    assert any(bounds.keep > 1 for bounds in LADDER)
