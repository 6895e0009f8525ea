"""The real store under the state machine: all promises hold; and each bug that is planted in it is found."""

from __future__ import annotations

from typing import Any

import pytest

from lastgood.core.jit import JIT
from lastgood.crashsim.core_stateful import CoreAdapter
from lastgood.crashsim.stateful.machine import machine_for
from tests.crash.stateful.changing import CHANGES, Changing
from tests.crash.stateful.planted import PLANTED, Planted
from tests.crash.stateful.running import broken_promise, run

pytestmark = pytest.mark.skipif(not JIT, reason="digests of every image take too long in Python")

STORES: dict[str, tuple[float, dict[str, Any]]] = {
    "two in flight, one kept": (0.6, {}),
    "two in flight, two kept": (0.4, {"keep": 2}),
    "one in flight": (0.2, {"in_flight": 1}),
    "three in flight, three kept": (0.2, {"in_flight": 3, "keep": 3}),
    "digests ignored": (0.4, {"ignores_digests": True}),
    "one persist": (0.2, {"persists": 1, "keep": 2}),
    "skipping": (0.2, {"overload": "skip"}),
    "replacing": (0.2, {"overload": "replace", "keep": 2}),
}
CHANGING: dict[str, tuple[float, dict[str, Any]]] = {
    "four slots": (0.4, {"in_flight": 2, "keep": 2}),
    "three slots, one persist": (0.2, {"in_flight": 1, "keep": 2, "persists": 1}),
}


@pytest.mark.parametrize("name", STORES)
def test_every_promise_holds(name: str) -> None:
    """`newest-survives`, `never-wrong`, `monotone`, `no-reuse`, `no-leak`, `loud`, `no-harm`, `bounded`."""
    share, options = STORES[name]
    run(lambda: CoreAdapter(**options), share)


@pytest.mark.parametrize("name", CHANGING)
def test_also_when_it_is_opened_in_another_way_each_time(name: str) -> None:
    """And beside a reader that stays."""
    share, options = CHANGING[name]
    run(lambda: Changing(**options), share)


@pytest.mark.parametrize("bug", PLANTED.values(), ids=PLANTED.keys())
def test_each_planted_bug_is_found(bug: Planted) -> None:
    """Within the profile `ci`, by a promise that it breaks."""
    says = str(broken_promise(lambda: CoreAdapter(**bug.options)))
    assert says.split(":")[0] in bug.breaks, f"{bug.says}\n{says}"


@pytest.mark.parametrize("bug", CHANGES.values(), ids=CHANGES.keys())
def test_each_bug_of_opening_in_another_way_is_found(bug: Planted) -> None:
    says = str(broken_promise(lambda: Changing(**bug.options)))
    assert says.split(":")[0] in bug.breaks, f"{bug.says}\n{says}"


def test_a_save_that_was_displaced_right_after_it_was_published_holds_nothing_any_more() -> None:
    """It stands behind its swap of the root, a newer one has swapped again and freed its slot: that is no `no-reuse`."""
    state = machine_for(lambda: CoreAdapter(ignores_digests=True))()
    turns = [(14, 0), (0, 0), (0, 2), (0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (7, 1), (0, 0)]
    for steps, which in turns:
        state.begin(size=0, steps=steps, which=which)
    state.teardown()
