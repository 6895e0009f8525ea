"""The counterexamples that are kept: one file a medium, one line a mutant and way of recovering."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from lastgood.crashsim import picture_html as html
from lastgood.crashsim.core_explore import replay
from lastgood.crashsim.core_table import every_mutant
from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.mutant_table import Cell
from lastgood.crashsim.mutants import MUTANTS
from lastgood.crashsim.replay import decode

FOLDER = Path(__file__).parent / "kept"
PAGE = Path(__file__).parents[3] / "docs" / "mutants.md"
DRAWINGS = PAGE.parent / "counterexamples"


def kept() -> list[Cell]:
    """Every kept cell, medium by medium."""
    cells: list[Cell] = []
    for medium in MEDIA:
        path = FOLDER / f"{medium}.jsonl"
        if path.exists():
            cells += [Cell(**json.loads(line)) for line in path.read_text().splitlines()]
    return cells


def published(cells: Iterable[Cell]) -> list[Cell]:
    """The smallest counterexample of each published defect on an ordinary file system."""
    wanted = [cell for cell in cells if cell.mutant in MUTANTS and MUTANTS[cell.mutant].published]
    return [cell for cell in wanted if (cell.medium, cell.way) == ("page-cache", "trusted")]


def drawing(cell: Cell) -> str:
    """A cell's counterexample as a page of its own."""
    scene = replay(decode(cell.replay)).scene
    assert scene is not None
    return html.page(scene)


def keep(medium: str, cells: Iterable[Cell]) -> None:
    """Put these cells in the place of what one medium's file holds of the same mutants; the order is the table's."""
    FOLDER.mkdir(exist_ok=True)
    new: dict[str, list[Cell]] = {}
    for cell in kept():
        if cell.medium == medium:
            new.setdefault(cell.mutant, []).append(cell)
    fresh: dict[str, list[Cell]] = {}
    for cell in cells:
        fresh.setdefault(cell.mutant, []).append(cell)
    new |= fresh
    ordered = [cell for name in every_mutant() for cell in new.get(name, [])]
    lines = [json.dumps(cell._asdict(), ensure_ascii=False) for cell in ordered]
    (FOLDER / f"{medium}.jsonl").write_text("\n".join(lines) + "\n")
