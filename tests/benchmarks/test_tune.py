"""`lastgood tune`: the decision, the search for it, the file, and what it says when it is asked for nonsense."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood import cli
from lastgood.benchmarks.train.job import own_job
from lastgood.benchmarks.train.loop import Cell
from lastgood.benchmarks.train.sweep import Bandwidth
from lastgood.benchmarks.tune.choose import (
    AIM,
    LEAST_USE,
    MOST,
    Contention,
    Profile,
    Setting,
    choose,
    fewest_in_flight,
    verdict,
    why_not_more,
)
from lastgood.benchmarks.tune.command import MARGIN_SECONDS, SECONDS, measured_text
from lastgood.benchmarks.tune.deadline import Deadline
from lastgood.benchmarks.tune.profile import CannotProfile, Profiler
from lastgood.goodput.costs import read_costs
from lastgood.models import Checkpointer
from lastgood.models.tuned import Tuned, read_tuned
from tests.command.running import lastgood, one_line


def profile_of(state: int = 10**9, iteration: float = 0.1, **rates: float) -> Profile:
    contention = {int(count[1:]): Contention(0.5 * int(count[1:]), rate) for count, rate in rates.items()}
    return Profile(state, iteration, 4e9, 1.0, contention or {1: Contention(0.5, 2e9)})


def test_the_fewest_that_reach_the_bandwidth() -> None:
    assert fewest_in_flight(profile_of(_1=1e9, _2=2e9, _4=2.05e9)) == 2
    assert fewest_in_flight(profile_of(_1=2e9, _2=2.05e9, _4=2.0e9)) == 1
    assert fewest_in_flight(profile_of(_1=1e9, _2=1.5e9, _4=2e9)) == 4


HELD = st.dictionaries(st.integers(1, 60), st.floats(1e-4, 0.5), min_size=1, max_size=4)


@given(HELD, st.floats(0.05, 1), st.floats(0.05, 1), st.floats(1e8, 1e11))
def test_the_interval_is_the_one_nearest_to_the_aim_of_all_that_keep_up_and_are_affordable(
    held: dict[int, float], budget: float, iteration: float, rate: float
) -> None:
    """Every interval is tried: too slow for a command, not for a test."""
    profile = profile_of(iteration=iteration, _1=rate)
    made = choose(profile, 1, held, budget, 1)

    def overhead(interval: int) -> float:
        nearest = min(sorted(held), key=lambda other: (abs(math.log(other / interval)), list(held).index(other)))
        return held[nearest] / (interval * iteration)

    keep_up = math.ceil(profile.state_bytes / (rate * iteration) - 1e-9)
    good = [each for each in range(max(1, keep_up), 500) if overhead(each) <= MOST * budget]
    rarest = min(each for each in good if overhead(each) <= AIM * budget * (1 + 1e-9))
    distances = {each: abs(math.log(overhead(each) / (AIM * budget))) for each in good if each <= rarest}
    assert made.interval_steps in distances
    assert distances[made.interval_steps] == min(distances.values())
    assert made.expected(profile)["overhead"] == overhead(made.interval_steps)
    assert verdict(made, overhead(made.interval_steps), budget) == "within"


def test_the_verdict_knows_too_much_and_too_little() -> None:
    rare, dear = Setting(10, 1, 1, 0.1, False, 0.01), Setting(2, 1, 1, 0.1, False, 0.05)
    often, slow = Setting(1, 1, 1, 0.1, False, None), Setting(10, 1, 1, 0.1, True, None)
    assert verdict(rare, 0.031, 0.03) == "over"
    assert verdict(rare, 0.029, 0.03) == "within"
    assert verdict(rare, 0.009, 0.03) == "unused"
    assert verdict(often, 0.009, 0.03) == "within", "a save after every step is all there is"
    assert verdict(slow, 0.009, 0.03) == "within", "the device allows no more"
    assert verdict(dear, 0.009, 0.03) == "within", "one step less, and it is more than the budget"
    assert verdict(often, 0.031, 0.03) == "over"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (Setting(1, 1, 1, 0.1, False, None), "there is one after every step"),
        (Setting(3, 1, 1, 0.1, True, None), "the device allows no more"),
        (Setting(2, 1, 1, 0.1, False, 0.05), "every 1 steps would be 5.00% of the time"),
    ],
)
def test_a_cheap_setting_says_why_saves_are_not_more_frequent(setting: Setting, said: str) -> None:
    reason = why_not_more(setting, 0.03)
    measured = {"overhead": 0.002, "overhead_range": [0.001, 0.003], "rounds": 6, "verdict": "within"}
    lines = measured_text(measured | {"cannot_be_more_frequent": reason}, 0.03)
    assert lines == [
        "measured: 0.20% of the time (0.10% to 0.30% in 6 rounds): within the budget",
        f"less than a third of it, but saves cannot be more frequent: {said}",
    ]
    assert len(measured_text(measured | {"overhead": 0.011, "cannot_be_more_frequent": reason}, 0.03)) == 1


class Imagined(Profiler):
    """A machine on which a save costs more the rarer it is, up to a limit, and no two measurements agree."""

    def __init__(self, noise: float) -> None:
        super().__init__(Cell("", 1, 1, "emulated"), "", Deadline(math.inf), lambda what: None)
        self._noise, self._turn = noise, 0

    def held_seconds(self, in_flight: int, interval: int, profile: Profile) -> float:
        self._turn += 1
        return self.true_cost(interval) * (1 + self._noise * (-1) ** self._turn)

    @staticmethod
    def true_cost(interval: int) -> float:
        return 0.005 + 0.03 * (1 - math.exp(-interval / 10))


@pytest.mark.parametrize("noise", [0.0, 0.15])
@pytest.mark.parametrize("budget", [0.005, 0.01, 0.03, 0.1])
def test_the_search_ends_within_the_budget_and_uses_it(budget: float, noise: float) -> None:
    made = Imagined(noise).setting(profile_of(_1=1e11), budget)
    true = Imagined.true_cost(made.interval_steps) / (made.interval_steps * 0.1)
    assert verdict(made, true, budget) == "within"
    assert true >= LEAST_USE * budget or made.interval_steps == 1


class Clock:
    """Stands still while nobody moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def tuned_by(clock: Clock, monkeypatch: pytest.MonkeyPatch, iteration: float, save: float, started: float) -> Setting:
    """Tune a job whose iterations and saves take so long, everything that is measured moving the clock only.

    `started` is what imports and preparation took.
    """
    state_bytes = 10**9

    def alone(work: Callable[[], dict[str, Any]], place: str, longest: float) -> dict[str, Any]:
        began = clock.now
        told = work()
        if clock.now <= began + longest:
            return told
        clock.now = began + longest
        return {"error": f"not done after {longest:.0f} s"}

    def running(cell: Cell, contender: object, place: str) -> dict[str, Any]:
        clock.now += 1 + max(cell.least_seconds, 6 * iteration)
        return {"state_bytes": state_bytes, "iteration_seconds": iteration}

    def bursting(cell: Cell, in_flight: int, place: str) -> dict[str, Any]:
        clock.now += 1 + max(1.5, 14 * save)
        return {"save_seconds": save, "bytes_per_second": state_bytes / save, "load_seconds": save}

    def pairing(cell: Cell, saver: object, place: str, count: int, rounds: int, seconds: float) -> dict[str, Any]:
        began, done = clock.now, 0
        clock.now += 1 + 5 * save + cell.interval * iteration
        took = (2 * count + 1) * cell.interval * iteration
        while done < rounds and (not done or clock.now + took <= began + seconds):
            clock.now += took
            done += 1
        return {"plain": [iteration] * done, "saving": [iteration + save / 10 / cell.interval] * done}

    class Raw:
        bytes_written = staticmethod(Bandwidth.bytes_written)

        def __init__(self, directory: str, megabytes: int) -> None:
            clock.now += self.bytes_written(state_bytes) * save / state_bytes

        def sample(self) -> float:
            return state_bytes / save

    for name, imagined in {
        "run_alone": alone, "run_cell": running, "burst": bursting, "paired": pairing, "Bandwidth": Raw,
    }.items():  # fmt: skip
        monkeypatch.setattr(f"lastgood.benchmarks.tune.profile.{name}", imagined)
    deadline = Deadline(SECONDS - MARGIN_SECONDS, clock)
    clock.now += started
    with tempfile.TemporaryDirectory() as directory:
        profiler = Profiler(Cell("", 1, 1, "emulated", least_seconds=2.0), directory, deadline, lambda what: None)
        return profiler.setting(profiler.profile(), 0.03)


@pytest.mark.parametrize("started", [1.0, 15.0])
@pytest.mark.parametrize("save", [0.001, 0.05, 0.5, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("iteration", [0.001, 0.1, 1.0, 4.0, 20.0])
def test_nothing_is_measured_after_the_minute(
    iteration: float, save: float, started: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the machine, by a clock that only the measurements move; where there is time for any, it is decided."""
    clock = Clock()
    began, made = clock.now, None
    with contextlib.suppress(CannotProfile):
        made = tuned_by(clock, monkeypatch, iteration, save, started)
    assert made is not None or save > 1.0 or iteration > 1.0
    assert made is None or made.interval_steps >= steps_of_device(iteration, save)
    assert clock.now - began <= SECONDS - MARGIN_SECONDS + 1e-6
    assert SECONDS < 60


@pytest.mark.parametrize(("started", "said"), [(60.0, "no time was left"), (1.0, "not done after [0-9]+ s")])
def test_who_has_too_little_time_is_told_to_give_more(
    started: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tune --seconds 12` said "not done after 0 s"."""
    with pytest.raises(CannotProfile, match=f"could not be profiled: {said}; give more --seconds"):
        tuned_by(Clock(), monkeypatch, 20.0, 1.0, started)


def steps_of_device(iteration: float, save: float) -> int:
    """The fewest steps between saves that it keeps up with."""
    return max(1, math.ceil(save / iteration - 1e-9))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    place = tmp_path_factory.mktemp("tune")
    (place / "here").mkdir()
    (place / "own_training.py").write_text(
        "import torch, time\n"
        "def make():\n"
        "    model = torch.nn.Linear(64, 64)\n"
        "    optimizer = torch.optim.AdamW(model.parameters())\n"
        "    def compute():\n"
        "        time.sleep(0.005)\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(2, 64)).sum().backward()\n"
        "    return model, optimizer, compute\n"
    )
    words = ("--overhead", "0.5", "--output", str(place / "tuned.json"), "--directory", str(place / "here"), "--json")
    path = {"PYTHONPATH": f"{place}:{os.environ.get('PYTHONPATH', '')}"}
    completed = lastgood("tune", "--job", "own_training:make", "--seconds", "600", *words, environment=path)
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == ""
    return json.loads(completed.stdout), place


def test_what_is_printed_is_what_is_written_and_nothing_else_is_left(tuned: tuple[dict[str, Any], Path]) -> None:
    printed, place = tuned
    assert json.loads((place / "tuned.json").read_text()) == printed
    assert list((place / "here").iterdir()) == []
    assert printed["overhead"] == 0.5
    assert printed["state_bytes"] == pytest.approx(3 * 4 * (64 * 64 + 64), rel=0.01)
    assert {"overhead", "staleness_steps", "lost_seconds_per_failure", "memory_bytes"} <= set(printed["expected"])
    assert set(printed["profile"]["contention"]) == {"1", "2", "4"}


def test_a_checkpointer_and_a_replay_can_read_it(tuned: tuple[dict[str, Any], Path]) -> None:
    printed, place = tuned
    read = read_tuned(place / "tuned.json")
    assert read == Tuned(*(printed[name] for name in ("interval_steps", "in_flight", "staging_bytes", "capture")))
    with Checkpointer(place / "store", {"x": 1}, cadence=place / "tuned.json") as checkpointer:
        due = [step for step in range(1, 1000) if checkpointer.cadence.due(step)]
        assert due[0] == printed["interval_steps"]
    costs = read_costs(place / "tuned.json").of("lastgood")
    assert costs.iteration_seconds == printed["profile"]["iteration_seconds"]


GOOD = {"lastgood_tuned": 1, "interval_steps": 5, "in_flight": 2, "staging_bytes": 4096, "capture": "lazy"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lastgood_tuned": 2}, "written by another version of `lastgood tune` (2)"),
        ({"lastgood_tuned": None}, "another version"),
        ({"interval_steps": 0}, "interval_steps is 0"),
        ({"in_flight": True}, "in_flight is True"),
        ({"staging_bytes": "1"}, "staging_bytes is '1'"),
        ({"capture": "magic"}, "capture is 'magic'"),
    ],
)
def test_a_file_that_tune_did_not_write_is_refused(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps(GOOD))
    assert read_tuned(path) == Tuned(5, 2, 4096, "lazy")
    path.write_text(json.dumps(GOOD | changed))
    with pytest.raises(ValueError, match="tune`") as raised:
        read_tuned(path)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("text", ["", "[]", "5", '{"interval_steps": 5}', "{"])
def test_any_other_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a file that `lastgood tune` wrote"):
        read_tuned(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--overhead", "0"], "--overhead 0: give a fraction of the time, 0.0001 to 1"),
        (["--overhead", "-0.1"], "--overhead -0.1: give a fraction"),
        (["--overhead", "3"], "--overhead 3: give a fraction of the time, 0.0001 to 1"),
        (["--overhead", "1e-300"], "--overhead 1e-300: give a fraction"),
        (["--overhead", "nan"], "--overhead nan: give a fraction"),
        (["--state-mb", "0"], "--state-mb 0: give 1 to 1,000,000,000"),
        (["--state-mb", "1" * 400], "give 1 to 1,000,000,000"),
        (["--state-mb", "100000000"], "--state-mb 100000000: a state and its copy do not fit into the "),
        (["--step-ms", "1e300"], "--step-ms 1e+300: one step takes longer than the 58 s: give more --seconds"),
        (["--step-ms", "-1"], "--step-ms -1: give more than 0"),
        (["--seconds", "5"], "--seconds 5: give 12 to 86400"),
        (["--seconds", "nan"], "--seconds nan: give 12"),
        (["--job", "mine:make", "--step-ms", "5"], "--step-ms: a --job has its own: give one of them"),
        (["--job", "nothing"], "--job nothing: give MODULE:FUNCTION"),
        (
            ["--output", "/no/such/folder/tuned.json"],
            "--output /no/such/folder/tuned.json: No such file or directory: /no/such/folder",
        ),
        (["--output", "/tmp"], "--output /tmp: give the name of a file"),
    ],
)
def test_bad_usage_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", *words]) == 2
    assert said in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "said"),
    [("os:nothing", "os has no function nothing"), ("os:getcwd", "must return a model.* returned str")],
)
def test_a_function_that_makes_no_job_is_told_what_it_must_return(name: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        own_job(name)


def test_a_job_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    completed = lastgood("tune", "--seconds", "600", "--job", "no_such_module:make", "--directory", str(tmp_path))
    assert completed.returncode == 2
    assert "the job could not be profiled: ModuleNotFoundError: No module named 'no_such_module'" in completed.stderr
    assert one_line(completed.stderr)
    assert list(tmp_path.iterdir()) == []
