"""Machine words: the model wraps where compiled code does, and the limit of the core lies below the first break."""

from __future__ import annotations

import warnings

import numba
import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from lastgood.core import rules
from proofs import words
from proofs.machine_words import Word, as_bits, runs
from proofs.twins import in_place_of
from proofs.z3_tool import prove

COMPILED = not numba.config.DISABLE_JIT
int64 = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**63 - 1)


def word(value: int) -> Word:
    return Word(z3.BitVecVal(value, 64))


def value(result: Word | int) -> int:
    return z3.simplify(as_bits(result)).as_signed_long()


def compiled(rule: object) -> object:
    return numba.njit(rule)


tag_of = compiled(rules.tag_of)
sequence_of = compiled(rules.sequence_of)
slot_of = compiled(rules.slot_of)
align_up = compiled(rules.align_up)
word_of_slot = compiled(rules.word_of_slot)
words_for = compiled(rules.words_for)
publish_outcome = compiled(rules.publish_outcome)


@pytest.mark.skipif(not COMPILED, reason="compares with compiled code")
@given(int64, st.integers(0, 4095))
def test_packing_wraps_as_compiled_code_does(sequence: int, slot: int) -> None:
    assert value(rules.tag_of(word(sequence), word(slot))) == tag_of(np.int64(sequence), np.int64(slot))


@pytest.mark.skipif(not COMPILED, reason="compares with compiled code")
@given(int64)
def test_dividing_rounds_as_compiled_code_does(number: int) -> None:
    """Negative numbers too: hardware and z3 round towards zero, Python and numba down."""
    assert value(rules.sequence_of(word(number))) == sequence_of(np.int64(number)) == number // 4096
    assert value(rules.slot_of(word(number))) == slot_of(np.int64(number)) == number % 4096
    assert value(rules.word_of_slot(word(number))) == word_of_slot(np.int64(number)) == number // 62
    assert value(word(number) % 62) == number % 62


@pytest.mark.skipif(not COMPILED, reason="compares with compiled code")
@given(counts)
def test_sizes_wrap_as_compiled_code_does(count: int) -> None:
    assert value(rules.align_up(word(count))) == align_up(np.int64(count))
    assert value(rules.words_for(word(count))) == words_for(np.int64(count))


@pytest.mark.skipif(not COMPILED, reason="compares with compiled code")
@given(int64, int64, int64)
def test_a_run_takes_the_way_that_compiled_code_takes(seen: int, found: int, mine: int) -> None:
    ways = list(runs(rules.publish_outcome, word(seen), word(found), word(mine), given=z3.BoolVal(True)))
    assert [outcome for _, outcome in ways] == [publish_outcome(np.int64(seen), np.int64(found), np.int64(mine))]


def test_runs_take_every_way_once() -> None:
    seen, found, mine = (Word(bits) for bits in z3.BitVecs("seen found mine", 64))
    ways = list(runs(rules.publish_outcome, seen, found, mine, given=z3.BoolVal(True)))
    assert sorted(outcome for _, outcome in ways) == [rules.PUBLISHED, rules.SUPERSEDED, rules.LOOK_AGAIN]
    solver = z3.Solver()
    solver.add(z3.Not(z3.Or([condition for condition, _ in ways])))
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("claim", [words.word_tag_round_trip, words.word_tag_order, words.word_publish])
def test_the_first_break_is_at_two_to_the_51(claim: object) -> None:
    """The core's limit, 2^48, leaves three bits to spare; sequence 2^51 is the first that breaks each claim."""
    with in_place_of("lastgood.core.rules.SEQUENCE_LIMIT", 2**51):
        _, wrong, _ = prove(claim())  # type: ignore[operator]
    assert wrong == []
    with in_place_of("lastgood.core.rules.SEQUENCE_LIMIT", 2**51 + 1):
        _, wrong, case = prove(claim())  # type: ignore[operator]
    assert wrong
    assert str(2**51) in case


@pytest.mark.skipif(not COMPILED, reason="runs compiled code")
def test_the_break_is_real_in_compiled_code() -> None:
    """Had sequences no limit, the checkpoint of save 2^51 would be older than none at all, and be released at once."""
    assert tag_of(np.int64(2**51 - 1), np.int64(4095)) == 2**63 - 1
    assert tag_of(np.int64(2**51), np.int64(0)) == -(2**63)


def test_nothing_is_proved_of_nothing() -> None:
    number = z3.BitVec("number", 64)
    _, wrong, case = prove([(z3.And(number > 0, number < 0), number == 7)])
    assert wrong
    assert not case
    assert prove([])[1]


def test_a_question_that_takes_too_long_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofs.z3_tool.MILLISECONDS", 1)
    first, second = z3.BitVecs("first second", 64)
    hard = z3.And(first > 1, second > 1, first < 2**32, second < 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, wrong, case = prove([(hard, first * second != 4294967291 * 4294967279)])
    assert wrong
    assert not case
