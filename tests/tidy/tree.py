"""The files that the tidy checks read, and how a finding is shown."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("core", "models", "crashsim")
PACKAGE = (*ROOMS, "src/lastgood")
PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
LINKS = {ROOT / "src" / "lastgood" / room for room in ROOMS}


def files(*places: str, suffix: str = ".py") -> list[Path]:
    """Every file with this suffix in these folders (or of these names), once: links to the rooms are not followed."""
    found = []
    for place in places:
        path = ROOT / place
        found += [path] if path.is_file() else sorted(path.rglob(f"*{suffix}"))
    return [
        path
        for path in found
        if path.suffix == suffix and "__pycache__" not in path.parts and not LINKS & set(path.parents)
    ]


def name_of(path: Path) -> str:
    """The path as people write it: from the root of the repository. For `parametrize`, one test a file."""
    return path.relative_to(ROOT).as_posix()
