"""A save, as a program of steps. Checked: explorer (every schedule, crash and image), proofs, refinement tests.

One call is one save; many run at once over the same `cells`. The program touches shared words through `load`,
`compare_swap` and `fetch_add` only, at most once between two yields, and leaves all input and output to its driver
(`steps`). What follows is the life of one save; every line may be the last one before a crash:

    load root ─ take sequence ─ acquire slot ─ WRITE_PAYLOAD ─ PERSIST_PAYLOAD ─ WRITE_RECORD ─ PERSIST_RECORD
                                                                                                     │ durable point
               release the slot that fell out ─ offer the displaced tag ─ swap the root ─ ACKNOWLEDGE ┘

S1 data-before-record      a record is written only after its whole payload is durable (`never-wrong`, digests ignored)
S2 record-before-all       the save is acknowledged, and the root swapped, only after its record is durable
                           (`newest-survives`): an older checkpoint is released by a newer *durable* one
S3 whole-word-compare      the root is swapped by (sequence, slot), only over an older tag (`monotone`)
S4 own-slot                a slot belongs to one save from acquire until it is published or released (`no-reuse`)
S5 one-out                 every save that acquired a slot puts exactly one slot back, or quarantines its own (`no-leak`)
S6 doubt-is-kept           a record that failed to persist may still be on the medium: its slot is quarantined, and used
                           again only after an empty record was persisted over it
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .atomics import compare_swap, fetch_add, load
from .cells import FREE, KEPT, MARKED, MY_SEQUENCE, MY_SLOT, MY_TAG, OUTCOME, QUARANTINED, ROOT, SEQUENCE, STATUS
from .rules import (
    DONE,
    FAILED,
    LOOK_AGAIN,
    MARK_ABSENT,
    MARK_DURABLE,
    MARK_UNDER_WAY,
    NO_SLOT,
    NO_TAG,
    PUBLISHED,
    SLOTS_PER_WORD,
    SUPERSEDED,
    is_overtaken,
    keeps_offered,
    lowest_bit,
    mask_of_slot,
    may_publish,
    outcome_of,
    publish_outcome,
    sequence_fits,
    slot_of,
    tag_displaced,
    tag_of,
    word_of_slot,
)
from .steps import (
    ACKNOWLEDGE,
    ACQUIRED,
    PERSIST_EMPTY_RECORD,
    PERSIST_MARK,
    PERSIST_PAYLOAD,
    PERSIST_RECORD,
    STEP,
    WAIT,
    WRITE_EMPTY_RECORD,
    WRITE_MARK,
    WRITE_PAYLOAD,
    WRITE_RECORD,
)


def save(cells: Any, mine: Any, words: int, keep: int, one_persist: int) -> Iterator[int]:
    """Run one save over the shared `cells`; `mine` holds its own words and receives its OUTCOME.

    `words` is the number of words in a slot set, `keep` the number of checkpoints to keep. With `one_persist` the
    payload and its record share one persist, and recovery must then verify payload digests to be right.
    Longer than sixty lines because a program yields only from its outermost function: it is one list, read downwards.
    """
    seen = load(cells, ROOT)
    yield STEP
    sequence = fetch_add(cells, SEQUENCE, 1) + 1
    assert sequence_fits(sequence), "T3 sign"
    mine[MY_SEQUENCE] = sequence
    yield STEP

    # Acquire: free slots first, then quarantined ones. With at most `in_flight` savers a slot is always found, though
    # perhaps not in the first round: slots move while we look.
    slot = NO_SLOT
    place = 0
    while slot == NO_SLOT:
        cell = FREE + place if place < words else QUARANTINED + place - words
        mask = load(cells, cell)
        yield STEP
        if mask == 0:
            place += 1
            if place == 2 * words:
                place = 0
                yield WAIT
        else:
            lowest = lowest_bit(mask)
            if compare_swap(cells, cell, mask, mask - mask_of_slot(lowest)) == mask:
                slot = place % words * SLOTS_PER_WORD + lowest
            yield STEP
    tag = tag_of(sequence, slot)
    mine[MY_SLOT] = slot
    mine[MY_TAG] = tag

    free_cell = FREE + word_of_slot(slot)
    quarantine_cell = QUARANTINED + word_of_slot(slot)
    bit = mask_of_slot(slot)

    if place >= words:  # S6: nobody may read the doubtful record once its payload is overwritten
        yield WRITE_EMPTY_RECORD
        if mine[STATUS] == DONE:
            yield PERSIST_EMPTY_RECORD
        if mine[STATUS] != DONE:
            mine[OUTCOME] = FAILED
            fetch_add(cells, quarantine_cell, bit)
            yield STEP
            return

    yield ACQUIRED
    yield WRITE_PAYLOAD  # returns when all writers are joined
    if mine[STATUS] == DONE:
        oldest_kept = load(cells, ROOT if keep == 1 else KEPT + keep - 2)
        yield STEP
        if is_overtaken(oldest_kept, tag):
            mine[OUTCOME] = SUPERSEDED
            fetch_add(cells, free_cell, bit)
            yield STEP
            return
        if one_persist == 0:
            yield PERSIST_PAYLOAD
    if mine[STATUS] != DONE:
        mine[OUTCOME] = outcome_of(mine[STATUS])
        fetch_add(cells, free_cell, bit)
        yield STEP
        return

    yield WRITE_RECORD
    if mine[STATUS] == DONE:
        yield PERSIST_RECORD
    if mine[STATUS] == DONE:
        mark = load(cells, MARKED)
        yield STEP
        while mark != MARK_DURABLE and mine[STATUS] == DONE:
            if mark == MARK_ABSENT:
                # One saver at a time: a persist that fails marks the page clean, and would make another's look right.
                mark = compare_swap(cells, MARKED, MARK_ABSENT, MARK_UNDER_WAY)
                yield STEP
                if mark == MARK_ABSENT:
                    yield WRITE_MARK
                    if mine[STATUS] == DONE:
                        yield PERSIST_MARK
                    mark = MARK_DURABLE if mine[STATUS] == DONE else MARK_ABSENT
                    compare_swap(cells, MARKED, MARK_UNDER_WAY, mark)
                    yield STEP
            else:
                yield WAIT
                mark = load(cells, MARKED)
                yield STEP
    if mine[STATUS] != DONE:
        mine[OUTCOME] = FAILED
        fetch_add(cells, quarantine_cell, bit)
        yield STEP
        return
    yield ACKNOWLEDGE

    outcome = LOOK_AGAIN if may_publish(seen, tag) else SUPERSEDED
    while outcome == LOOK_AGAIN:
        found = compare_swap(cells, ROOT, seen, tag)
        yield STEP
        outcome = publish_outcome(seen, found, tag)
        if outcome == LOOK_AGAIN:
            seen = found
    mine[OUTCOME] = PUBLISHED if outcome == PUBLISHED else SUPERSEDED

    leftover = tag_displaced(outcome, seen, tag)
    for cell in range(KEPT, KEPT + keep - 1):
        held = load(cells, cell)
        yield STEP
        while keeps_offered(held, leftover):
            found = compare_swap(cells, cell, held, leftover)
            yield STEP
            if found == held:
                leftover = held
                break
            held = found
    if leftover != NO_TAG:
        released = slot_of(leftover)
        before = fetch_add(cells, FREE + word_of_slot(released), mask_of_slot(released))
        assert before // mask_of_slot(released) % 2 == 0, "S5 one-out"
        yield STEP
