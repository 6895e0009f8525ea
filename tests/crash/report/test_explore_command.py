"""`lastgood explore` says the right thing, with the right exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lastgood.cli import main
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.media import MEDIA


@pytest.fixture
def explore(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        status = main(["explore", *words])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_the_real_protocol_is_clean(explore: Any) -> None:
    status, out, err = explore("--saves", "2")
    assert (status, err) == (0, "")
    assert out.startswith(
        "clean: newest-survives, never-wrong, monotone, no-reuse, no-leak, loud, no-harm, bounded hold in 1,165 states"
    )
    assert "exhaustive within 2 savers, 2 saves, 2 writers, keep 1, 3 slots" in out


def test_a_pointer_only_compare_loses_the_newest(explore: Any) -> None:
    """The published listing's compare-and-swap: the newest acknowledged checkpoint is gone. And the string replays it."""
    status, out, err = explore("--mutant", "pointer-only-compare")
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith(
        "newest-survives is broken: after a process crash, recovery returns checkpoint 3 (slot 2)"
    )
    assert any("swaps the root from checkpoint 4 (slot 0) to checkpoint 3 (slot 2)" in line for line in lines)
    string = lines[-1].split()[-1]
    assert explore("--replay", string) == (1, out, "")


def test_a_counterexample_is_drawn_into_a_file(explore: Any, tmp_path: Path) -> None:
    page = tmp_path / "counterexample.html"
    status, out, _ = explore("--mutant", "drop-record-persist", "--html", str(page))
    assert status == 1
    assert "Missing: persist record of save 2 must return before save 2 is acknowledged." in out
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert out.splitlines()[-1].split()[-1] in text
    again = tmp_path / "again.html"
    explore("--replay", out.splitlines()[-1].split()[-1], "--html", str(again))
    assert again.read_text() == text


def test_what_is_clean_is_not_drawn(explore: Any, tmp_path: Path) -> None:
    page = tmp_path / "nothing.html"
    status, _, err = explore("--saves", "1", "--html", str(page))
    assert (status, err) == (0, "lastgood: nothing is broken, so there is nothing to draw\n")
    assert not page.exists()


def test_a_file_that_cannot_be_written_is_one_line(
    explore: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the search, whose verdict would be lost."""
    monkeypatch.delattr("lastgood.crashsim.command._explored")
    status, _, err = explore("--mutant", "drop-record-persist", "--html", str(tmp_path / "no" / "such.html"))
    assert status == 2
    assert err.count("\n") == 1
    assert "No such file or directory" in err


def test_samples_of_everything_are_not_asked_for(explore: Any) -> None:
    status, _, err = explore("--random", "10", "--exhaustive")
    assert (status, err.count("\n")) == (2, 1)
    assert "give one of them" in err


def test_a_harness_that_sees_nothing_says_so(explore: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it calls clean means nothing then, so it does not call anything clean."""
    monkeypatch.setattr(CoreSystem, "judge", lambda self, state: None)
    status, out, err = explore("--saves", "1")
    assert (status, out) == (1, "")
    assert "the harness is broken" in err


def test_one_mutant_on_one_medium_is_a_row(explore: Any) -> None:
    status, out, err = explore("--mutants", "--mutant", "drop-record-persist", "--medium", "block", "--json")
    assert (status, err) == (0, "")
    (row,) = json.loads(out)["rows"]
    assert (row["mutant"], row["medium"], row["outcome"]) == ("drop-record-persist", "block", "killed")
    assert row["lost_writes"] == 1
    assert explore("--replay", row["replay"])[0] == 1
    status, out, _ = explore("--mutants", "--mutant", "recovery-empties-first", "--medium", "page-cache", "--json")
    (row,) = json.loads(out)["rows"]
    assert (status, row["outcome"], row["exhaustive"], row["lost_writes"]) == (0, "equivalent", True, None)


def test_a_cut_made_by_a_machine_is_a_mutant_too(explore: Any) -> None:
    status, out, _ = explore("--mutant", "without-persist-record", "--json")
    found = json.loads(out)
    assert (status, found["promise"], found["lost_writes"]) == (1, "newest-survives", 1)
    assert explore("--replay", found["replay"], "--json")[1].count(found["replay"]) == 1


def test_json_is_one_object(explore: Any) -> None:
    status, out, _ = explore("--mutant", "drop-record-persist", "--json", "--digests", "trusted")
    found = json.loads(out)
    assert (status, found["verdict"], found["promise"]) == (1, "violated", "newest-survives")
    assert found["bounds"]["slots"] == 3
    assert found["digests"] == ["trusted"]
    assert found["replay"].startswith("x1.drop-record-persist.")
    status, out, _ = explore("--saves", "1", "--json")
    found = json.loads(out)
    assert (status, found["verdict"], found["promise"], found["exhaustive"]) == (0, "clean", None, True)
    assert found["states"] > 0
    assert found["images"] > 0
    assert found["seconds"] >= 0


def test_random_walks_do_not_claim_to_be_exhaustive(explore: Any) -> None:
    status, out, _ = explore("--random", "10", "--savers", "3", "--saves", "3")
    assert status == 0
    assert "NOT exhaustive" in out


def test_a_walk_by_priority_changes_it_as_often_as_its_depth_allows(explore: Any) -> None:
    """The defect takes a saver that falls behind once: at depth 1 none does, at depth 2 it is met at once."""
    words = ("--mutant", "pointer-only-compare", "--random", "100", "--json")
    status, out, _ = explore(*words, "--depth", "1")
    assert (status, json.loads(out)["exhaustive"]) == (0, False)
    status, out, _ = explore(*words, "--depth", "2")
    assert (status, json.loads(out)["verdict"]) == (1, "violated")
    assert explore("--replay", json.loads(out)["replay"])[0] == 1


def test_the_list_names_everything(explore: Any) -> None:
    status, out, _ = explore("--list")
    assert status == 0
    assert "pointer-only-compare" in out
    assert "page-cache" in out
    listed = json.loads(explore("--list", "--json")[1])
    assert listed["mutants"]["drop-payload-persist"]["trusted"] is None
    assert listed["media"] == list(MEDIA)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mutant", "no-such"], "unknown mutant 'no-such'; known: drop-payload-persist, "),
        (["--medium", "tape"], "unknown medium 'tape'; known: page-cache, strict, "),
        (["--promise", "speed"], "unknown promise 'speed'; known: all, newest-survives, "),
        (["--savers", "0"], "--savers must be 1 to 9, not 0"),
        (["--keep", "99"], "--keep must be 1 to 16, not 99"),
        (["--random", "0"], "--random must be 1 to 1000000, not 0"),
        (["--random", "9", "--depth", "0"], "--depth must be 1 to 100, not 0"),
        (["--random", "9", "--depth", "1000000000"], "--depth must be 1 to 100, not 1000000000"),
        (["--depth", "3"], "--depth is of random walks: say how many with --random N"),
        (["--seed", "3"], "--seed is of random walks: say how many with --random N"),
        (["--replay", "x9.y"], "version x9"),
        (["--replay", "nonsense"], "not a replay string"),
        (["--replay", "x1.real.tape.2-4-2-1-0-0-0.t.loud.e0.K"], "medium that is not known: tape"),
    ],
)
def test_a_bad_choice_is_one_line_and_status_2(explore: Any, words: list[str], message: str) -> None:
    status, out, err = explore(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_bounds_too_large_are_said_beforehand(explore: Any) -> None:
    """With an estimate and with what to do instead; who insists, or takes a sample, is not stopped."""
    status, out, err = explore("--savers", "4", "--saves", "9")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("lastgood: these bounds are too large to finish: about ")
    assert "--random" in err
    status, _, err = explore("--savers", "4", "--saves", "9", "--random", "1")
    assert (status, err) == (0, "")
