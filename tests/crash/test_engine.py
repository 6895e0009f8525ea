"""The explorer explores what it says: the automaton is the program, and no reduction hides a state."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from lastgood.core.rules import BROKEN, DONE
from lastgood.crashsim import programs
from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import PRIMITIVES, cells, real_target, rebound, steps
from lastgood.crashsim.programs import ENDED, RAISED, TOUCHES, Program
from lastgood.crashsim.search import breadth_first
from lastgood.crashsim.walks import random_walks
from tests.crash.exploring import BOTH

SMALL = Bounds(saves=2, faults=1)
QUIET = (steps.STEP, steps.ACQUIRED)
MAY_FAIL = (
    steps.WRITE_PAYLOAD,
    steps.PERSIST_PAYLOAD,
    steps.WRITE_RECORD,
    steps.PERSIST_RECORD,
    steps.WRITE_MARK,
    steps.PERSIST_MARK,
)


class Shared:
    """The primitives over a plain list, and how often they were called."""

    def __init__(self, slots: int) -> None:
        self.words = [0] * cells.CELL_COUNT
        self.words[cells.FREE] = 2**slots - 1
        self.calls = 0

    def call(self, name: str, cell: int, *arguments: int) -> int:
        self.calls += 1
        found = self.words[cell]
        if name == "compare_swap" and found == arguments[0]:
            self.words[cell] = arguments[1]
        elif name == "fetch_add":
            self.words[cell] += arguments[0]
        return found

    def primitives(self) -> dict[str, Any]:
        return {name: partial(self._plain, name) for name in PRIMITIVES}

    def _plain(self, name: str, array: Any, *arguments: int) -> int:
        return self.call(name, *arguments)


class Twins:
    """One save twice: a real generator over one list of shared words, a walk over nodes over another."""

    def __init__(self, program: Program, generator: Iterator[int], mine: list[int]) -> None:
        self.program, self.generator, self.mine = program, generator, mine
        self.node = program.first
        self.asked: int | None = steps.STEP

    def move(self, choose: random.Random, real: Shared, shadow: Shared) -> None:
        """One move of the explorer, and whatever the generator must be resumed for it."""
        if self.node.kind == TOUCHES:
            before = real.calls
            while real.calls == before:
                self.asked = next(self.generator, None)
            self.node = self.program.after(self.node, shadow.call(*self.node.request))
        else:
            assert self.node.request == (self.asked,)
            self.mine[cells.STATUS] = choose.choice([DONE, DONE, DONE, BROKEN]) if self.asked in MAY_FAIL else DONE
            self.node = self.program.after(self.node, self.mine[cells.STATUS])
            if self.node.kind != TOUCHES:
                self.asked = next(self.generator, None)
        while self.node.kind != TOUCHES and self.asked in QUIET:
            self.asked = next(self.generator, None)
        assert (self.node.kind == ENDED) == (self.asked is None)


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_the_automaton_is_the_program(seed: int, keep: int) -> None:
    """Six saves, two at once, with failing steps: the same words after every move of a random schedule."""
    choose = random.Random(seed)
    target = real_target()
    program = target.saver(1, keep, 0)
    real, shadow = Shared(2 + keep), Shared(2 + keep)
    twins = []
    for _ in range(6):
        mine = [0] * cells.MINE_COUNT
        twins.append(Twins(program, rebound(target.save, real.primitives())(None, mine, 1, keep, 0), mine))
    live = [twins.pop(), twins.pop()]
    moves = 0
    while live:
        one = choose.choice(live)
        one.move(choose, real, shadow)
        moves += 1
        assert real.words == shadow.words
        if one.node.kind == ENDED:
            assert tuple(one.mine) == one.node.words
            live.remove(one)
            live += [twins.pop()] if twins else []
    assert moves > 40


def everything_met(system: CoreSystem, *, symmetry: bool = True) -> set[tuple[Any, ...]]:
    """Every pair of shared words and medium that a full search meets."""
    met = set()

    class Watched:
        def initial(self) -> Any:
            return system.initial()

        def moves(self, state: tuple[int, ...]) -> Any:
            return system.moves(state)

        def canonical(self, state: tuple[int, ...]) -> tuple[int, ...]:
            return system.canonical(state) if symmetry else state

        def judge(self, state: tuple[int, ...]) -> None:
            met.add((system.driver.cells.values[state[0]], system.store.states[state[1]]))

    assert breadth_first(Watched()).exhaustive
    return met


def test_no_reduction_hides_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the symmetry of savers, and with every local variable told apart, the same words and media are met."""
    reduced = everything_met(CoreSystem(real_target(), SMALL, BOTH))
    names = frozenset(real_target().save.__code__.co_varnames)
    monkeypatch.setattr(programs, "live_variables", lambda code: dict.fromkeys(range(10_000), names))
    assert everything_met(CoreSystem(real_target(), SMALL, BOTH), symmetry=False) == reduced


def test_a_search_gives_the_same_counts_twice() -> None:
    first, second = (breadth_first(CoreSystem(real_target(), Bounds(saves=2), BOTH)) for _ in range(2))
    assert (first.states, first.transitions) == (second.states, second.transitions) == (1_165, 2_227)


def test_a_search_leaves_nothing_to_the_collector_of_cycles() -> None:
    """It runs without it: what went in circles would stay until the end."""
    system = CoreSystem(real_target(), SMALL, BOTH)
    assert gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        states = breadth_first(system).states
        assert states > 1_000 > gc.collect(), "a search makes garbage that goes in circles"
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert breadth_first(CoreSystem(real_target(), SMALL, BOTH), state_limit=10).states == 10
    assert gc.isenabled()


def test_a_search_that_is_cut_short_says_so() -> None:
    result = breadth_first(CoreSystem(real_target(), Bounds(), BOTH), state_limit=1_000)
    assert (result.exhaustive, result.states, result.counterexample) == (False, 1_000, None)


def test_random_walks_find_and_never_clear() -> None:
    result = random_walks(CoreSystem(real_target(), Bounds(savers=3, saves=4), BOTH), 20, seed=1)
    assert (result.exhaustive, result.counterexample) == (False, None)
    again = random_walks(CoreSystem(real_target(), Bounds(savers=3, saves=4), BOTH), 20, seed=1)
    assert (again.states, again.transitions) == (result.states, result.transitions)


def toy(body: Any) -> Program:
    def build(call: Any) -> Any:
        mine = [0, 0]
        return body(call, mine), mine

    return Program(build, quiet=frozenset({0}), noted=frozenset(), status_word=0)


def test_two_shared_words_between_two_yields_are_refused() -> None:
    """P1 one-each: a driver resumes once, and nobody could come in between."""

    def greedy(call: Any, mine: list[int]) -> Iterator[int]:
        yield call("load", 0) + call("load", 1)

    node = toy(greedy).first
    program = toy(greedy)
    assert node.kind == TOUCHES
    following = program.after(program.first, 0)
    assert following.kind == RAISED
    assert "one-each" in following.request[0]


def test_a_variable_that_is_no_int_is_refused() -> None:
    """Two frames that differ in it could not be told apart."""

    def opaque(call: Any, mine: list[int]) -> Iterator[int]:
        seen = [call("load", 0)]
        yield 0
        mine[1] = seen[0]
        yield 1

    program = toy(opaque)
    with pytest.raises(TypeError, match="must be ints"):
        program.after(program.first, 0)


def test_the_engine_and_the_media_load_neither_core_nor_numba_nor_torch() -> None:
    """They are for anybody's save code, in anybody's test run."""
    engine = ["bounds", "liveness", "media", "medium", "programs", "promises", "replay", "search", "store_layout"]
    modules = [*engine, "spread", "walks", "abstract", "mutants", "command"]
    script = (
        f"import sys\nfor name in {modules}: __import__('lastgood.crashsim.' + name)\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('numba', 'torch', 'numpy')"
        " or name.startswith(('lastgood.core', 'lastgood.crashsim.core_'))]\n"
        "print(loaded)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
