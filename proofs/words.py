"""Claims on 64-bit words: what CrossHair confirms for endless integers holds for those that wrap, within the limits.

Each function below makes the *obligations* of one claim: formulas that no word may satisfy. z3 must answer `unsat` to
each of them, and `sat` to what is given, so that nothing is proved of nothing. `unknown` is a failure. A twin is the same
function with a limit moved; z3 must then find words that satisfy an obligation, and those are printed.

    sequences below 2^48   tags below 2^60, order right           the limit of the core
    sequences below 2^51   tags below 2^63, order still right     three bits to spare
    sequence   2^51        its tag is -2^63: older than no tag    the break
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3

from lastgood.core import rules

from .machine_words import Word, as_bits, runs

Obligation = tuple[z3.BoolRef, z3.BoolRef]
"""What is given, and what must then hold."""


BYTES_BELOW = 2**62
"""Sizes below this are claimed not to wrap; the largest file that Linux knows is twice as long."""


def sequence_and_slot(name: str) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef]:
    """Any sequence that is accepted, any slot, and the formula that says so."""
    sequence, slot = z3.BitVecs(f"{name}_sequence {name}_slot", 64)
    within = z3.And(sequence >= 1, sequence < rules.SEQUENCE_LIMIT, slot >= 0, slot < rules.SLOT_LIMIT)
    return sequence, slot, within


def tag_of(sequence: z3.BitVecRef, slot: z3.BitVecRef) -> Any:
    """The core's own packing, in 64 bits."""
    packed: Any = rules.tag_of
    return packed(Word(sequence), Word(slot))


def word_tag_round_trip() -> Iterator[Obligation]:
    """In 64-bit words a tag is positive, and gives back the sequence and the slot that were packed."""
    sequence, slot, within = sequence_and_slot("a")
    tag = tag_of(sequence, slot)
    yield within, tag.bits > rules.NO_TAG
    yield within, as_bits(rules.sequence_of(tag)) == sequence
    yield within, as_bits(rules.slot_of(tag)) == slot


def word_tag_order() -> Iterator[Obligation]:
    """Signed comparison of two 64-bit tags is the order of their sequences, for the guard and for the scan as well."""
    older, older_slot, first = sequence_and_slot("older")
    newer, newer_slot, second = sequence_and_slot("newer")
    given = z3.And(first, second, older < newer)
    seen, mine = tag_of(older, older_slot), tag_of(newer, newer_slot)
    yield given, seen.bits < mine.bits
    for condition, allowed in runs(lambda: bool(rules.may_publish(seen, mine)), given=given):
        yield condition, z3.BoolVal(allowed)
    for condition, newest in runs(rules.newer_candidate, seen, mine, given=given):
        yield condition, as_bits(newest) == mine.bits


def word_publish() -> Iterator[Obligation]:
    """In 64-bit words no try to publish puts an older sequence into the root, or ends with an older one there."""
    root, root_slot, first = sequence_and_slot("root")
    seen, seen_slot, second = sequence_and_slot("seen")
    mine, mine_slot, third = sequence_and_slot("mine")
    given = z3.And(first, second, third, seen <= root, z3.Implies(seen == root, seen_slot == root_slot))
    root_tag, seen_tag, mine_tag = tag_of(root, root_slot), tag_of(seen, seen_slot), tag_of(mine, mine_slot)

    def try_once() -> tuple[int, bool]:
        if not rules.may_publish(seen_tag, mine_tag):
            return rules.SUPERSEDED, False
        return rules.publish_outcome(seen_tag, root_tag, mine_tag), bool(seen_tag == root_tag)

    for condition, (outcome, swapped) in runs(try_once, given=given):
        after = mine if swapped else root
        yield condition, after >= root
        yield condition, z3.Or(outcome == rules.LOOK_AGAIN, after >= mine)


def word_lowest_bit() -> Iterator[Obligation]:
    """In 64-bit words, acquiring the lowest slot of any set clears its bit and no other, and the set stays a set."""
    mask = z3.BitVec("mask", 64)
    full = sum(2**place for place in range(rules.SLOTS_PER_WORD))
    within = z3.And(mask != 0, mask & ~z3.BitVecVal(full, 64) == 0)
    for condition, lowest in runs(rules.lowest_bit, Word(mask), given=within):
        bit = as_bits(rules.mask_of_slot(lowest))
        after = (Word(mask) - Word(bit)).bits
        yield condition, z3.And(mask & bit == bit, mask & (bit - 1) == 0)
        yield condition, z3.And(after == mask & ~bit, after >= 0, after < mask)


def word_slot_masks() -> Iterator[Obligation]:
    """In 64-bit words, slots that share a word have bits of their own, and adding a bit that is clear sets it alone."""
    slot, other, mask = z3.BitVecs("slot other mask", 64)
    given = z3.And(slot >= 0, slot < other, other < rules.SLOT_LIMIT, mask >= 0)
    given = z3.And(given, as_bits(rules.word_of_slot(Word(slot))) == as_bits(rules.word_of_slot(Word(other))))
    bit, other_bit = as_bits(rules.mask_of_slot(Word(slot))), as_bits(rules.mask_of_slot(Word(other)))
    yield given, z3.And(bit > 0, other_bit > 0, bit & other_bit == 0, bit & (bit - 1) == 0)
    clear = z3.And(given, mask & other_bit == 0)
    yield clear, z3.And(mask + other_bit == mask | other_bit, mask + other_bit > 0)


def word_geometry() -> Iterator[Obligation]:
    """In 64-bit words aligning and adding sizes agree with integers that have no end."""
    count, area = z3.BitVecs("count area", 64)
    within = z3.And(count >= 0, count < BYTES_BELOW, area >= 0, area < 2**40)
    narrow: list[Any] = [Word(count), Word(area)]
    wide: list[Any] = [Word(z3.SignExt(64, count)), Word(z3.SignExt(64, area))]

    def agree(short: Any, long: Any) -> z3.BoolRef:
        return z3.SignExt(64, short.bits) == long.bits

    yield within, agree(rules.align_up(narrow[0]), rules.align_up(wide[0]))
    yield z3.And(within, count <= rules.SLOT_LIMIT), agree(rules.words_for(narrow[0]), rules.words_for(wide[0]))
    yield within, agree(rules.slot_file_bytes(narrow[1], narrow[0]), rules.slot_file_bytes(wide[1], wide[0]))
