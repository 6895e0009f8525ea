"""The gate turns red, with a claim's name, when one comparison of a decision or one order of a program is changed.

A copy of the tree is changed and checked by its own gate, as a build of a fresh clone would do it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

PERSIST_THEN_WRITE = (
    "        if one_persist == 0:\n            yield PERSIST_PAYLOAD\n",
    "        yield WRITE_RECORD\n        if one_persist == 0:\n            yield PERSIST_PAYLOAD\n",
)
CHANGES = {
    "a comparison": ("rules.py", ("    if found < mine:", "    if found > mine:"), "publish-looks-again-when-newer"),
    "a guard": ("rules.py", ("    return seen < mine", "    return seen <= mine"), "publish-over-older-only"),
    "an order of the save": ("save.py", PERSIST_THEN_WRITE, "programs-follow-the-protocol"),
    "an order of recovery": (
        "recover.py",
        (
            "        yield REWRITE_RECORD\n",
            "        cells[ROOT if kept == 0 else KEPT + kept - 1] = best\n        break\n",
        ),
        "programs-follow-the-protocol",
    ),
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the gate needs of the repository."""
    folder = tmp_path_factory.mktemp("changed")
    left_out = shutil.ignore_patterns("__pycache__")
    for name in ("core", "proofs", "src"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=left_out)
    shutil.copy(ROOT / "constraints.txt", folder)
    return folder


def gate(tree: Path, *claims: str) -> tuple[int, dict[str, bool]]:
    only = [word for claim in claims for word in ("--only", claim)]
    finished = subprocess.run(
        [sys.executable, "-m", "proofs.check", "--json", *only],
        cwd=tree,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.stdout, finished.stderr
    return finished.returncode, {claim["name"]: claim["ok"] for claim in json.loads(finished.stdout)["claims"]}


def test_the_copy_stands_unchanged(tree: Path) -> None:
    assert gate(tree, "publish-over-older-only") == (0, {"publish-over-older-only": True})


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_named(tree: Path, change: str) -> None:
    name, (old, new), falls = CHANGES[change]
    path = tree / "core" / name
    source = path.read_text(encoding="utf-8")
    assert source.count(old) == 1
    path.write_text(source.replace(old, new), encoding="utf-8")
    try:
        status, said = gate(tree, falls)
    finally:
        path.write_text(source, encoding="utf-8")
    assert status == 1
    assert said == {falls: False}
