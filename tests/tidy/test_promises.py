"""Each promise is cited by name where it is kept, where it is tested and where it is made."""

from __future__ import annotations

import re

import pytest

from tests.tidy.tree import files, name_of

PROMISES = ("newest-survives", "never-wrong", "monotone", "no-reuse", "no-leak", "loud", "no-harm", "bounded")
KEPT = [path.read_text() for path in files("core")]
TESTED = [path.read_text() for path in files("tests") if not name_of(path).startswith("tests/tidy/")]
MADE = [path.read_text() for path in files("README.md", suffix=".md")]


def is_cited(promise: str, texts: list[str]) -> bool:
    """In backticks or quotes: `loud` and `bounded` are also words of the language."""
    return any(re.search(rf"[`\"']{promise}[`\"':]", text) for text in texts)


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_cited_where_it_is_kept(promise: str) -> None:
    assert is_cited(promise, KEPT), "core/ never says where it keeps this promise"


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_cited_where_it_is_tested(promise: str) -> None:
    assert is_cited(promise, TESTED), "no test says that it tests this promise"


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_is_made_in_the_readme(promise: str) -> None:
    assert is_cited(promise, MADE)


def test_a_promise_in_passing_is_no_citation() -> None:
    assert is_cited("loud", ["promise `loud`", "x"])
    assert is_cited("no-leak", ['assert free, "no-leak: a slot is lost"'])
    assert not is_cited("loud", ["a cloud of loud errors"])
