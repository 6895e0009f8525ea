"""The missing edge names an order that, had it been there, would have made the counterexample impossible."""

from __future__ import annotations

import pytest

from lastgood.crashsim.core_edge import mended, missing_edge
from lastgood.crashsim.core_minimal import lost_operations
from lastgood.crashsim.core_surgery import SABOTEUR
from lastgood.crashsim.mutant_table import Cell
from tests.crash.mutants.goldens import kept
from tests.crash.report.test_minimal import id_of, system_of

LOST_BEFORE_THE_LAST_MOVE = [
    cell
    for cell in kept()
    if cell.medium == "page-cache" and cell.lost_writes and "hands out" not in cell.edge and cell.way != "trusted"
]


@pytest.mark.parametrize("cell", LOST_BEFORE_THE_LAST_MOVE, ids=id_of)
def test_had_that_persist_returned_nothing_would_be_broken(cell: Cell) -> None:
    """What was lost is made durable before the last move; then that move, and any crash after it, break nothing."""
    system, found = system_of(cell)
    if cell.mutant == SABOTEUR:  # one persist more does not mend a program that lacks them all
        return
    assert mended(system, found, lost_operations(system, found))


@pytest.mark.parametrize(
    ("mutant", "edge"),
    [
        ("drop-record-persist", "persist record of save 2 must return before save 2 is acknowledged"),
        ("drop-payload-persist", "persist data of save 1 must return before the record of save 1 is written"),
        ("slot-released-before-barrier", "persist record of save 2 must return before save 3 writes over slot 0"),
        ("registered-then-maximum", "persist data of save 1 must return before the record of save 1 is written"),
        ("drop-mark-persist", "persist the mark must return before save 1 is acknowledged"),
        ("recovery-trusts-the-cache", "persist record of save 1 must return before recovery hands out a slot"),
        (
            "pointer-only-compare",
            "the root must be seen to be older, and still the same, before save 3 swaps the root from checkpoint 4 "
            "(slot 0) to checkpoint 3 (slot 2)",
        ),
    ],
)
def test_the_edge_of_a_known_mistake(mutant: str, edge: str) -> None:
    killed = [cell for cell in kept() if cell.mutant == mutant and cell.medium == "page-cache" and cell.replay]
    system, found = system_of(killed[-1])
    missing = missing_edge(system, found)
    assert missing is not None
    assert missing.sentence == edge
    assert killed[-1].edge == edge
