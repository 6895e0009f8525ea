"""The plan of the kills: as many as asked, spread over the run, of every kind, the same for the same seed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lastgood.models.demo_plan import KINDS, is_due, plan_kills


@given(kills=st.integers(0, 30), steps=st.integers(10, 1000), every=st.integers(1, 50), seed=st.integers(0, 100))
def test_every_kill_can_land(kills: int, steps: int, every: int, seed: int) -> None:
    plan = plan_kills(kills, steps, every, seed)
    assert len(plan) == kills
    assert plan == plan_kills(kills, steps, every, seed)
    at_steps = [kill.step for kill in plan if kill.kind != "starting"]
    assert all(1 <= step <= steps - 3 for step in at_steps)
    assert all(is_due(kill.step, steps, every) for kill in plan if kill.kind == "saving")
    assert all(0.0 <= kill.fraction < 1.0 for kill in plan)


@given(seed=st.integers(0, 1000))
def test_five_kills_are_spread_and_of_every_kind(seed: int) -> None:
    plan = plan_kills(5, 300, 2, seed)
    assert {kill.kind for kill in plan} == set(KINDS)
    at_steps = [kill.step for kill in plan if kill.kind != "starting"]
    assert at_steps == sorted(at_steps)
    assert at_steps[0] <= 75
    assert at_steps[-1] >= 210


def test_the_last_step_is_saved_though_it_is_not_a_multiple() -> None:
    assert [step for step in range(1, 11) if is_due(step, 10, 4)] == [4, 8, 10]
