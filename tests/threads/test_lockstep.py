"""The compiled programs do, step for step, what the interpreted ones do: the code that is proved is the code that runs.

Two worlds with the same words; in one the programs are machine code. Several savers take turns at random, the driver's
answers are random, and after every step all words of both worlds are compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit

from lastgood.core import recover
from lastgood.core import steps as names
from lastgood.core.cells import FREE, QUARANTINED, STATUS, new_cells, new_mine
from lastgood.core.jit import JIT
from lastgood.core.recover import CANDIDATE, EMPTY, REJECTED, WHOLE
from lastgood.core.rules import (
    BROKEN,
    DONE,
    NO_TAG,
    OVERTAKEN,
    REFUSED,
    mask_of_slot,
    tag_of,
    word_of_slot,
    words_for,
)
from lastgood.core.save import save
from tests.threads.mistakes import with_mistake

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled")

ENDED = -1

if JIT:
    compiled_save, compiled_survey, compiled_make_ready = njit(save), njit(recover.survey), njit(recover.make_ready)


class Saver:
    """One save in both worlds."""

    def __init__(self, compiled: Any, worlds: tuple[Any, Any], words: int, keep: int, one_persist: int) -> None:
        self.mine = new_mine(), new_mine()
        self.programs = (
            save(worlds[0], self.mine[0], words, keep, one_persist),
            compiled(worlds[1], self.mine[1], words, keep, one_persist),
        )

    def step(self) -> int:
        """What both programs ask for next; they must agree."""
        interpreted, compiled = (next(program, ENDED) for program in self.programs)
        assert interpreted == compiled, f"{names.NAMES.get(interpreted)} and {names.NAMES.get(compiled)}"
        return int(interpreted)

    def answer(self, status: int) -> None:
        for mine in self.mine:
            mine[STATUS] = status


def answer_to(step: int, chance: random.Random) -> int:
    """Mostly well; what a driver may say to this step."""
    if step == names.WRITE_PAYLOAD:
        return chance.choice([DONE, DONE, DONE, BROKEN, OVERTAKEN, REFUSED])
    if step in (names.STEP, names.ACQUIRED, names.WAIT, names.ACKNOWLEDGE):
        return DONE
    return chance.choice([DONE, DONE, DONE, DONE, DONE, BROKEN])


def assert_same(worlds: tuple[Any, Any], savers: list[Saver], story: list[str]) -> None:
    assert np.array_equal(*worlds), story
    assert all(np.array_equal(*saver.mine) for saver in savers), story


def run_savers(seed: int, compiled: Any) -> None:
    """Six hundred steps of several savers in both worlds."""
    chance = random.Random(seed)
    in_flight, keep, one_persist = chance.randint(1, 4), chance.randint(1, 4), chance.randint(0, 1)
    spare = chance.choice([0, 0, 60])  # with sixty more, the slot sets take two words
    slot_count = in_flight + keep + spare
    words = words_for(slot_count)
    cells = new_cells()
    for slot in range(slot_count):
        first = QUARANTINED if chance.random() < 0.2 else FREE
        cells[first + word_of_slot(slot)] += mask_of_slot(slot)
    worlds = cells, cells.copy()
    savers = [Saver(compiled, worlds, words, keep, one_persist) for _ in range(in_flight)]
    story: list[str] = []
    ended = 0
    for _ in range(600):
        index = chance.randrange(len(savers))
        step = savers[index].step()
        story.append(f"{index}:{names.NAMES.get(step, 'ended')}")
        assert_same(worlds, savers, story)
        if step == ENDED:
            ended += 1
            savers[index] = Saver(compiled, worlds, words, keep, one_persist)
        else:
            savers[index].answer(answer_to(step, chance))
    assert ended > 5


@pytest.mark.parametrize("seed", range(30))
def test_saves_in_lockstep(seed: int) -> None:
    run_savers(seed, compiled_save)


def test_a_compiled_program_that_differs_in_one_word_is_noticed() -> None:
    wrong = njit(with_mistake("leftover = held", "leftover = held if held != tag_of(3, 1) else NO_TAG"))

    def many() -> None:
        for seed in range(100):
            run_savers(seed, wrong)

    with pytest.raises(AssertionError):
        many()


def random_picture(chance: random.Random, slot_count: int, verdicts: list[int]) -> tuple[Any, Any]:
    """Tags and verdicts as a look at some slots might give them."""
    tags, verdict = np.zeros(slot_count, np.int64), np.zeros(slot_count, np.int64)
    sequences = chance.sample(range(1, 1000), slot_count)
    for slot in range(slot_count):
        verdict[slot] = chance.choice(verdicts)
        tags[slot] = NO_TAG if verdict[slot] == EMPTY else tag_of(sequences[slot], slot)
    return tags, verdict


def run_in_lockstep(
    programs: tuple[Iterator[int], Iterator[int]], react: Callable[[int], None], same: Callable[[], bool]
) -> list[int]:
    """The steps of both programs, which must agree in everything."""
    asked = []
    while True:
        interpreted, compiled = (next(program, ENDED) for program in programs)
        assert interpreted == compiled, asked
        assert same(), asked
        if interpreted == ENDED:
            return asked
        asked.append(interpreted)
        react(interpreted)


@pytest.mark.parametrize("seed", range(30))
def test_a_survey_in_lockstep(seed: int) -> None:
    chance = random.Random(seed)
    slot_count = chance.randint(1, 8)
    found = random_picture(chance, slot_count, [EMPTY, CANDIDATE, CANDIDATE, REJECTED])
    worlds = [(new_mine(), np.zeros(slot_count, np.int64), np.zeros(slot_count, np.int64)) for _ in range(2)]

    def react(step: int) -> None:
        whole = chance.random() < 0.4
        for mine, tags, verdict in worlds:
            mine[STATUS] = DONE
            if step == names.READ_RECORD:
                slot = mine[2]
                tags[slot], verdict[slot] = found[0][slot], found[1][slot]
            elif not whole:
                mine[STATUS] = BROKEN

    programs = recover.survey(*worlds[0], slot_count), compiled_survey(*worlds[1], slot_count)
    asked = run_in_lockstep(programs, react, lambda: all(map(np.array_equal, *worlds)))
    assert asked.count(names.READ_RECORD) == slot_count


@pytest.mark.parametrize("seed", range(30))
def test_making_ready_in_lockstep(seed: int) -> None:
    chance = random.Random(seed)
    slot_count, keep, one_persist = chance.randint(1, 8), chance.randint(1, 4), chance.randint(0, 1)
    tags, verdict = random_picture(chance, slot_count, [EMPTY, CANDIDATE, WHOLE, REJECTED])
    worlds = [(new_cells(), new_mine(), tags.copy(), verdict.copy()) for _ in range(2)]
    fails = chance.random() < 0.3

    def react(_: int) -> None:
        broken = fails and chance.random() < 0.2
        for _cells, mine, _tags, _verdict in worlds:
            mine[STATUS] = BROKEN if broken else DONE

    options = slot_count, keep, one_persist
    programs = recover.make_ready(*worlds[0], *options), compiled_make_ready(*worlds[1], *options)
    asked = run_in_lockstep(programs, react, lambda: all(map(np.array_equal, *worlds)))
    assert asked
