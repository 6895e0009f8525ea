"""A search that is spread over other processes comes to the same verdict, by the same counts."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import explore, target_named
from lastgood.crashsim.core_parts import Problem, Spread
from lastgood.crashsim.mutants import MUTANTS
from lastgood.crashsim.promises import PROMISES
from lastgood.crashsim.search import Result, breadth_first
from lastgood.crashsim.spread import spread_breadth_first

DIGESTS = ("trusted", "ignored")


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def alone(problem: Problem) -> tuple[Result, int]:
    system = problem.system()
    return breadth_first(system), system.images()


def spread(problem: Problem, executor: Executor, parts: int = 4) -> tuple[Result, int]:
    hands = Spread(executor, problem, parts)
    return spread_breadth_first(hands.system, hands.ask), sum(hands.images.values())


def told(result: Result) -> tuple[object, ...]:
    return result.states, result.transitions, result.exhaustive, result.counterexample


@pytest.mark.parametrize("medium", ["page-cache", "pmem"])
def test_two_processes_clear_what_one_clears(medium: str, processes: Executor) -> None:
    problem = Problem("real", Bounds(saves=2, medium=medium), DIGESTS, tuple(PROMISES), target_named)
    (one, images), (two, spread_images) = alone(problem), spread(problem, processes)
    assert told(one) == told(two)
    assert images == spread_images
    assert one.exhaustive


@pytest.mark.parametrize("name", ["drop-record-persist", "swap-over-newer", "acknowledge-before-record"])
def test_two_processes_find_what_one_finds(name: str, processes: Executor) -> None:
    """The same counterexample, move by move, after as many states: whether a move broke it or a crash would."""
    problem = Problem(name, MUTANTS[name].bounds, ("ignored",), tuple(PROMISES), target_named)
    one, two = alone(problem)[0], spread(problem, processes)[0]
    assert told(one) == told(two)
    assert one.counterexample is not None


def test_steps_that_fail_and_processes_that_start_again_are_spread_too() -> None:
    """Any executor will do; moves into another life are counted state by state here."""
    problem = Problem("real", Bounds(saves=2, faults=1, restarts=1), DIGESTS, tuple(PROMISES), target_named)
    with ThreadPoolExecutor(1) as threads:
        one, two = alone(problem)[0], spread(problem, threads, 3)[0]
    assert (one.states, one.exhaustive) == (two.states, two.exhaustive)


def test_an_executor_can_be_passed_to_explore() -> None:
    """The report says the same."""
    with ThreadPoolExecutor(1) as threads:
        for program in ("real", "drop-record-persist"):
            arguments = (program, Bounds(saves=2), DIGESTS, tuple(PROMISES))
            one, two = explore(*arguments), explore(*arguments, executor=threads, parts=3)
            assert (told(one.result), one.sentence, one.replay) == (told(two.result), two.sentence, two.replay)
            if one.result.exhaustive:
                assert one.images == two.images
