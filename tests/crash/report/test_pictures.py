"""A counterexample can be looked at: as a page that needs nothing else, and as text for a log."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from functools import cache

import pytest

from lastgood.crashsim.core_explore import replay
from lastgood.crashsim.mutant_table import KILLED, Cell
from lastgood.crashsim.mutants import MUTANTS
from lastgood.crashsim.picture_html import page
from lastgood.crashsim.picture_text import drawn, plain
from lastgood.crashsim.replay import decode
from lastgood.crashsim.scene import CRASH, LOST, Scene
from tests.crash.mutants.goldens import kept, published
from tests.crash.report.test_minimal import id_of

PUBLISHED = [
    cell
    for cell in kept()
    if cell.mutant in MUTANTS and MUTANTS[cell.mutant].published and cell.outcome == KILLED and cell.way == "trusted"
]
ORDINARY = published(kept())
SVG = "{http://www.w3.org/2000/svg}"


@cache
def scene_of(cell: Cell) -> Scene:
    scene = replay(decode(cell.replay)).scene
    assert scene is not None
    return scene


def test_the_four_published_defects_are_there() -> None:
    assert [cell.mutant for cell in ORDINARY] == [
        "slot-released-before-barrier",
        "barrier-makes-nothing-durable",
        "registered-then-maximum",
        "pointer-only-compare",
    ]


@pytest.mark.parametrize("cell", PUBLISHED, ids=lambda cell: f"{cell.medium}-{cell.mutant}")
def test_a_published_defect_needs_fewer_than_three_lost_operations(cell: Cell) -> None:
    assert cell.lost_writes < 3
    assert len(scene_of(cell).lost) == cell.lost_writes


@pytest.mark.parametrize("cell", ORDINARY, ids=lambda cell: cell.mutant)
def test_a_published_defect_has_a_page_that_needs_nothing_else(cell: Cell) -> None:
    scene = scene_of(cell)
    text = page(scene)
    assert not re.search(r"(?:src|href)\s*=|@import|url\((?!#)|<script", text), "loads nothing"
    assert "prefers-color-scheme: dark" in text
    assert scene.edge is not None
    assert scene.edge.sentence in text
    assert cell.replay in text
    assert f"<b>{cell.promise}</b>" in text
    for lost in scene.lost:
        assert lost in text
    drawing = ElementTree.fromstring(re.search(r"<svg xmlns.*?</svg>\n?(?=<figcaption)", text, re.S).group())  # type: ignore[union-attr]
    shown = [element.text for element in drawing.iter(f"{SVG}text")]
    for lane in scene.lanes:
        assert lane.split()[-1] in shown
    for row in scene.rows[:-1]:
        assert row.text in shown
    crosses = [element for element in drawing.iter(f"{SVG}path") if element.get("class") == "cross"]
    assert len(crosses) == cell.lost_writes
    arrows = [element for element in drawing.iter(f"{SVG}path") if element.get("class") == "missing"]
    assert len(arrows) == (1 if cell.lost_writes else 0)


@pytest.mark.parametrize("cell", ORDINARY, ids=lambda cell: cell.mutant)
def test_the_text_shows_the_same(cell: Cell) -> None:
    scene = scene_of(cell)
    lines = plain(scene)
    assert scene.edge is not None
    assert sum(f"missing: {scene.edge.sentence}" in line for line in lines) == 1
    crash = next(index for index, line in enumerate(lines) if line.startswith("━"))
    assert lines[crash + 1].count("✕") == cell.lost_writes
    for row in scene.rows:
        assert sum(line.endswith(row.text) for line in lines) >= 1, row.text
    assert all(span.text is not None for line in drawn(scene) for span in line)


def test_every_bar_ends_where_the_medium_says() -> None:
    """The record that was written and not persisted: outstanding from its write to the crash, lost there, torn after."""
    scene = scene_of(next(cell for cell in ORDINARY if cell.mutant == "barrier-makes-nothing-durable"))
    crash = next(index for index, row in enumerate(scene.rows) if row.kind == CRASH)
    written = next(index for index, row in enumerate(scene.rows) if row.text == "writes its record to slot 1")
    (lost,) = [bar for bar in scene.bars if bar.end == LOST]
    assert (lost.first, lost.last, lost.sequence) == (written, crash, 2)
    assert scene.tracks[lost.track].group == "slot 1"
    torn = [bar for bar in scene.bars if bar.sequence == -1]
    assert {(bar.first, scene.tracks[bar.track].name) for bar in torn} == {(crash, "record")}


@pytest.mark.parametrize("cell", [cell for cell in kept() if cell.outcome == KILLED][::40], ids=id_of)
def test_any_counterexample_can_be_drawn(cell: Cell) -> None:
    scene = scene_of(cell)
    assert page(scene).count("<text") > len(scene.rows)
    assert len(plain(scene)) > len(scene.rows)
