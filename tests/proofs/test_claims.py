"""Every claim stands: the whole run of the gate, as a build does it. A build runs `make proofs` beside these tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofs.ledger import CLAIMS

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.nightly
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="the gate turns the JIT off by itself")
def test_every_claim_stands_and_every_twin_is_refuted() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "proofs.check", "--json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    answer = json.loads(finished.stdout)
    assert [claim for claim in answer["claims"] if not claim["ok"]] == []
    assert len(answer["claims"]) == len(CLAIMS)
    assert all(claim["example"] or claim["skipped"] for claim in answer["claims"])
    assert finished.returncode == 0
