"""`inspect` and `verify` of a copied core: what is printed where, and the exit status that scripts rely on."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.vendoring.project import NAME, Project

MAKE = f"""
import sys
from {NAME} import Store
path, steps = sys.argv[1], [int(step) for step in sys.argv[2:]]
with Store.create(path, slot_bytes=20_000, chunk_bytes=4096, in_flight=2, keep=2) as store:
    for step in steps:
        store.save(bytes([step]) * 20_000, step=step, meta=b"note").wait()
"""

COMMANDS = ("inspect", "verify")


def make(project: Project, path: Path, *steps: int) -> Path:
    project.run("-c", MAKE, path, *steps)
    return path


@pytest.fixture(scope="module")
def store(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(project, tmp_path_factory.mktemp("store") / "store", 1, 2, 3)


@pytest.fixture(scope="module")
def damaged(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten bytes of the newest payload are wrong."""
    path = make(project, tmp_path_factory.mktemp("damaged") / "store", 1, 2, 3)
    newest = json.loads(project.command("inspect", path, "--json").stdout)["checkpoints"][0]
    with open(path / f"slot-{newest['slot']:04d}", "r+b") as file:
        file.seek(4096 + 9000)
        file.write(b"\xff" * 10)
    return path


def error_line(project: Project, *words: object) -> str:
    """The only line of standard error, of a command that ends with 2 and prints nothing else."""
    done = project.command(*words, status=2)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def only_object(text: str) -> dict[str, Any]:
    """The one JSON object that a text is."""
    assert len(text.splitlines()) == 1
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("extra", [[], ["--json"]], ids=["text", "json"])
def test_what_is_no_store_is_bad_input(project: Project, tmp_path: Path, command: str, extra: list[str]) -> None:
    """Nothing there, a file, an empty directory, another directory: one line that names the path, status 2."""
    file, empty, other = tmp_path / "file", tmp_path / "empty", tmp_path / "other"
    file.write_text("x")
    empty.mkdir()
    other.mkdir()
    (other / "notes.txt").write_text("x")
    for path, reason in (
        (tmp_path / "missing", "does not exist"),
        (file, "is a file"),
        (empty, "empty"),
        (other, "without a store"),
    ):
        line = error_line(project, command, path, *extra)
        assert str(path) in line
        assert reason in line
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file", "notes.txt", "other"]


def test_bad_usage_has_status_2(project: Project) -> None:
    for words in ([], ["verify"], ["no-such-command", "x"], ["verify", "x", "--no-such-option"]):
        done = project.command(*words, status=2)
        assert done.stdout == ""
        assert f"python -m {NAME}" in done.stderr


def test_inspect_says_what_is_there(project: Project, store: Path) -> None:
    text = project.command("inspect", store).stdout
    assert "2 saves in flight, keeps 2" in text
    assert "no writer is at work" in text
    assert [line.split()[1] for line in text.splitlines() if line.startswith("  step ")] == ["3", "2"]
    facts = only_object(project.command("inspect", store, "--json").stdout)
    assert facts["path"] == str(store)
    assert facts["acknowledged"] is True
    assert facts["passed_over"] == []
    assert [checkpoint["step"] for checkpoint in facts["checkpoints"]] == [3, 2]
    assert {checkpoint["bytes"] for checkpoint in facts["checkpoints"]} == {20_000}
    assert {bytes.fromhex(checkpoint["meta"]) for checkpoint in facts["checkpoints"]} == {b"note"}
    taken = sum(os.stat(store / name).st_size for name in os.listdir(store) if name != "lock")
    assert facts["total_bytes"] == taken


def test_verify_says_that_all_is_well(project: Project, store: Path) -> None:
    done = project.command("verify", store)
    assert re.search(r"\b2 checkpoints whole, 0 files damaged", done.stdout)
    assert done.stderr == ""
    facts = only_object(project.command("verify", store, "--json").stdout)
    assert (facts["ok"], facts["whole"], facts["damaged"]) == (True, 2, 0)
    assert sorted(file["step"] for file in facts["files"] if file["state"] == "whole" and "step" in file) == [2, 3]


def test_verify_of_a_damaged_store_has_status_1(project: Project, damaged: Path) -> None:
    """And says which slot, and where; looking changes nothing."""
    done = project.command("verify", damaged, status=1)
    assert re.search(r"\b1 checkpoints? whole, 1 files? damaged", done.stdout)
    assert "chunk 2" in done.stdout
    facts = only_object(project.command("verify", damaged, "--json", status=1).stdout)
    assert (facts["ok"], facts["whole"], facts["damaged"]) == (False, 1, 1)
    assert [file["step"] for file in facts["files"] if file["state"] == "damaged"] == [3]
    project.command("inspect", damaged)  # only records are looked at, and these are right
    project.command("verify", damaged, status=1)


def test_a_store_without_checkpoints_is_well(project: Project, tmp_path: Path) -> None:
    path = make(project, tmp_path / "store")
    assert "no checkpoint yet" in project.command("inspect", path).stdout
    assert only_object(project.command("verify", path, "--json").stdout)["ok"] is True


def test_a_store_that_has_lost_everything_is_not_well(project: Project, tmp_path: Path) -> None:
    """Acknowledged once, and nothing whole now: that is no fresh store."""
    path = make(project, tmp_path / "store", 1)
    for file in path.glob("slot-*"):
        file.write_bytes(b"\0" * file.stat().st_size)
    assert "acknowledged once" in project.command("inspect", path).stdout
    assert only_object(project.command("verify", path, "--json", status=1).stdout)["ok"] is False


def test_looking_leaves_a_store_as_it_is(project: Project, damaged: Path) -> None:
    def stamps() -> dict[str, tuple[int, int]]:
        return {file.name: (file.stat().st_mtime_ns, file.stat().st_size) for file in damaged.iterdir()}

    before = stamps()
    for command in COMMANDS:
        project.command(command, damaged, status=int(command == "verify"))
    assert stamps() == before
