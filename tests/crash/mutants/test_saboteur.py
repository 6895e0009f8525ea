"""The control of the whole harness: caught on every medium, and a session whose harness is blind says so and ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lastgood.crashsim.core_table import saboteur
from lastgood.crashsim.media import MEDIA
from tests.crash.conftest import CAUGHT

ROOT = Path(__file__).parents[3]

BLIND = """
import lastgood.crashsim.core_system as blind
blind.CoreSystem.judge = lambda self, state: None
"""


def test_this_session_has_caught_it(request: pytest.FixtureRequest) -> None:
    assert "is broken" in request.config.stash[CAUGHT]


@pytest.mark.parametrize("medium", MEDIA)
def test_it_is_caught_on_every_medium_within_a_few_moves(medium: str) -> None:
    report = saboteur(medium)
    assert report.result.counterexample is not None
    assert len(report.result.counterexample.moves) <= 15
    assert report.lost_writes == 1


def test_a_blind_harness_ends_the_session_and_says_so(tmp_path: Path) -> None:
    """A judge that finds nothing wrong anywhere: whatever it calls clean means nothing."""
    (tmp_path / "blinding.py").write_text(BLIND)
    words = ["-p", "blinding", "-p", "no:cacheprovider", "-n", "0", "tests/crash/test_replay.py"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3, ended.stdout + ended.stderr
    assert "the crash harness is broken" in ended.stdout + ended.stderr
