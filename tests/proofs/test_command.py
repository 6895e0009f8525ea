"""`python -m proofs.check`: what it prints, and the exit status that a build relies on."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import types
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest

from proofs import check
from proofs.claim import Claim, Verdict
from proofs.ledger import CLAIMS

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proofs.check", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def answering(verdict_of: object) -> types.ModuleType:
    """A tool that answers each claim by this function, or says nothing where it gives None."""

    def answer(claims: Sequence[Claim]) -> Iterator[Verdict]:
        for claim in claims:
            verdict = verdict_of(claim)  # type: ignore[operator]
            if verdict is not None:
                yield verdict

    tool = types.ModuleType("planted_tool")
    tool.check = answer  # type: ignore[attr-defined]
    return tool


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> object:
    """Puts a planted tool in the place of all of them."""

    def plant(verdict_of: object) -> None:
        monkeypatch.setitem(sys.modules, "planted_tool", answering(verdict_of))
        monkeypatch.setattr(check, "METHODS", {name: ("planted_tool", ()) for name in check.METHODS})

    return plant


def stands(claim: Claim) -> Verdict:
    return Verdict(claim.name, True, True, 0.1, "said the expected word", "f(1)")


def test_one_claim_as_json() -> None:
    finished = run("--only", "tag-order", "--json")
    assert finished.returncode == 0, finished.stderr
    answer = json.loads(finished.stdout)
    assert answer["ok"] is True
    (claim,) = answer["claims"]
    assert claim["name"] == "tag-order"
    assert claim["promises"] == ["monotone", "newest-survives"]
    assert claim["method"] == "crosshair"
    assert claim["strength"] == "confirmed"
    assert claim["twin_refuted"] is True
    assert claim["ok"] is True
    assert claim["bound"]
    assert claim["seconds"] > 0


def test_one_claim_as_a_table() -> None:
    finished = run("--only", "word-tag-order")
    assert finished.returncode == 0, finished.stderr
    assert "word-tag-order" in finished.stdout
    assert "refuted" in finished.stdout
    assert "tag-round-trip" not in finished.stdout


def test_an_unknown_claim_is_answered_by_those_that_there_are() -> None:
    finished = run("--only", "no-such-claim", "--json")
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert len(finished.stderr.splitlines()) == 1
    assert "no-such-claim" in finished.stderr
    assert all(claim.name in finished.stderr for claim in CLAIMS)


def test_an_unknown_option_is_bad_usage() -> None:
    assert run("--ony", "tag-order").returncode == 2


def test_all_stand(tool: object, capsys: pytest.CaptureFixture[str]) -> None:
    tool(stands)  # type: ignore[operator]
    assert check.main(["--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [claim["name"] for claim in answer["claims"]] == [claim.name for claim in CLAIMS]


@pytest.mark.parametrize(
    "verdict_of",
    [
        lambda claim: Verdict(claim.name, claim.name != "tag-order", True, 0.1, "not confirmed"),
        lambda claim: Verdict(claim.name, True, claim.name != "tag-order", 0.1, "the twin is not refuted"),
        lambda claim: stands(claim) if claim.name != "tag-order" else None,
        lambda claim: None,
    ],
    ids=["not-confirmed", "twin-survives", "one-left-out", "silent"],
)
def test_one_that_does_not_stand_fails_the_run(
    tool: object, verdict_of: object, capsys: pytest.CaptureFixture[str]
) -> None:
    tool(verdict_of)  # type: ignore[operator]
    assert check.main(["--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    assert "tag-order" in [claim["name"] for claim in answer["claims"] if not claim["ok"]]
    assert check.main([]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_the_table_needs_no_rich(
    tool: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool(stands)  # type: ignore[operator]
    for name in ("rich", "rich.console", "rich.table"):
        monkeypatch.setitem(sys.modules, name, None)
    assert check.main([]) == 0
    printed = capsys.readouterr().out
    assert all(claim.name in printed for claim in CLAIMS)


NEEDED = {
    "tag-order": "crosshair-tool",
    "word-tag-order": "cvc5",
    "row-survives": "cvc5",
    "counters-lose-nothing": "numba",
}


@pytest.mark.parametrize("claim", NEEDED)
def test_a_missing_tool_is_named(
    claim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = metadata.version

    def missing(package: str) -> str:
        if package == NEEDED[claim]:
            raise metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(check.metadata, "version", missing)
    assert check.main(["--only", claim, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"lastgood: {NEEDED[claim]} is not installed")
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("claim", NEEDED)
def test_another_version_is_named(
    claim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = metadata.version
    package = NEEDED[claim]
    monkeypatch.setattr(check.metadata, "version", lambda name: "0.0.1" if name == package else version(name))
    assert check.main(["--only", claim]) == 2
    error = capsys.readouterr().err
    assert f"{package} 0.0.1" in error
    assert check.pinned_versions()[package] in error


def test_what_cannot_be_checked_here_is_shown_and_does_not_fail(
    tool: object, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = Verdict("tag-order", False, False, 0.0, "skipped: no such processor", skipped=True)
    tool(lambda claim: skipped if claim.name == "tag-order" else stands(claim))  # type: ignore[operator]
    assert check.main([]) == 0
    printed = capsys.readouterr().out
    assert "skipped" in printed
    assert "SKIPPED here: tag-order" in printed


def test_an_unknown_method_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    strange = dataclasses.replace(CLAIMS[0], method="oracle")
    monkeypatch.setattr("proofs.ledger.CLAIMS", (strange,))
    assert check.main(["--only", strange.name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"lastgood: {strange.name} names the tool oracle")
    assert len(error.splitlines()) == 1


def test_a_version_that_nobody_fixed_is_refused() -> None:
    with pytest.raises(check.CannotCheck, match=r"constraints\.txt names no version of crosshair-tool"):
        check.require(["crosshair-tool"], {})


def test_another_copy_of_the_core_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Proving an installed copy while the tree holds another one would prove nothing about the tree."""
    installed = types.ModuleType("lastgood.core.rules")
    installed.__file__ = "/usr/lib/python3/site-packages/lastgood/core/rules.py"
    monkeypatch.setitem(sys.modules, "lastgood.core.rules", installed)
    assert check.main(["--only", "tag-order"]) == 2
    assert "run this from the root of the repository" in capsys.readouterr().err
