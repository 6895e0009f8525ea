"""The bounds that are searched to the end on the media that files, disks and persistent memory are.

Every state of the real programs, payload digests trusted and ignored, every image, recovery crashed at every step and
again. Saves outnumber slots, so that slots are used again. The page cache's default bounds are in `test_protocol`.
"""

from __future__ import annotations

import pytest

from lastgood.crashsim.bounds import Bounds
from tests.crash.exploring import assert_clean, explored


@pytest.mark.parametrize(("medium", "states"), [("block", 51_729), ("pmem", 64_431)])
def test_two_savers_and_four_saves(medium: str, states: int) -> None:
    report = explored("real", Bounds(medium=medium))
    assert_clean(report)
    assert report.result.states == states


@pytest.mark.nightly
@pytest.mark.parametrize(("medium", "states"), [("page-cache", 979_668), ("block", 3_002_719), ("pmem", 2_915_113)])
def test_three_savers_and_four_saves(medium: str, states: int) -> None:
    """Four slots; each within ten minutes, and within 4 GB."""
    report = explored("real", Bounds(savers=3, saves=4, medium=medium))
    assert_clean(report)
    assert report.result.states == states
