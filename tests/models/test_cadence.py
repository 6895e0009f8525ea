"""When a save is due: as often as asked for, or as the budget affords, measured and explained."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lastgood.models as lm
from lastgood.core.memory import MemoryDirectory
from lastgood.models import intervals
from lastgood.models.budget import OverheadBudget, WithFailures
from lastgood.models.cadence import Cadence, EverySeconds, as_cadence, seconds_of

times = st.integers(1, 10**12)


@given(iteration=times, durable=times, held=times, budget=st.integers(100, 10**6))
def test_the_interval_drains_affords_and_is_the_smallest(iteration: int, durable: int, held: int, budget: int) -> None:
    interval = intervals.interval_steps(iteration, durable, held, budget)
    assert interval >= 1
    assert intervals.overhead_ppm(held, interval, iteration) <= budget, "V1 within"
    assert interval * iteration + held >= durable, "V2 drained"
    if interval > 1:
        smaller = interval - 1
        within = held * intervals.MILLION <= budget * smaller * iteration
        assert not (within and smaller * iteration + held >= durable), "V3 least"


def test_the_published_example() -> None:
    """A save that costs one iteration, at a budget of 5 %, is worth making every 20 iterations."""
    assert intervals.interval_steps(100, 100, 100, 50_000) == 20
    assert intervals.held_back(80, 100, 10) == 0
    assert intervals.held_back(120, 100, 10) == 30
    assert intervals.young_daly_us(2, 100) == 20
    assert intervals.lost_work_us(10, 100, 300) == 800


def test_rounded_down_the_budget_would_be_exceeded() -> None:
    draw, exceeded = random.Random(1), 0
    for _ in range(3000):
        iteration, held = draw.randrange(1000, 10**6), draw.randrange(1000, 10**6)
        budget = draw.choice((20_000, 35_000, 50_000, 100_000))
        interval = intervals.interval_steps(iteration, held, held, budget)
        assert intervals.overhead_ppm(held, interval, iteration) <= budget
        exceeded += interval > 1 and intervals.overhead_ppm(held, interval - 1, iteration) > budget
    assert exceeded > 1000


class World:
    """A training whose iterations and saves take as long as they are told, on a clock of its own."""

    def __init__(self, iteration: float, held: float, durable: float, slower: float = 0.0) -> None:
        self.iteration, self.held, self.durable, self.slower = iteration, held, durable, slower
        self.now, self.flying, self.step, self.saves = 0.0, [], 0, []
        self.paid = 0.0

    def clock(self) -> float:
        return self.now

    def run(self, cadence: Any, steps: int) -> list[int]:
        """The steps at which it saved."""
        saved = []
        for _ in range(steps):
            extra = self.slower if self.flying else 0.0
            self.now += self.iteration + extra
            self.paid += extra
            self.step += 1
            cadence.arrived(self.step)
            for began, step in [each for each in self.flying if self.now - each[0] >= self.durable]:
                self.flying.remove((began, step))
                cadence.ended(step, True)
            if cadence.due(self.step):
                began = self.now
                self.now += self.held
                self.paid += self.held
                cadence.saved(self.step, self.held)
                self.flying.append((began, self.step))
                saved.append(self.step)
            cadence.resumed(self.step)
        return saved


REGIMES = [
    {"iteration": 0.1, "held": 0.05, "durable": 0.3},
    {"iteration": 0.1, "held": 0.001, "durable": 0.95},
    {"iteration": 0.02, "held": 0.3, "durable": 0.4},
    {"iteration": 1.0, "held": 0.2, "durable": 0.5},
    {"iteration": 0.1, "held": 0.02, "durable": 0.35, "slower": 0.01},
]


@pytest.mark.parametrize("regime", REGIMES, ids=str)
@pytest.mark.parametrize("overhead", [0.02, 0.035, 0.05, 0.1])
def test_what_it_costs_stays_within_the_budget(regime: dict[str, float], overhead: float) -> None:
    """And the interval is that of the formula on the true times, give or take the step at which an end is noticed."""
    world = World(**regime)
    cadence = OverheadBudget(overhead, clock=world.clock)
    world.run(cadence, 400)
    world.paid, before = 0.0, world.now
    saved = world.run(cadence, 4000)
    in_flight = -(-(regime["durable"] - regime["held"]) // (regime["iteration"] + regime.get("slower", 0)))
    cost = regime["held"] + in_flight * regime.get("slower", 0)
    assert world.paid - cost <= overhead * 1.001 * (world.now - before - world.paid), "the window begins with a save"
    exact = intervals.interval_steps(
        int(regime["iteration"] * 1e6), int(regime["durable"] * 1e6), int(cost * 1e6), int(overhead * 1e6)
    )
    assert abs((cadence.interval_steps or 0) - exact) <= 1
    assert len(saved) > 4000 / (exact + 2) - 2


def test_it_adapts_when_conditions_change() -> None:
    """Interference makes saves dearer: the interval grows until they are affordable, and shrinks when it is over."""
    world = World(iteration=0.1, held=0.05, durable=0.2)
    cadence = OverheadBudget(0.05, clock=world.clock)
    world.run(cadence, 300)
    calm = cadence.interval_steps
    assert calm == 10
    world.held = 0.2
    world.run(cadence, 600)
    assert cadence.interval_steps == 40
    world.paid, before = 0.0, world.now
    world.run(cadence, 2000)
    assert world.paid / (world.now - before - world.paid) <= 0.05
    world.held = 0.05
    world.run(cadence, 2000)
    assert cadence.interval_steps == calm


def test_an_iteration_without_a_save_in_flight_is_measured_now_and_then() -> None:
    """Saves that are always in flight would hide that iterations themselves have changed."""
    world = World(iteration=0.1, held=0.0001, durable=0.35)
    cadence = OverheadBudget(0.5, clock=world.clock)
    world.run(cadence, 300)
    world.iteration = 0.2
    world.run(cadence, 3000)
    assert cadence.measured is not None
    assert cadence.measured.iteration_us == pytest.approx(200_000, rel=0.01)


def test_the_first_save_decides_nothing() -> None:
    """It made the store and loaded code, 250 times what a save costs: one save in the first 4000 steps."""
    world = World(iteration=0.1, held=5.0, durable=0.3)
    cadence = OverheadBudget(0.05, clock=world.clock)
    assert world.run(cadence, 6) == [6]
    world.held = 0.02
    assert world.run(cadence, 14) == [7, 11, 15, 19], "the second comes at once, and decides"
    assert cadence.interval_steps == 4
    resumed = OverheadBudget(0.05, clock=world.clock)
    resumed.load(cadence.state())
    world.held = 5.0
    assert len(world.run(resumed, 5)) == 1
    world.held = 0.02
    world.run(resumed, 5)
    assert resumed.interval_steps == 4, "nor in a process that resumes"


def test_it_decides_anew_when_iterations_take_longer_and_says_from_what() -> None:
    """The interval was looked at again only when it was over, which it would have been ten times as late."""
    world = World(iteration=0.1, held=0.05, durable=0.2)
    cadence = OverheadBudget(0.001, clock=world.clock)
    world.run(cadence, 20)
    assert cadence.interval_steps == 500
    world.iteration = 1.0
    for saved in (10, 90):
        world.run(cadence, saved)
        words = cadence.explain().split()
        interval, afford = int(words[words.index("every") + 1]), int(words[words.index("one") + 2])
        assert interval == afford == cadence.interval_steps, "the numbers are those of the decision"
    assert cadence.interval_steps == 50


def test_what_was_learned_is_saved_and_a_resumed_run_need_not_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    directory, state = MemoryDirectory(), {"w": torch.zeros(4)}
    with lm.Checkpointer(directory, state, overhead=0.5) as ckpt:
        before_it_knew = 0
        for step in range(1, 3000):  # an iteration of no length at all would make any save too dear
            time.sleep(0.002)
            ckpt.step(step)
            published = ckpt.statistics().published
            if "an iteration takes" not in ckpt.cadence.explain():
                before_it_knew = published
            elif published > before_it_knew + 5:  # of up to four in flight, and one just begun, none knew
                break
        assert "an iteration takes" in ckpt.cadence.explain()
    with lm.Checkpointer(directory, state, overhead=0.5) as again:
        assert "still measuring" in again.cadence.explain()
        start = again.restore()
        assert "an iteration takes" in again.cadence.explain()
        assert start > 0


TUNED = {
    "lastgood_tuned": 1,
    "interval_steps": 3,
    "in_flight": 2,
    "staging_bytes": 65536,
    "capture": "lazy",
    "more": {},
}


def test_a_file_that_tune_wrote_says_when_and_how(tmp_path: Path) -> None:
    (tmp_path / "tuned.json").write_text(json.dumps(TUNED))
    with lm.Checkpointer(tmp_path / "a", {"w": torch.ones(9)}, cadence=tmp_path / "tuned.json") as ckpt:
        saved = [step for step in range(1, 8) if ckpt.step(step)]
        assert saved == [3, 6]
        assert ckpt.capture.explain().startswith("lazy")
        assert ckpt._store is not None
        assert ckpt._store.in_flight == 2
    with lm.Checkpointer(
        tmp_path / "b", {"w": 1}, cadence=str(tmp_path / "tuned.json"), in_flight=1, capture="auto", staging_bytes=4096
    ) as ckpt:
        ckpt.save(1)
        assert ckpt.capture.explain().startswith("auto")
        assert ckpt._store is not None
        assert ckpt._store.in_flight == 1


def test_a_cadence_that_cannot_be_meant_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tuned.json").write_text(json.dumps(TUNED | {"interval_steps": 0}))
    (tmp_path / "other.json").write_text("[]")
    for options, told in (
        ({"cadence": tmp_path / "tuned.json"}, "interval_steps is 0"),
        ({"cadence": tmp_path / "other.json"}, "not a file that `lastgood tune` wrote"),
        ({"cadence": tmp_path / "tuned.json", "every": 5}, "every=5 and cadence=.*: give one of them"),
        ({"overhead": 0.1, "every": 5}, "every=5 and overhead=0.1: give one of them"),
    ):
        with pytest.raises(ValueError, match=told):
            lm.Checkpointer(tmp_path / "store", {"w": 1}, **options)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        lm.Checkpointer(tmp_path / "store", {"w": 1}, cadence=tmp_path / "nowhere.json")


@pytest.mark.parametrize("call", ["step", "save"])
def test_looking_at_the_counts_hides_no_end_from_the_cadence(call: str) -> None:
    """A save ended, `statistics()` was the first to see it, and the cadence waited for its end for ever: no more saves."""

    ends = []

    class Listening(Cadence):
        def due(self, step: int) -> bool:
            return step == 1

        def ended(self, step: int, durable: bool) -> None:
            ends.append(step)

    with lm.Checkpointer(MemoryDirectory(), {"w": 1}, every=Listening()) as ckpt:
        ckpt.step(1).wait()  # type: ignore[union-attr]
        assert ckpt.statistics().published == 1
        getattr(ckpt, call)(2)
        assert ends == [1]


def test_the_explanation_has_the_numbers_and_what_a_failure_costs() -> None:
    world = World(iteration=0.1, held=0.05, durable=0.3)
    cadence = WithFailures(OverheadBudget(0.05, clock=world.clock), 3600, world.clock)
    assert "not measured yet" in cadence.explain()
    world.run(cadence, 200)
    text = cadence.explain()
    for phrase in (
        "every 10 steps",
        "100.000 ms",
        "50.000 ms",
        "5 %",
        "every 3600 s",
        "0.85 s of work",
        "Young and Daly",
    ):
        assert phrase in text, (phrase, text)
    assert "18.9" in text or "19 s" in text or "19.0" in text, "sqrt(2 · 0.05 s · 3600 s)"


def test_times_in_words() -> None:
    assert [seconds_of(text) for text in ("30s", "500ms", "5min", "1h", "1.5 s")] == [30, 0.5, 300, 3600, 1.5]
    clock = iter([0.0, 29.0, 30.5, 30.5, 31.0, 60.6])
    cadence = EverySeconds(30, lambda: next(clock))
    assert [cadence.due(1), cadence.due(2)] == [False, True]
    cadence.saved(2, 0.0)
    assert [cadence.due(3), cadence.due(4)] == [False, True]
    assert "30 s" in cadence.explain()
    assert "7 steps" in as_cadence(7).explain()


@pytest.mark.parametrize(
    "options",
    [
        {"every": "soon"}, {"every": "0s"}, {"every": -1}, {"overhead": 0.0}, {"overhead": 2}, {"overhead": True},
        {"every": 5, "overhead": 0.1}, {"every": 5, "mean_seconds_between_failures": 0},
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_told_in_one_line(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give") as problem:
        lm.Checkpointer("x", {"w": 1}, **options)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("steps", "saved"),
    [
        (range(1, 35), [10, 20, 30]),
        (range(1, 60, 4), [13, 25, 37, 49]),
        (range(4, 60, 4), [12, 24, 36, 48]),
        (range(26, 45), [30, 40]),
        (range(7, 100, 30), [37, 67, 97]),
        ([8, 9, 10, 10, 11, 3, 9, 10, 12], [10, 10]),
    ],
    ids=["one", "four-from-one", "four", "resumed-at-25", "longer-than-the-interval", "backwards"],
)
def test_a_number_of_steps_is_how_far_apart_saves_are_whatever_the_stride(steps: Any, saved: list[int]) -> None:
    """`every=10` was `step % 10 == 0`: a loop that counted 1, 5, 9, … never saved, in hundreds of calls, without a word."""
    cadence, found = as_cadence(10), []
    for step in steps:
        if cadence.due(step):
            cadence.saved(step, 0.0)
            found.append(step)
    assert found == saved
    assert "10 or more after the last save" in cadence.explain()


def test_a_save_out_of_turn_counts_as_the_last_one() -> None:
    with lm.Checkpointer(MemoryDirectory(), {"w": 1}, every=10) as ckpt:
        assert [step for step in range(1, 16) if ckpt.step(step)] == [10]
        ckpt.save(15)
        assert [step for step in range(16, 40) if ckpt.step(step)] == [25, 35]


def test_a_cadence_that_cannot_go_on_with_what_was_learned_starts_anew(caplog: pytest.LogCaptureFixture) -> None:
    class Forgetful(Cadence):
        def due(self, step: int) -> bool:
            return True

        def load(self, state: Any) -> None:
            raise KeyError("learned")

    directory = MemoryDirectory()
    with lm.Checkpointer(directory, {"w": 1}) as ckpt:
        ckpt.save(3)
    with lm.Checkpointer(directory, {"w": 2}, every=Forgetful()) as ckpt:
        assert ckpt.restore() == 3
    assert "not taken up: KeyError" in caplog.text
