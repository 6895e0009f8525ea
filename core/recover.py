"""Recovery, as two programs of steps. Checked: explorer (crashed at every step, from every image), proofs.

`survey` decides what a store holds: it reads every record and picks the newest whole checkpoint. It writes nothing, so
readers use it too. `make_ready` prepares the store for a writer and must finish before any slot is handed out.

R1 newest-whole     candidates are taken by sequence, newest first, until one payload is whole (`newest-survives`)
R2 explained        every candidate passed over has its reason in `verdict`
R3 fence-first      what is kept is written again, byte for byte, and persisted before a slot is handed out: after a
                    process crash we have read a cache, and a page whose persist once failed sits there clean, so
                    the next power loss could take the only record we know of
R4 no-ghosts        a record that was passed over is overwritten by an empty one, persisted, before its slot is free; an
                    empty one too, since it may be empty in the cache only, over a doubtful record on the medium
R5 above-all        sequences go on above every record seen, whole or not (`monotone`)
R6 marked-again     a mark that was read is written and persisted again, for the same reason
R7 idempotent       a crash anywhere in here, and recovery from there, find the same checkpoint

`tags[slot]` is the tag of the slot's valid record, or NO_TAG; `verdict[slot]` is one of the words below.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .cells import FREE, KEPT, MARKED, MY_SLOT, MY_TAG, ROOT, SEQUENCE, STATUS
from .rules import (
    DONE,
    MARK_DURABLE,
    NO_SLOT,
    NO_TAG,
    mask_of_slot,
    newer_candidate,
    next_sequence,
    sequence_of,
    slot_of,
    word_of_slot,
)
from .steps import (
    PERSIST_EMPTY_RECORD,
    PERSIST_MARK,
    PERSIST_PAYLOAD,
    PERSIST_RECORD,
    READ_RECORD,
    REWRITE_PAYLOAD,
    REWRITE_RECORD,
    STEP,
    VERIFY_PAYLOAD,
    WRITE_EMPTY_RECORD,
    WRITE_MARK,
)

EMPTY = 0  # no record was ever written here, or an empty one
CANDIDATE = 1  # a valid record, payload not looked at yet
WHOLE = 2  # record and payload verified
REJECTED = 3  # not usable: the driver knows why
KEPT_RECORD = 4  # a valid record that is to be kept


def survey(mine: Any, tags: Any, verdict: Any, slot_count: int) -> Iterator[int]:
    """Read every record, then verify payloads from the newest down to the first whole one: its tag in `mine[MY_TAG]`.

    For READ_RECORD the driver sets `tags[slot]` and `verdict[slot]`; for VERIFY_PAYLOAD it sets the status.
    """
    for slot in range(slot_count):
        mine[MY_SLOT] = slot
        yield READ_RECORD
    mine[MY_TAG] = NO_TAG
    best = NO_TAG
    while True:
        best = NO_TAG
        for slot in range(slot_count):
            if verdict[slot] == CANDIDATE:
                best = newer_candidate(best, tags[slot])
        if best == NO_TAG:
            break
        slot = slot_of(best)
        mine[MY_SLOT] = slot
        yield VERIFY_PAYLOAD
        if mine[STATUS] == DONE:
            verdict[slot] = WHOLE
            mine[MY_TAG] = best
            break
        verdict[slot] = REJECTED
    yield STEP


def make_ready(
    cells: Any, mine: Any, tags: Any, verdict: Any, slot_count: int, keep: int, one_persist: int
) -> Iterator[int]:
    """Make durable what `survey` found and fill `cells` for savers. Stops early, status not DONE, when a step fails.

    Only after this may a slot be handed out. Runs alone: no saver exists yet, so `cells` are written plainly.
    """
    kept = 0
    slot = NO_SLOT
    while kept < keep:
        best = NO_TAG
        for candidate in range(slot_count):
            if verdict[candidate] == WHOLE or verdict[candidate] == CANDIDATE:
                best = newer_candidate(best, tags[candidate])
        if best == NO_TAG:
            break
        slot = slot_of(best)
        mine[MY_SLOT] = slot
        if one_persist == 1:
            if verdict[slot] == CANDIDATE:  # here a valid record does not say that its payload was ever durable
                yield VERIFY_PAYLOAD
                if mine[STATUS] != DONE:
                    verdict[slot] = REJECTED
                    continue
            yield REWRITE_PAYLOAD
            if mine[STATUS] == DONE:
                yield PERSIST_PAYLOAD
            if mine[STATUS] != DONE:
                return
        yield REWRITE_RECORD
        if mine[STATUS] == DONE:
            yield PERSIST_RECORD
        if mine[STATUS] != DONE:
            return
        verdict[slot] = KEPT_RECORD
        cells[ROOT if kept == 0 else KEPT + kept - 1] = best
        kept += 1

    if cells[MARKED] == MARK_DURABLE:
        yield WRITE_MARK
        if mine[STATUS] == DONE:
            yield PERSIST_MARK
        if mine[STATUS] != DONE:
            return

    for slot in range(slot_count):
        if verdict[slot] == REJECTED or verdict[slot] == EMPTY:
            mine[MY_SLOT] = slot
            yield WRITE_EMPTY_RECORD
            if mine[STATUS] == DONE:
                yield PERSIST_EMPTY_RECORD
            if mine[STATUS] != DONE:
                return

    highest = cells[SEQUENCE]
    for slot in range(slot_count):
        highest = next_sequence(highest, sequence_of(tags[slot]))
        if verdict[slot] != KEPT_RECORD:
            cells[FREE + word_of_slot(slot)] += mask_of_slot(slot)
    cells[SEQUENCE] = highest
    if kept == 0:
        assert cells[MARKED] != MARK_DURABLE, (
            "newest-survives: a marked store without a whole checkpoint is refused before this"
        )
    yield STEP
