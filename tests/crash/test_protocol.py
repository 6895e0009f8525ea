"""The core's own save and recovery programs keep every promise under every schedule, crash and image within bounds.

The counts are goldens. A change of the protocol changes them, and that is how it is noticed; a change of the explorer
that changes them has lost or gained states, and must say why.
"""

from __future__ import annotations

import pytest

from lastgood.crashsim.bounds import Bounds
from tests.crash.exploring import BOTH, assert_clean, explored

DEFAULT = Bounds()


def test_every_promise_holds_at_the_default_bounds() -> None:
    """`newest-survives`, `never-wrong`, `monotone`, `no-reuse`, `no-leak`, `loud`: payload digests trusted and ignored."""
    report = explored("real", DEFAULT)
    assert_clean(report)
    assert (report.result.states, report.result.transitions) == (28_841, 58_967)
    assert report.images > 10_000


@pytest.mark.parametrize("digests", [(each,) for each in BOTH], ids=BOTH)
def test_each_way_of_recovering_alone(digests: tuple[str, ...]) -> None:
    report = explored("real", Bounds(saves=3), digests)
    assert_clean(report)
    assert report.result.states == 6_573


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(savers=1, saves=6), 185, id="one-saver"),
        pytest.param(Bounds(saves=4, writers=1), 22_765, id="one-writer"),
        pytest.param(Bounds(saves=3, writers=3), 11_609, id="three-writers"),
        pytest.param(Bounds(saves=4, keep=2), 29_716, id="keep-two"),
        pytest.param(Bounds(saves=3, keep=3), 10_557, id="keep-three"),
        pytest.param(Bounds(savers=3, saves=3), 66_782, id="three-savers"),
        pytest.param(Bounds(saves=3, medium="strict"), 17_952, id="strict"),
    ],
)
def test_every_promise_holds_at_other_bounds(bounds: Bounds, states: int) -> None:
    report = explored("real", bounds)
    assert_clean(report)
    assert report.result.states == states


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(savers=1, saves=1, faults=1), 76, id="one-save"),
        pytest.param(Bounds(savers=1, saves=3, faults=2), 2_385, id="one-saver-twice"),
        pytest.param(Bounds(saves=3, faults=1), 40_360, id="two-savers"),
        pytest.param(Bounds(saves=3, keep=2, faults=1), 45_492, id="keep-two"),
    ],
)
def test_steps_that_fail(bounds: Bounds, states: int) -> None:
    """Any write or persist fails, of a save or of recovery; two savers may both be setting the mark (`loud`)."""
    report = explored("real", bounds)
    assert_clean(report)
    assert report.result.states == states


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(saves=3, restarts=1), 19_201, id="two-savers"),
        pytest.param(Bounds(saves=3, keep=2, restarts=1), 22_513, id="keep-two"),
        pytest.param(Bounds(saves=2, faults=1, restarts=1), 8_420, id="a-step-fails"),
    ],
)
def test_a_process_that_starts_again_goes_on_saving(bounds: Bounds, states: int) -> None:
    """A crash in the middle of the saves; whoever acknowledged anything is never taken for a fresh store (`loud`)."""
    report = explored("real", bounds)
    assert_clean(report)
    assert report.result.states == states


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(saves=3, one_persist=1), 5_875, id="two-savers"),
        pytest.param(Bounds(saves=3, one_persist=1, keep=2), 6_834, id="keep-two"),
        pytest.param(Bounds(saves=2, one_persist=1, keep=2, faults=1), 3_801, id="a-step-fails"),
        pytest.param(Bounds(saves=3, one_persist=1, keep=2, restarts=1), 23_236, id="starts-again"),
    ],
)
def test_one_persist_a_save(bounds: Bounds, states: int) -> None:
    """Payload and record in one persist; right only with the payload digests, for the older ones kept too."""
    report = explored("real", bounds, ("trusted",))
    assert_clean(report)
    assert report.result.states == states


def test_one_persist_without_digests_is_wrong() -> None:
    report = explored("real", Bounds(saves=2, one_persist=1), ("ignored",))
    assert report.sentence.startswith("never-wrong is broken")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(saves=6),
        Bounds(savers=3, saves=4),
        Bounds(saves=5, keep=2),
        Bounds(saves=4, restarts=1),
        Bounds(saves=3, faults=1, restarts=1),
        Bounds(savers=3, saves=3, faults=1),
    ],
    ids=lambda bounds: bounds.sentence(),
)
def test_every_promise_holds_further_out(bounds: Bounds) -> None:
    assert_clean(explored("real", bounds))
