"""A scratch project that has copied core/ under a name of its own, and cannot import lastgood or torch.

Every interpreter of the project loads its `sitecustomize` first, which refuses both, so that a forgotten absolute import
cannot be served by whatever this machine has installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import lastgood.core

NAME = "acme_persistence"

REFUSE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("lastgood", "torch", "core", "models", "crashsim"):
            raise ModuleNotFoundError(f"refused: {name}", name=name)
        return None

sys.meta_path.insert(0, Refuse())
"""


@dataclass(frozen=True)
class Project:
    """Where it is."""

    root: Path

    def environment(self) -> dict[str, str]:
        """Nothing of ours on the path, and a cache of machine code of its own."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return kept | {"PYTHONPATH": str(self.root), "NUMBA_CACHE_DIR": str(self.root / "cache")}

    def run(self, *words: object, status: int | None = 0) -> subprocess.CompletedProcess[str]:
        """An interpreter of the project; `status` is the exit status it must have."""
        command = [sys.executable, *(str(word) for word in words)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=240, cwd=self.root, env=self.environment()
        )
        assert status is None or done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def command(self, *words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        """`python -m thatname ...`."""
        return self.run("-m", NAME, *words, status=status)


def make_project(root: Path) -> Project:
    """Copy the flat folder, nothing else."""
    core = Path(lastgood.core.__file__).parent
    (root / NAME).mkdir(parents=True)
    for source in core.glob("*.py"):
        shutil.copy(source, root / NAME)
    (root / "sitecustomize.py").write_text(REFUSE)
    return Project(root)
