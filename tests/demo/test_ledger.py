"""The checks on what the training reports, on made-up reports: each lie must be noticed."""

from __future__ import annotations

from typing import Any

import pytest

from lastgood.models.demo_ledger import DemoFailed, Ledger

STEPS = 10
DIGESTS = {"parameters": "p", "moments": "m"}


def step(number: int, loss: float = 1.0, samples: tuple[int, ...] = (1, 2), beside: int = 0) -> dict[str, Any]:
    facts = {"loss": loss.hex(), "samples": list(samples), "seconds": 0.5 + beside, "beside": beside}
    return {"report": "step", "step": number, **facts}


def finished(**digests: str) -> dict[str, Any]:
    return {
        "report": "finished",
        "digests": DIGESTS | digests,
        "state_bytes": 1,
        "synchronous_save_seconds": 0.25,
    }


def restored(number: int) -> dict[str, Any]:
    return {"report": "restored", "step": number}


def saved(stalled: float = 0.0, in_flight: int = 1) -> dict[str, Any]:
    return {"report": "saved", "stalled": stalled, "in_flight": in_flight}


def durable(number: int) -> dict[str, Any]:
    return {"report": "durable", "step": number}


def hear(ledger: Ledger, *reports: dict[str, Any]) -> Ledger:
    for report in reports:
        ledger.hear(report)
    return ledger


@pytest.fixture
def oracle() -> Ledger:
    return hear(Ledger(STEPS, 2), restored(0), *[step(number) for number in range(1, STEPS + 1)], finished())


@pytest.fixture
def killed(oracle: Ledger) -> Ledger:
    """A training that was killed after step 5; its save of step 4 is durable."""
    ledger = Ledger(STEPS, 2, oracle)
    hear(ledger, restored(0), step(1), step(2), saved(0.25), durable(2), step(3), step(4), saved(0.25), durable(4))
    hear(ledger, step(5))
    assert ledger.note_kill() == "computing"
    return ledger


def test_an_honest_run_is_identical_and_counted(killed: Ledger) -> None:
    hear(killed, restored(4), *[step(number) for number in range(5, STEPS + 1)], durable(STEPS), finished())
    assert killed.finished
    assert killed.differences == []
    assert killed.resumed_from == [4]
    assert killed.steps_redone == 1
    assert killed.saves == 5
    assert killed.stalled_seconds == 0.5


def test_an_older_checkpoint_than_the_acknowledged_breaks_newest_survives(killed: Ledger) -> None:
    with pytest.raises(DemoFailed, match=r"newest-survives is broken: .* step 4 was .* resumed from step 2"):
        hear(killed, restored(2))


def test_a_fresh_start_after_an_acknowledged_save_breaks_newest_survives(killed: Ledger) -> None:
    with pytest.raises(DemoFailed, match="newest-survives"):
        hear(killed, restored(0))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_checkpoint_that_nobody_saved_is_wrong(killed: Ledger, number: int) -> None:
    with pytest.raises(DemoFailed, match=f"never-wrong is broken: the training resumed from step {number}"):
        hear(killed, restored(number))


def test_a_save_in_flight_may_turn_out_durable(killed: Ledger) -> None:
    hear(killed, restored(4), step(5), step(6), saved())
    assert killed.note_kill() == "saving"
    hear(killed, restored(6))
    assert killed.steps_redone == 1


def test_what_was_resumed_from_once_must_be_found_again(killed: Ledger) -> None:
    """It was never acknowledged, but a recovery returned it: the next one may not return less."""
    hear(killed, restored(4), step(5), step(6))
    killed.note_kill()
    hear(killed, restored(6))
    killed.note_kill()
    with pytest.raises(DemoFailed, match="newest-survives"):
        hear(killed, restored(4))


def test_a_kill_before_the_restore_counts_no_step_twice(killed: Ledger) -> None:
    assert killed.note_kill() == "starting"
    hear(killed, restored(4))
    assert killed.steps_redone == 1
    assert killed.kills == {"starting": 1, "saving": 0, "computing": 1}


def test_one_bit_of_a_loss_is_noticed(killed: Ledger) -> None:
    hear(killed, restored(4), step(5, loss=1.0 + 2**-52))
    assert killed.differences == [
        "step 5 after the resume from step 4 has the loss 1.0000000000000002 instead of 1.0",
    ]


def test_other_samples_are_noticed(killed: Ledger) -> None:
    hear(killed, restored(4), step(5, samples=(2, 1)))
    assert killed.differences == ["step 5 after the resume from step 4 used samples [2, 1] instead of [1, 2]"]


def test_a_digest_that_differs_is_named(killed: Ledger) -> None:
    hear(killed, restored(4), *[step(number) for number in range(5, STEPS + 1)], finished(moments="other"))
    assert killed.differences == ["at the end the moments differ from the undisturbed run's"]


def test_a_step_left_out_is_noticed(killed: Ledger) -> None:
    hear(killed, restored(4), *[step(number) for number in range(6, STEPS + 1)])
    del killed.steps[5]
    hear(killed, finished())
    assert "not every step was made" in killed.differences


def test_staleness_is_the_distance_of_the_newest_durable_from_the_newest_started(oracle: Ledger) -> None:
    ledger = hear(
        Ledger(STEPS, 1, oracle),
        restored(0),
        step(1),
        saved(),
        step(2),
        saved(in_flight=2),
        durable(1),
        step(3),
        saved(),
    )
    assert ledger.staleness == [1, 2, 2]
    assert ledger.most_in_flight == 2


def test_steps_beside_a_save_are_timed_apart_and_first_steps_of_a_life_not_at_all(oracle: Ledger) -> None:
    ledger = hear(Ledger(STEPS, 2, oracle), restored(0), step(1), step(2), saved(), step(3, beside=1), step(4))
    assert ledger.step_seconds == [0.5, 0.5]
    assert ledger.step_seconds_beside_saves == [1.5]
