"""What a search will take is said before it begins, to an order of magnitude; and what to do when that is too much."""

from __future__ import annotations

import pytest

from lastgood.crashsim.bounds import AT_MOST, LIMITS, Bounds, estimate


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(), 28_841, id="default"),
        pytest.param(Bounds(savers=1, saves=6), 185, id="one-saver"),
        pytest.param(Bounds(saves=4, writers=1), 22_765, id="one-writer"),
        pytest.param(Bounds(saves=3, writers=3), 11_609, id="three-writers"),
        pytest.param(Bounds(saves=4, keep=2), 29_716, id="keep-two"),
        pytest.param(Bounds(saves=3, faults=1), 40_360, id="a-fault"),
        pytest.param(Bounds(saves=3, restarts=1), 19_201, id="a-restart"),
        pytest.param(Bounds(medium="block"), 51_729, id="block"),
        pytest.param(Bounds(medium="pmem"), 64_431, id="pmem"),
        pytest.param(Bounds(saves=0), 104_363, id="any-number"),
        pytest.param(Bounds(savers=3, saves=4, medium="block"), 3_002_719, id="three-savers-block"),
    ],
)
def test_an_estimate_is_right_to_a_factor_of_three(bounds: Bounds, states: int) -> None:
    assert states / 3 < estimate(bounds).states < states * 3


def test_what_can_be_finished_is_not_refused() -> None:
    for medium in ("page-cache", "block", "pmem"):
        told = estimate(Bounds(savers=3, saves=4, medium=medium))
        assert not told.is_too_large
        assert "too large" not in told.sentence


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(savers=4, saves=9),
        Bounds(saves=30),
        Bounds(savers=3, saves=0),
        Bounds(savers=9, saves=99, writers=8, faults=9),
    ],
    ids=["four-savers", "thirty-saves", "any-number", "most"],
)
def test_what_is_too_large_says_so_in_one_line_with_a_way_out(bounds: Bounds) -> None:
    told = estimate(bounds)
    assert told.is_too_large
    assert told.sentence.startswith("these bounds are too large to finish: about ")
    assert "--random" in told.sentence
    assert "\n" not in told.sentence
    assert len(told.sentence) < 200


def test_the_alternative_fits() -> None:
    told = estimate(Bounds(savers=3, saves=7))
    saves = int(told.instead.split("--saves ")[1].split(",")[0])
    assert estimate(Bounds(savers=3, saves=saves)).states <= AT_MOST


@pytest.mark.parametrize("name", ["savers", "saves", "writers", "faults", "restarts"])
def test_more_of_anything_is_never_less_work(name: str) -> None:
    least, most = LIMITS[name]
    least = max(least, name == "saves")  # 0 saves are any number
    sizes = [estimate(Bounds(**{name: value})).states for value in range(least, min(most, 12) + 1)]
    assert sizes == sorted(sizes)
