"""The artifact's closed form gives its published VGG16 series, and the replay says what the closed form cannot.

The series depends on the trace through two numbers only, its length and the artifact's count of failures. So a made
trace with the published trace's two numbers must give the same series; the trace itself is read where
LASTGOOD_SPOT_TRACE names it.
"""

from __future__ import annotations

import os

import pytest

from lastgood.goodput.formula import failures, published
from lastgood.goodput.generate import generate
from lastgood.goodput.trace import Trace, read_trace
from tests.goodput.playing import COSTS, play, trace

SECONDS, FAILURES = 13_482.0, 51
SERIES = {
    "checkfreq": (2.92, 6.98, 12.00),
    "gpm": (6.62, 10.32, 12.88),
    "pccheck": (6.29, 14.09, 15.32),
    "ideal": (15.70, 15.67, 15.62),
}


def made() -> Trace:
    """56 GPUs at once (14 failures by that count), then 37 times four of them gone and back or gone for good."""
    gpus = [56] + [52 if number % 2 == 0 else 56 for number in range(37)]
    times = [SECONDS * number / 37 for number in range(38)]
    return Trace("made", tuple(times), tuple(gpus))


def check_series(failing: Trace) -> None:
    assert failing.duration_seconds == pytest.approx(SECONDS)
    assert failures(failing) == FAILURES
    for series in published():
        # Two decimals, as published: rounding of the logged throughputs may move the last one by one.
        assert series.goodput(failing) == pytest.approx(SERIES[series.system], abs=0.0051), series.system


def test_the_published_series() -> None:
    assert {series.system for series in published()} == set(SERIES)
    check_series(made())


def test_one_failure_more_or_less_would_be_seen() -> None:
    whole = made()
    with pytest.raises(AssertionError):
        check_series(Trace("fewer", whole.seconds, (*whole.gpus[:-1], whole.gpus[-2])))


@pytest.mark.skipif("LASTGOOD_SPOT_TRACE" not in os.environ, reason="LASTGOOD_SPOT_TRACE names no trace file")
def test_the_published_series_from_the_published_trace() -> None:
    real = read_trace(os.environ["LASTGOOD_SPOT_TRACE"])
    check_series(real)
    assert len(real.losses()) == 26
    assert sum(loss.lost for loss in real.losses()) == 130


def test_what_the_closed_form_counts_and_a_replay_does_not() -> None:
    growing = trace((0, 8), (100, 16), (200, 16))
    assert failures(growing) == 2 + 2
    assert play("lastgood", growing, 10).failures == 0
    bulk = trace((0, 8), (100, 0), (200, 0))
    assert failures(bulk) == 2 + 2
    assert play("lastgood", bulk, 10).failures == 1


def test_who_relies_on_survivors_wins_on_single_failures_and_loses_in_bulk() -> None:
    """Which is why one figure for a system says little without the trace that it was computed on."""
    sizes = {"gpus": 64, "hours": 8.0, "every": 900.0, "away": 300.0, "seed": 0}
    single, bulk = (generate(kind, **sizes) for kind in ("single", "bulk"))  # type: ignore[arg-type]
    for memory in ("just-in-time", "gemini"):
        assert play(memory, single, 20, COSTS).goodput > play("checkfreq", single, 20, COSTS).goodput
        assert play(memory, bulk, 20, COSTS).goodput < play("checkfreq", bulk, 20, COSTS).goodput
        assert play(memory, single, 20, COSTS).fallbacks == 0
        assert play(memory, bulk, 20, COSTS).fallbacks > 0


def test_several_in_flight_pay_where_the_interval_is_shorter_than_a_write() -> None:
    """One write alone takes twice its share of the device: one in flight waits, several use all of it."""
    failing = generate("poisson", gpus=16, hours=4.0, every=600.0, away=120.0, seed=0)
    at_one, at_rare = (
        [play(name, failing, interval, COSTS, single_write_seconds=4.0).goodput for name in ("checkfreq", "lastgood")]
        for interval in (2, 50)
    )
    assert at_one[1] > 1.5 * at_one[0]
    assert at_rare[1] == pytest.approx(at_rare[0], rel=0.02)
