"""Runs the state machine over one kind of store, and says what it finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from lastgood.crashsim.stateful import Adapter, BrokenPromise, machine_for

STEPS = 30
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large]


def examples(share: float = 1) -> settings:
    """The profile's settings, with fewer examples where a store is one of several."""
    count = max(10, int(settings.default.max_examples * share))
    return settings(max_examples=count, stateful_step_count=STEPS, suppress_health_check=PATIENT)


def run(make_adapter: Callable[[], Adapter], share: float = 1) -> None:
    """Every promise holds, as far as the profile looks."""
    run_state_machine_as_test(machine_for(make_adapter), settings=examples(share))


def broken_promise(make_adapter: Callable[[], Adapter]) -> str:
    """What the machine finds within the profile `ci`; nothing is made smaller, which takes longer than finding it."""
    looking = settings(examples(), max_examples=100, derandomize=True, database=None, phases=[Phase.generate])
    with pytest.raises(BrokenPromise) as found:
        run_state_machine_as_test(machine_for(make_adapter), settings=looking)
    return str(found.value)
