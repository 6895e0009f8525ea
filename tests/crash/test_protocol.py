"""The core's own save and recovery programs keep every promise under every schedule, crash and image within bounds.

The counts are goldens. A change of the protocol changes them, and that is how it is noticed; a change of the explorer
that changes them has lost or gained states, and must say why.
"""

from __future__ import annotations

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.mutants import SILENT
from lastgood.crashsim.promises import LOUD
from tests.crash.exploring import (
    BOTH,
    EMPTY_RECORD_TRUSTED,
    KEPT_UNVERIFIED,
    MARK_PERSIST_SHARED,
    MARK_TRUSTED,
    assert_clean,
    explored,
)

DEFAULT = Bounds()


def test_every_promise_holds_at_the_default_bounds() -> None:
    """`newest-survives`, `never-wrong`, `monotone`, `no-reuse`, `no-leak`, `loud`: payload digests trusted and ignored."""
    report = explored("real", DEFAULT)
    assert_clean(report)
    assert (report.result.states, report.result.transitions) == (32_372, 65_919)
    assert report.images > 10_000


@pytest.mark.parametrize("digests", [(each,) for each in BOTH], ids=BOTH)
def test_each_way_of_recovering_alone(digests: tuple[str, ...]) -> None:
    report = explored("real", Bounds(saves=3), digests)
    assert_clean(report)
    assert report.result.states == 6_899


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(savers=1, saves=6), 184, id="one-saver"),
        pytest.param(Bounds(saves=4, writers=1), 25_869, id="one-writer"),
        pytest.param(Bounds(saves=3, writers=3), 12_015, id="three-writers"),
        pytest.param(Bounds(saves=4, keep=2), 34_424, id="keep-two"),
        pytest.param(Bounds(saves=3, keep=3), 11_449, id="keep-three"),
        pytest.param(Bounds(savers=3, saves=3), 67_518, id="three-savers"),
        pytest.param(Bounds(saves=3, medium="strict"), 18_478, id="strict"),
    ],
)
def test_every_promise_holds_at_other_bounds(bounds: Bounds, states: int) -> None:
    report = explored("real", bounds)
    assert_clean(report)
    assert report.result.states == states


def test_a_process_that_starts_again_goes_on_saving() -> None:
    """`newest-survives`, `never-wrong`, `monotone`, `no-reuse`, `no-leak` across a crash in the middle of the saves."""
    assert_clean(explored("real", Bounds(saves=3, restarts=1), promises=SILENT))


@EMPTY_RECORD_TRUSTED
def test_one_step_fails() -> None:
    """Any one write or persist fails, and the program releases or quarantines as it should."""
    assert_clean(explored("real", Bounds(saves=3, faults=1), promises=SILENT))


def test_one_step_of_a_single_saver_fails() -> None:
    """So few saves that no quarantined slot is used again."""
    assert_clean(explored("real", Bounds(savers=1, saves=1, faults=1)))


@MARK_TRUSTED
def test_a_process_that_starts_again_stays_marked() -> None:
    """`loud`: whoever acknowledged anything is never taken for a fresh store."""
    assert_clean(explored("real", Bounds(saves=3, restarts=1), promises=(LOUD,)))


@MARK_PERSIST_SHARED
def test_the_mark_survives_a_failed_persist() -> None:
    """`loud`, when two first saves are under way."""
    assert_clean(explored("real", Bounds(saves=3, faults=1), promises=(LOUD,)))


@EMPTY_RECORD_TRUSTED
def test_one_persist_a_save() -> None:
    """Payload and record in one persist; right only with the payload digests, and it says so."""
    assert_clean(explored("real", Bounds(saves=3, one_persist=1), ("trusted",)))


@KEPT_UNVERIFIED
def test_one_persist_a_save_and_two_kept() -> None:
    """`never-wrong` for the older ones too."""
    assert_clean(explored("real", Bounds(saves=3, one_persist=1, keep=2), ("trusted",), ("never-wrong",)))


def test_one_persist_without_digests_is_wrong() -> None:
    report = explored("real", Bounds(saves=2, one_persist=1), ("ignored",))
    assert report.sentence.startswith("never-wrong is broken")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "bounds",
    [Bounds(saves=6), Bounds(savers=3, saves=4), Bounds(saves=5, keep=2), Bounds(saves=4, restarts=1)],
    ids=lambda bounds: bounds.sentence(),
)
def test_every_promise_holds_further_out(bounds: Bounds) -> None:
    assert_clean(explored("real", bounds, promises=SILENT))
