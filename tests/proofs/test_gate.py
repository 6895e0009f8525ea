"""The gate is tested by what it must not let through: planted claims that are wrong, empty, slow or silent."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs.crosshair_tool import Finding, Job, Worker, verdict
from proofs.ledger import CLAIMS

PLANTED = '''
"""Functions with contracts, most of them not worth their name."""

import os


def holds(number: int) -> int:
    """
    pre: 0 <= number
    post: __return__ > number
    post: __return__ == number + 1
    """
    return number + 1


def wrong(number: int) -> int:
    """
    post: __return__ > number
    """
    return number + 1 if number != 123456 else number


def half_wrong(number: int) -> int:
    """
    post: __return__ >= number
    post: __return__ > number
    """
    return number


def vacuous(number: int) -> int:
    """
    pre: number < 0 and number > 0
    post: __return__ > number
    """
    return number


def unmet(number: int) -> int:
    """
    pre: pow(number, 3) - 3 * number == 7919 * 104729 * 1299709
    post: __return__ > number
    """
    return number + 1


def untyped(number):
    """
    post: __return__ > number
    """
    return number + 1


def without_contract(number: int) -> int:
    """Say nothing."""
    return number


def slow(numbers: list[int]) -> int:
    """
    post: __return__ <= max(numbers, default=0) * len(numbers) or not numbers or min(numbers) < 0
    """
    return sum(numbers)


def raises(number: int) -> int:
    """
    post: True
    """
    return 10 // number


def misspelt(number: int) -> int:
    """
    post: __return__ > nunber
    """
    return number + 1


def dies(number: int) -> int:
    """
    post: True
    """
    os._exit(0)
'''

MUST_FAIL = (
    "wrong",
    "half_wrong",
    "vacuous",
    "unmet",
    "untyped",
    "without_contract",
    "slow",
    "raises",
    "misspelt",
    "absent",
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    (folder / "planted_claims.py").write_text(textwrap.dedent(PLANTED), encoding="utf-8")
    (folder / "planted_unreadable.py").write_text("def (", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def worker(planted: Path) -> Iterator[Worker]:
    with Worker(search_path=[planted]) as running:
        yield running


def examine(worker: Worker, name: str) -> Finding:
    return worker.examine(Job(f"planted_claims.{name}", seconds=2.0))


def test_what_holds_is_confirmed(worker: Worker) -> None:
    finding = examine(worker, "holds")
    assert finding.confirmed
    assert finding.posts == 2
    assert not finding.refuted


@pytest.mark.parametrize("name", MUST_FAIL)
def test_what_must_not_pass_does_not(worker: Worker, name: str) -> None:
    assert not examine(worker, name).confirmed


@pytest.mark.parametrize("name", ["wrong", "half_wrong"])
def test_a_wrong_one_is_refuted_by_an_example(worker: Worker, name: str) -> None:
    finding = examine(worker, name)
    assert finding.refuted
    assert finding.example.startswith(f"{name}(")


@pytest.mark.parametrize("name", [name for name in MUST_FAIL if not name.endswith("wrong")])
def test_silence_and_doubt_refute_nothing(worker: Worker, name: str) -> None:
    """A twin is refuted by an example only: one that merely fails to be confirmed counts as having survived."""
    assert not examine(worker, name).refuted


def test_a_module_that_cannot_be_read_is_not_confirmed(worker: Worker) -> None:
    finding = worker.examine(Job("planted_unreadable.anything"))
    assert not finding.confirmed
    assert any("SyntaxError" in line for line in finding.lines)


def test_a_tool_that_dies_confirms_nothing_and_the_next_claim_is_still_checked(worker: Worker) -> None:
    finding = examine(worker, "dies")
    assert not finding.confirmed
    assert not finding.refuted
    assert examine(worker, "holds").confirmed


def test_an_example_that_plain_python_does_not_break_refutes_nothing() -> None:
    line = "planted_claims.py:1: error: false when calling holds(1) (which returns 2)"
    assert not Finding(posts=1, status=1, lines=(line,), example="holds(1)", replayed=False, seconds=0.0).refuted


@pytest.mark.parametrize(
    ("posts", "status", "lines"),
    [
        (1, 0, []),
        (2, 0, ["f.py:3: info: Confirmed over all paths."]),
        (1, 0, ["f.py:3: info: Not confirmed."]),
        (1, 0, ["f.py:3: info: Unable to meet precondition."]),
        (1, 1, ["f.py:3: info: Confirmed over all paths."]),
        (1, 0, ["f.py:3: info: Confirmed over all paths.", "f.py:9: info: Not confirmed."]),
        (2, 0, ["f.py:3: info: Confirmed over all paths.", "f.py:3: info: Confirmed over all paths."]),
        (0, 0, []),
    ],
)
def test_only_one_confirmation_for_each_condition_confirms(posts: int, status: int, lines: list[str]) -> None:
    assert not Finding(posts, status, tuple(lines), "", False, 0.0).confirmed


def test_a_claim_whose_twin_survives_does_not_stand() -> None:
    confirmed = Finding(1, 0, ("f.py:3: info: Confirmed over all paths.",), "", False, 0.0)
    assert confirmed.confirmed
    result = verdict(CLAIMS[0], confirmed, confirmed)
    assert not result.ok
    assert "twin" in result.said
