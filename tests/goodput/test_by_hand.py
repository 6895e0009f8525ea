"""Replays of a few events whose outcome was worked out on paper. Times in seconds, an iteration takes one."""

from __future__ import annotations

import pytest

from lastgood.goodput.costs import Costs
from lastgood.goodput.device import Device
from tests.goodput.playing import COSTS, play, trace


def test_synchronous_one_loss() -> None:
    """Cycle: 4 steps, 2 s held. At 15 s: 2 cycles (12 s) and 3 steps; steps 9, 10, 11 are redone, then 4 s of waiting."""
    outcome = play("synchronous", trace((0, 2), (15, 1), (30, 1)), 4)
    assert (outcome.failures, outcome.redone_steps, outcome.most_redone_steps) == (1, 3, 3)
    assert outcome.lost == 3 * 2
    assert outcome.down == 4 * 1
    # Until 15 s: 8 steps kept, 4 s held, on two GPUs. From 19 s: one cycle, 4 steps, 1 s of the second hold on one GPU.
    assert outcome.held == pytest.approx(4 * 2 + 2 + 1)
    assert outcome.kept == pytest.approx(8 * 2 + 8)
    assert outcome.goodput == pytest.approx(24 / 45)


def test_a_save_in_flight_does_not_count() -> None:
    """checkfreq: save of step 4 at 4 s, durable at 6 s. Lost at 5 s everything is redone, lost at 6.5 s two steps."""
    assert play("checkfreq", trace((0, 1), (5, 0), (6, 0)), 4).redone_steps == 5
    assert play("checkfreq", trace((0, 1), (6.5, 0), (7, 0)), 4).redone_steps == 2


def test_one_in_flight_waits_for_the_one_before() -> None:
    """Every step, writing takes 2 s: step 1 at 1 s, then a step per 2 s. In 9 s: 1 + 4 steps, 4 s held."""
    outcome = play("checkfreq", trace((0, 1), (9, 1)), 1)
    assert outcome.held == pytest.approx(4)
    assert outcome.kept == pytest.approx(5)


def test_several_in_flight_wait_later() -> None:
    """Four places, saves at 1, 2, 3, … s end at 3, 5, 7, 9, 11: the eighth, at 8 s, waits until 9, the next from 10 to 11."""
    outcome = play("lastgood", trace((0, 1), (11, 1)), 1)
    assert outcome.kept == pytest.approx(9)
    assert outcome.held == pytest.approx(2)


def test_a_part_of_a_step_is_lost() -> None:
    outcome = play("checkfreq", trace((0, 3), (2.5, 2), (3, 2)), 1)
    assert outcome.redone_steps == 2
    assert outcome.lost == pytest.approx(2 * 3), "2 steps and the half since the hold"


def test_capacity_follows_the_gpus_present_and_who_comes_is_no_failure() -> None:
    outcome = play("just-in-time", trace((0, 2), (5, 4), (10, 4)), 1)
    assert (outcome.failures, outcome.goodput) == (0, 1.0)
    assert outcome.kept == 5 * 2 + 5 * 4
    assert outcome.iterations_per_second == pytest.approx(30 / 4 / 10)


def test_work_is_lost_at_the_size_it_was_done_at() -> None:
    """Steps 1-4 on 2 GPUs, 5-8 on 4; the save of step 4 (at 4 s) is durable at 6 s, that of step 8 would be at 10 s."""
    outcome = play("checkfreq", trace((0, 2), (4, 4), (9, 3), (10, 3)), 4)
    assert outcome.redone_steps == 5
    assert outcome.lost == 5 * 4
    assert outcome.kept == 4 * 2


def test_nobody_there_is_not_downtime_and_starting_again_takes_a_restart() -> None:
    outcome = play("synchronous", trace((0, 1), (7, 0), (20, 1), (30, 1)), 4)
    assert outcome.available == 7 + 10
    assert outcome.failures == 1
    assert outcome.down == 4
    assert outcome.kept == 4 + 4 + 0
    assert outcome.lost == 1


def test_a_loss_while_restarting_begins_the_restart_anew() -> None:
    once = play("synchronous", trace((0, 3), (6, 2), (20, 2)), 4)
    twice = play("synchronous", trace((0, 3), (6, 2), (8, 1), (20, 1)), 4)
    assert once.down == 4 * 2
    assert twice.down == 2 * 2 + 4 * 1
    assert (twice.failures, twice.redone_steps) == (2, 0)


def test_memory_survives_one_holder_not_both() -> None:
    """gemini: a save is in the peer's memory half a second after its step; durable ones come every three hours."""
    one_left = play("gemini", trace((0, 2), (10.75, 1), (12, 1)), 1)
    assert (one_left.fallbacks, one_left.redone_steps) == (0, 0)
    nobody = play("gemini", trace((0, 2), (10.75, 0), (12, 0)), 1)
    assert (nobody.fallbacks, nobody.redone_steps) == (1, 10)
    assert nobody.goodput == 0


def test_a_fallback_goes_back_behind_the_run_before() -> None:
    """Durable at 7 s: step 5. The loss at 10.75 recovers step 10 from memory; the bulk loss at 20.75 finds none."""
    outcome = play(
        "gemini", trace((0, 4), (10.75, 3), (20.75, 0), (30, 0)), 1, backstop_seconds=5, replicas=3, idle_fraction=1
    )
    # The second run began at 10.75 + 3 + 0.5 = 14.25. Its backstop was due at 10, began with it, and ended at 16.25: step 10.
    assert (outcome.failures, outcome.fallbacks) == (2, 1)
    assert outcome.redone_steps == 6
    assert outcome.kept == 10 * 4


def test_survivors_save_after_the_failure() -> None:
    """just-in-time: nothing is redone but the step under way; recovery saves (2 s) before it loads."""
    outcome = play("just-in-time", trace((0, 4), (5.5, 3), (20, 3)), 1)
    assert outcome.redone_steps == 0
    assert outcome.lost == pytest.approx(0.5 * 4)
    assert outcome.down == pytest.approx((3 + 2 + 1) * 3)


def test_a_spread_capture_has_the_state_of_its_end() -> None:
    """A capture of four steps' length, spread over four steps: what counts is the state after them."""
    costs = Costs(
        iteration_seconds=1.0, update_seconds=1e-9, capture_seconds=4.0, write_seconds=0.5, load_seconds=0,
        restart_seconds=0, gradient_fraction=0.01,
    )  # fmt: skip
    outcome = play("gockpt", trace((0, 1), (13.8, 0), (14, 0)), 5, costs)
    # Requested at 5 s, four steps, each with a quarter of the state and 0.015 s of gradients; written half a second later.
    assert outcome.most_redone_steps == 13 - 9
    assert outcome.held == pytest.approx(2 * 0.06)


def test_a_device_shared_fairly_and_oldest_first() -> None:
    fair, oldest = (Device(2.0, 1.0, oldest_first=first) for first in (False, True))
    for device in (fair, oldest):
        for moment in (0.0, 0.0, 0.0):
            device.submit(moment)
    assert [fair.end_of(number) for number in range(3)] == pytest.approx([3.0, 3.0, 3.0])
    # Two may use half each until 2 s, when the third begins, alone.
    assert [oldest.end_of(number) for number in range(3)] == pytest.approx([2.0, 2.0, 4.0])


def test_a_write_that_takes_no_time() -> None:
    assert play("lastgood", trace((0, 1), (10, 0), (11, 0)), 1, COSTS, write_seconds=0.0).redone_steps == 0
