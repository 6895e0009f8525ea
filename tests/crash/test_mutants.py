"""Every deliberately broken protocol is found, by the promise that it breaks, with its golden verdict.

`verdicts.txt` holds one line for each mutant and each way of recovering. `LASTGOOD_REWRITE=1` writes it anew; read the
difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import Report, replay
from lastgood.crashsim.core_target import edited, recover
from lastgood.crashsim.mutants import EQUIVALENT, MUTANTS, SILENT
from lastgood.crashsim.replay import decode
from tests.crash.exploring import BOTH, explored

VERDICTS = Path(__file__).parent / "verdicts.txt"

CASES = [(name, digests) for name in MUTANTS for digests in BOTH]
KILLED = [case for case in CASES if getattr(MUTANTS[case[0]], case[1]) != EQUIVALENT]
SURVIVORS = [case for case in CASES if case not in KILLED]


def hunted(name: str, digests: str) -> Report:
    """Look for the promise that this mutant should break, or for any if it should break none."""
    promise = getattr(MUTANTS[name], digests)
    return explored(name, MUTANTS[name].bounds, (digests,), (promise,) if promise else SILENT)


def golden() -> dict[str, str]:
    """The verdicts that are expected."""
    lines = VERDICTS.read_text().splitlines() if VERDICTS.exists() else []
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.parametrize(("name", "digests"), KILLED)
def test_a_mutant_is_found(name: str, digests: str) -> None:
    report = hunted(name, digests)
    assert report.result.counterexample is not None, f"{name} survives: {MUTANTS[name].says}"
    assert report.result.counterexample.violation.promise == getattr(MUTANTS[name], digests)
    assert report.sentence == golden().get(f"{name}, {digests}")


@pytest.mark.parametrize(("name", "digests"), SURVIVORS)
def test_an_equivalent_mutant_breaks_nothing_anywhere(name: str, digests: str) -> None:
    report = hunted(name, digests)
    assert not report.sentence, "\n".join([report.sentence, *report.lines])
    assert report.result.exhaustive
    assert MUTANTS[name].why


@pytest.mark.parametrize(("name", "digests"), KILLED)
def test_a_counterexample_replays_to_itself(name: str, digests: str) -> None:
    """The string gives the same broken promise, the same sentence, the same story and the same string."""
    report = hunted(name, digests)
    again = replay(decode(report.replay))
    assert (again.replay, again.sentence, again.lines) == (report.replay, report.sentence, report.lines)


def test_most_mutants_are_killed_either_way() -> None:
    assert len(MUTANTS) >= 47
    assert len(KILLED) >= 78


def test_the_saboteur_is_caught() -> None:
    """Without any persist nothing can hold; a harness that calls that clean sees nothing at all."""
    report = explored("drop-every-persist", Bounds(saves=1))
    assert report.result.counterexample is not None
    assert len(report.result.counterexample.moves) <= 10


def test_an_edit_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(AssertionError, match="occurs 0 times"):
        edited(recover.survey, (("no such text", ""),))
    with pytest.raises(AssertionError, match="occurs 2 times"):
        edited(recover.survey, (("mine[MY_SLOT] = slot", ""),))


@pytest.mark.skipif("LASTGOOD_REWRITE" not in os.environ, reason="LASTGOOD_REWRITE is not set")
def test_write_the_verdicts_anew() -> None:
    lines = [f"{name}, {digests}: {hunted(name, digests).sentence}" for name, digests in KILLED]
    VERDICTS.write_text("\n".join(lines) + "\n")
