"""Sampled schedules: reproducible, able to find, never able to clear; and what is found replays."""

from __future__ import annotations

import itertools
import random

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import explore, replay
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import real_target
from lastgood.crashsim.promises import PROMISES
from lastgood.crashsim.replay import decode
from lastgood.crashsim.walks import Chooser, random_walks

BEYOND = Bounds(savers=3, saves=6)


@pytest.mark.parametrize("depth", [0, 3])
def test_the_same_seed_takes_the_same_walks(depth: int) -> None:
    counts = []
    for seed in (1, 1, 2):
        result = random_walks(CoreSystem(real_target(), BEYOND, ("trusted",)), 3, seed, depth=depth)
        assert (result.exhaustive, result.counterexample) == (False, None)
        counts.append((result.states, result.transitions))
    assert counts[0] == counts[1] != counts[2]


@pytest.mark.parametrize("depth", [0, 3])
def test_walks_find_a_broken_protocol_and_the_string_replays_it(depth: int) -> None:
    """The published listing's compare-and-swap, on a store too large to search."""
    bounds = Bounds(savers=3, saves=9)
    report = explore("pointer-only-compare", bounds, ("ignored",), tuple(PROMISES), walks=2_000, seed=1, depth=depth)
    assert report.sentence
    again = replay(decode(report.replay))
    assert (again.sentence, again.replay) == (report.sentence, report.replay)


def test_priorities_decide_and_change() -> None:
    """One thread runs until the moment at which it falls behind; a depth of three has two such moments."""
    moves = [(str(thread), (), None) for thread in range(3)]
    for seed in range(20):
        chooser = Chooser(random.Random(seed), depth=3, length=50)
        ran = [chooser.choose(moves)[0] for _ in range(50)]
        turns = 1 + sum(one != two for one, two in itertools.pairwise(ran))
        assert turns == 1 + len(chooser.changes - {1})  # who falls behind at the first moment has not run yet


def test_who_waits_falls_behind() -> None:
    chooser = Chooser(random.Random(0), depth=1, length=50)
    moves = [("0", (), None), ("1", (), None)]
    first = chooser.choose(moves)[0]
    chooser.fall_behind(first)
    assert chooser.choose(moves)[0] != first


def test_nobodys_moves_are_taken_now_and_then() -> None:
    chooser = Chooser(random.Random(0), depth=1, length=50)
    moves = [("0", (), None), ("P0/", (), None)]
    taken = [chooser.choose(moves)[0] for _ in range(2_000)]
    assert 5 < taken.count("P0/") < 100
    assert chooser.choose(moves[1:])[0] == "P0/"
