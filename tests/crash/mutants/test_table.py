"""Every deliberately broken protocol is found, by the promise that it breaks; docs/mutants.md says so and is not stale.

What is kept is replayed, which takes milliseconds where the search took seconds: the ordinary run replays a part and
searches the small ones anew, the nightly run replays and searches everything.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence

import pytest

from lastgood.crashsim.core_explore import replay
from lastgood.crashsim.core_surgery import cuts
from lastgood.crashsim.core_table import cells_of, claims_failures, every_mutant, says, ways_of
from lastgood.crashsim.core_target import edited, recover
from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.mutant_table import EQUIVALENT, KILLED, Cell, outcome_of, page, rows
from lastgood.crashsim.mutants import MUTANTS
from lastgood.crashsim.replay import BadReplay, decode
from tests.crash.mutants.goldens import DRAWINGS, PAGE, drawing, kept, published

KEPT = kept()
ORDINARY = "page-cache"
"""The medium whose counterexamples the ordinary run replays all of; of the others it takes a sample."""


def name_of(cell: Cell) -> str:
    return f"{cell.medium}-{cell.mutant}-{cell.way}"


def sampled(cells: Sequence[Cell], share: int) -> list[Cell]:
    """One in so many, the same ones on every run."""
    return [cell for cell in cells if zlib.crc32(name_of(cell).encode()) % share == 0]


def now_and_nightly(now: list[Cell], every: list[Cell]) -> list[object]:
    """Parameters: these in every run, the rest in the nightly one."""
    return [pytest.param(cell, id=name_of(cell), marks=() if cell in now else pytest.mark.nightly) for cell in every]


DEAD = [cell for cell in KEPT if cell.outcome == KILLED]
ALIKE = [cell for cell in KEPT if cell.outcome == EQUIVALENT]
FAILING = {cell.medium for cell in KEPT if cell.mutant in MUTANTS and MUTANTS[cell.mutant].bounds.faults}
"""The media on which something is claimed about steps that fail."""
REPLAYED = [cell for cell in DEAD if cell.medium == ORDINARY and cell.way != "ignored"]
REPLAYED += sampled([cell for cell in DEAD if cell.medium != ORDINARY], 12)
SEARCHED = [cell for cell in sampled(ALIKE, 6) if cell.states < 2_500]


def test_the_page_is_what_is_kept() -> None:
    assert PAGE.read_text() == page(KEPT, says()), "run: python -m tests.crash.mutants.write --page"


@pytest.mark.parametrize("cell", published(KEPT), ids=lambda cell: cell.mutant)
def test_the_drawings_are_of_what_is_kept(cell: Cell) -> None:
    assert (DRAWINGS / f"{cell.mutant}.html").read_text() == drawing(cell), (
        "run: python -m tests.crash.mutants.write --page"
    )


def test_nothing_is_missing_and_nothing_survives() -> None:
    """A new mutant, a new medium or a new step in the save program makes the table stale."""
    cells = {(cell.mutant, cell.medium, cell.way) for cell in KEPT}
    wanted = {
        (name, medium, way)
        for medium in MEDIA
        for name in every_mutant()
        for way in ways_of(name, medium, fails=medium in FAILING)
    }
    assert cells == wanted, "run: python -m tests.crash.mutants.write"
    assert {cell.outcome for cell in KEPT} == {KILLED, EQUIVALENT}


@pytest.mark.parametrize(
    "medium", [pytest.param(name, marks=pytest.mark.nightly if name in FAILING else ()) for name in MEDIA]
)
def test_mutants_of_failing_steps_are_judged_where_the_protocol_holds_itself(medium: str) -> None:
    assert claims_failures(medium) == (medium in FAILING)


def test_forty_named_mutants_and_more_die() -> None:
    died = {cell.mutant for cell in DEAD if cell.medium == ORDINARY}
    assert len(died & set(MUTANTS)) >= 60
    assert len(died & set(cuts())) >= 20


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS.values()], ids=lambda mutant: mutant.name)
def test_a_mutant_breaks_what_it_says_on_an_ordinary_file_system(mutant: object) -> None:
    assert dataclasses.is_dataclass(mutant)
    cells = [cell for cell in KEPT if (cell.mutant, cell.medium) == (mutant.name, ORDINARY)]
    assert {cell.way: cell.promise for cell in cells} == {way: mutant.breaks(way) for way in mutant.ways}
    assert mutant.why or all(cell.outcome == KILLED for cell in cells), "say why it changes nothing"


@pytest.mark.parametrize("cell", now_and_nightly(REPLAYED, DEAD))
def test_a_kept_counterexample_still_breaks_its_promise(cell: Cell) -> None:
    """The string gives the same broken promise in the same sentence, the same losses, and the same string."""
    again = replay(decode(cell.replay))
    assert again.result.counterexample is not None, f"{cell.mutant} is not caught any more: {cell.sentence}"
    assert again.result.counterexample.violation.promise == cell.promise
    assert (again.replay, again.sentence, again.lost_writes) == (cell.replay, cell.sentence, cell.lost_writes)


@pytest.mark.parametrize("cell", now_and_nightly(REPLAYED, DEAD))
def test_the_real_protocol_survives_it(cell: Cell) -> None:
    """Either its schedule is not possible, or the same crash breaks nothing. A cut by hand is seen here at once."""
    wanted = decode(cell.replay)
    try:
        survived = replay(wanted._replace(program="real"))
    except BadReplay:
        return
    assert not survived.sentence, "\n".join([survived.sentence, *survived.lines])


@pytest.mark.parametrize("cell", now_and_nightly(SEARCHED, ALIKE))
def test_an_equivalent_mutant_is_searched_to_the_end(cell: Cell) -> None:
    found = {each.way: each for each in cells_of(cell.mutant, cell.medium)}
    assert found[cell.way] == cell


def test_rows_say_the_same_to_a_machine() -> None:
    found = rows(KEPT)
    assert len(found) == len({(cell.mutant, cell.medium) for cell in KEPT})
    for row in found:
        assert row["outcome"] in (KILLED, EQUIVALENT)
        assert (row["lost_writes"] is None) == (row["outcome"] == EQUIVALENT) == (row["replay"] is None)
        assert row["exhaustive"] == (row["outcome"] == EQUIVALENT)
    alive = Cell("m", "x", "trusted", "survived", "", 0, 0, 7, "", "", "")
    assert outcome_of([alive, alive._replace(outcome=EQUIVALENT)]) == "survived"
    assert rows([alive])[0]["exhaustive"] is False


def test_an_edit_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(AssertionError, match="occurs 0 times"):
        edited(recover.survey, (("no such text", ""),))
    with pytest.raises(AssertionError, match="occurs 2 times"):
        edited(recover.survey, (("mine[MY_SLOT] = slot", ""),))
