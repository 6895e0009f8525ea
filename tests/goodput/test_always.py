"""What holds for every trace, table of costs, strategy and interval; and the replay against its naive twin."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood.goodput import replay as replaying
from lastgood.goodput.costs import Costs
from lastgood.goodput.ledger import Ledger
from lastgood.goodput.replay import Outcome
from lastgood.goodput.schedule import Schedule
from lastgood.goodput.strategies import STRATEGIES
from lastgood.goodput.trace import Trace
from tests.goodput.naive import TICK_SECONDS, Naive
from tests.goodput.playing import COSTS, play, trace

NAMES = sorted(STRATEGIES)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    gaps = draw(st.lists(st.integers(1, 400), min_size=1, max_size=12))
    gpus = draw(st.lists(st.integers(0, 9), min_size=len(gaps) + 1, max_size=len(gaps) + 1))
    times = [0.0]
    for gap in gaps:
        times.append(times[-1] + gap / 4)
    return Trace("drawn", tuple(times), (max(1, gpus[0]), *gpus[1:]))


some_seconds = st.integers(0, 40).map(lambda eighths: eighths / 8)
costs = st.builds(
    Costs,
    iteration_seconds=st.integers(1, 16).map(lambda eighths: eighths / 8),
    capture_seconds=some_seconds,
    write_seconds=some_seconds,
    load_seconds=some_seconds,
    restart_seconds=some_seconds,
    single_write_seconds=some_seconds,
    update_seconds=some_seconds,
    peer_seconds=some_seconds,
    in_flight=st.integers(1, 5),
    backstop_seconds=st.integers(1, 100).map(float),
    base_every=st.integers(1, 5),
    replicas=st.integers(1, 4),
    gradient_fraction=st.sampled_from([0.0, 1 / 7, 0.5, 1.0]),
)


def check(outcome: Outcome) -> None:
    """G1 and G2."""
    parts = (outcome.kept, outcome.lost, outcome.held, outcome.down)
    assert math.isclose(math.fsum(parts), outcome.available, rel_tol=1e-9, abs_tol=1e-6)
    assert min(parts) >= -1e-9
    assert 0 <= outcome.goodput <= 1 + 1e-12
    assert 0 <= outcome.most_redone_steps <= outcome.bound_steps


@given(traces(), costs, st.sampled_from(NAMES), st.integers(1, 8), st.integers(0, 3))
def test_time_is_conserved_and_a_failure_costs_at_most_the_bound(
    failures: Trace, table: Costs, name: str, interval: int, seed: int
) -> None:
    outcome = play(name, failures, interval, table, seed)
    check(outcome)
    assert outcome.failures == len(failures.losses())
    assert outcome.fallbacks <= outcome.failures
    if STRATEGIES[name].stores == "storage":
        assert outcome.fallbacks == 0
        assert outcome.redone_steps <= outcome.failures * outcome.bound_steps


def test_the_check_sees_lost_work_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_back(self: Ledger, seconds: float) -> None:
        before = self.lost
        real(self, seconds)
        self.lost = before

    real = Ledger.go_back
    failing = trace((0, 2), (15, 1), (30, 1))
    check(play("synchronous", failing, 4))
    monkeypatch.setattr(Ledger, "go_back", go_back)
    with pytest.raises(AssertionError):
        check(play("synchronous", failing, 4))


def test_the_check_sees_a_save_that_counts_only_later(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(Schedule):
        def saves(self, moment: float) -> int:
            return max(0, super().saves(moment) - 1)

    failing = trace((0, 2), (17, 1), (30, 1))
    check(play("synchronous", failing, 4))
    monkeypatch.setattr(replaying, "Schedule", Late)
    with pytest.raises(AssertionError):
        check(play("synchronous", failing, 4))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("interval", [1, 3, 10])
def test_without_failures_exactly_the_overhead_remains(name: str, interval: int) -> None:
    """Over whole cycles once saves are steady: f·t / (f·t + what a save holds), a device that is too slow included."""
    table = dataclasses.replace(COSTS, capture_seconds=2.5, update_seconds=0.5, peer_seconds=1.0)
    schedule = Schedule(STRATEGIES[name], table, interval)
    hold = STRATEGIES[name].hold(table, interval)
    cycle = interval + hold
    if STRATEGIES[name].stores == "storage" and not STRATEGIES[name].is_paused:
        places, window = STRATEGIES[name].places(table), STRATEGIES[name].window(table, interval)
        longest = max(table.capture_seconds, table.alone) if not window else window + table.alone
        cycle = max(cycle, table.alone, longest / places)
    elif STRATEGIES[name].stores == "peers":
        cycle = max(cycle, table.peer * STRATEGIES[name].moves(table), 2.5 * STRATEGIES[name].moves(table))
    begin = 1000 * interval
    outcome = schedule.trained_seconds(begin + 1000 * cycle) - schedule.trained_seconds(begin)
    assert outcome / (1000 * cycle) == pytest.approx(interval / cycle, rel=2e-3)
    if cycle == interval + hold:
        whole = play(name, trace((0, 3), (50 * cycle, 3)), interval, table)
        assert whole.goodput == pytest.approx(interval / cycle, rel=1e-9)
        assert (whole.lost, whole.down, whole.failures) == (0, 0, 0)


@given(traces(), st.sampled_from(NAMES), st.integers(1, 8))
def test_an_outcome_does_not_depend_on_what_was_replayed_before(failures: Trace, name: str, interval: int) -> None:
    """G3, in any order and beside any use of the global random stream."""
    alone = play(name, failures, interval)
    order = list(NAMES)
    random.shuffle(order)
    among = {other: play(other, failures, interval) for other in order}
    assert among[name] == alone


@given(traces(), st.sampled_from(NAMES), st.integers(1, 8))
def test_samples_at_which_nothing_changes_change_nothing(failures: Trace, name: str, interval: int) -> None:
    times, gpus = [failures.seconds[0]], [failures.gpus[0]]
    for before, after, count, following in zip(
        failures.seconds, failures.seconds[1:], failures.gpus, failures.gpus[1:], strict=False
    ):
        times += [(before + after) / 2, after]
        gpus += [count, following]
    finer, coarse = play(name, Trace("finer", tuple(times), tuple(gpus)), interval), play(name, failures, interval)
    assert dataclasses.asdict(finer) == pytest.approx(dataclasses.asdict(coarse))


@given(
    st.lists(st.tuples(st.integers(1, 80), st.integers(0, 4)), min_size=1, max_size=8),
    st.integers(1, 4), st.integers(0, 5), st.integers(1, 12), st.integers(0, 9), st.integers(1, 4), st.integers(1, 5),
    st.booleans(),
)  # fmt: skip
def test_the_replay_agrees_with_a_clock_that_ticks(
    stretches: list[tuple[int, int]],
    step: int,
    hold: int,
    write: int,
    restart: int,
    places: int,
    interval: int,
    is_paused: bool,
) -> None:
    """Ticks are binary fractions of a second, so that what ends at a tick ends at it in both."""
    gpus = [count for length, count in stretches for _ in range(length)]
    gpus[0] = max(1, gpus[0])
    naive = Naive(step, hold + write if is_paused else hold, write, restart, places, interval, is_paused)
    kept = naive.play(gpus)
    table = Costs(
        iteration_seconds=step * TICK_SECONDS,
        update_seconds=step * TICK_SECONDS,
        capture_seconds=hold * TICK_SECONDS,
        write_seconds=write * TICK_SECONDS,
        load_seconds=0.0,
        restart_seconds=restart * TICK_SECONDS,
        in_flight=places,
    )
    times = tuple(number * TICK_SECONDS for number in range(len(gpus) + 1))
    outcome = play(
        "synchronous" if is_paused else "lastgood", Trace("ticks", times, (*gpus, gpus[-1])), interval, table
    )
    assert outcome.redone_steps == naive.redone
    assert outcome.kept / TICK_SECONDS == pytest.approx(kept)
