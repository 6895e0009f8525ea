"""An output path is looked at before the long work: whatever `open` would refuse afterwards is told, and nothing is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lastgood.output_path import why_not_writable


@pytest.mark.parametrize(
    "name", ["new.json", "there.json", "folder", "folder/", "", "no/such.json", "there.json/x", "link"]
)
def test_what_is_told_is_what_open_does(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tune --output DIRECTORY` measured for a minute and then could not write."""
    (tmp_path / "there.json").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir())
    reason = why_not_writable(name)
    assert sorted(os.listdir()) == before
    try:
        with open(name, "a"):
            pass
    except OSError:
        assert reason
    else:
        assert reason == ""


def test_what_one_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of the file that is there, or of the folder for a new one. Root may write all, so the answer is given here."""
    asked: list[str] = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(str(path)))
    there = tmp_path / "there.json"
    there.touch()
    assert why_not_writable(str(there)) == why_not_writable(str(tmp_path / "new.json")) == "Permission denied"
    assert asked == [str(there), str(tmp_path)]
