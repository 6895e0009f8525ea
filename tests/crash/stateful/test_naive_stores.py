"""The machine finds what is wrong with stores that people write, and nothing wrong with the one that is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from lastgood.crashsim.stateful import BrokenPromise, machine_for
from tests.crash.stateful.naive import WRONG, Careful, ForgetsTheName
from tests.crash.stateful.running import broken_promise, examples, run


def test_the_right_one_is_right() -> None:
    run(Careful)


@pytest.mark.parametrize("store", WRONG, ids=lambda store: store.__name__)
def test_each_wrong_one_is_found(store: Any) -> None:
    """And the verdict names a promise that it breaks."""
    says = broken_promise(store)
    assert says.split(":")[0] in store.breaks, says


def test_what_is_found_is_made_small() -> None:
    """One save is all it takes to lose one whose name was never made durable."""
    patient = settings(examples(), derandomize=True, database=None, phases=[Phase.generate, Phase.shrink])
    with pytest.raises(BrokenPromise) as found:
        run_state_machine_as_test(machine_for(ForgetsTheName), settings=patient)
    steps = [line for line in "\n".join(found.value.__notes__).splitlines() if line.startswith("state.")]
    assert 1 <= len(steps) <= 3, steps
    assert steps[-1] == "state.teardown()"
