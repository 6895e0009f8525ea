"""The counterexamples that are kept: one file a medium, one line a mutant and way of recovering."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.mutant_table import Cell

FOLDER = Path(__file__).parent / "kept"
PAGE = Path(__file__).parents[3] / "docs" / "mutants.md"


def kept() -> list[Cell]:
    """Every kept cell, medium by medium."""
    cells: list[Cell] = []
    for medium in MEDIA:
        path = FOLDER / f"{medium}.jsonl"
        if path.exists():
            cells += [Cell(**json.loads(line)) for line in path.read_text().splitlines()]
    return cells


def keep(medium: str, cells: Iterable[Cell]) -> None:
    """Write one medium's file anew."""
    FOLDER.mkdir(exist_ok=True)
    lines = [json.dumps(cell._asdict(), ensure_ascii=False) for cell in cells]
    (FOLDER / f"{medium}.jsonl").write_text("\n".join(lines) + "\n")
