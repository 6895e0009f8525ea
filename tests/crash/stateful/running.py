"""Runs the state machine over one kind of store, and says what it finds.

Many short runs, each with a seed of its own, rather than one long one: the later examples of a run are mostly variations
of its earlier ones. By night the seeds are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from lastgood.crashsim.stateful import Adapter, BrokenPromise, machine_for

EXAMPLES = 20
MOST = 1500
"""Examples of one store at night: some minutes."""
STEPS = 30
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large]
FULL = [Phase.generate, Phase.shrink]


def look(make_adapter: Callable[[], Adapter], number: int, phases: list[Phase]) -> None:
    """One run with this seed."""
    looking = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        derandomize=False,
        database=None,
        phases=phases,
        suppress_health_check=PATIENT,
    )
    run_state_machine_as_test(seed(number)(machine_for(make_adapter)), settings=looking)


def run(make_adapter: Callable[[], Adapter], share: float = 1) -> None:
    """Every promise holds, as far as the profile looks; `share` is for a store that is one of several."""
    profile = settings.default
    for number in range(max(1, int(min(profile.max_examples, MOST) * share) // EXAMPLES)):
        look(make_adapter, number if profile.derandomize else random.randrange(2**32), FULL)


def broken_promise(make_adapter: Callable[[], Adapter], phases: list[Phase] = FULL[:1]) -> BrokenPromise:
    """What the machine finds within the hundred examples of the profile `ci`."""
    for number in range(100 // EXAMPLES):
        try:
            look(make_adapter, number, phases)
        except BrokenPromise as broken:
            return broken
    pytest.fail("nothing was found")
