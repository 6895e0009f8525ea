"""The machine finds what is wrong with stores that people write, and nothing wrong with the one that is right."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from lastgood.crashsim.stateful import Adapter
from tests.crash.stateful.naive import WRONG, Careful, ForgetsTheName
from tests.crash.stateful.running import FULL, broken_promise, run


def test_the_right_one_is_right() -> None:
    run(Careful)


@pytest.mark.parametrize("store", WRONG, ids=lambda store: store.__name__)
def test_each_wrong_one_is_found(store: Any) -> None:
    """And the verdict names a promise that it breaks."""
    says = str(broken_promise(store))
    assert says.split(":")[0] in store.breaks, says


def test_the_page_shows_the_same_example_as_the_documentation_of_the_adapter() -> None:
    page = (Path(__file__).parents[3] / "docs" / "stateful.md").read_text()
    example = inspect.cleandoc(Adapter.__doc__ or "").partition("class Renaming")[2].partition("TestRenaming")[0]
    assert example.strip() in page


def test_what_is_found_is_made_small() -> None:
    """One save is all it takes to lose one whose name was never made durable."""
    notes = "\n".join(broken_promise(ForgetsTheName, FULL).__notes__)
    steps = [line for line in notes.splitlines() if line.startswith("state.")]
    assert 1 <= len(steps) <= 3, steps
    assert steps[-1] == "state.teardown()"
