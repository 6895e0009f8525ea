"""Mutants of recovery."""

from __future__ import annotations

from ..bounds import Bounds
from ..promises import LOUD, MONOTONE, NEVER_WRONG, NEWEST_SURVIVES, NO_LEAK
from .mutant import EQUIVALENT, Mutant

_EMPTYING = """    for slot in range(slot_count):
        if verdict[slot] == REJECTED or verdict[slot] == EMPTY:
            mine[MY_SLOT] = slot
            yield WRITE_EMPTY_RECORD
            if mine[STATUS] == DONE:
                yield PERSIST_EMPTY_RECORD
            if mine[STATUS] != DONE:
                return
"""

RECOVERING = (
    Mutant(
        "recovery-trusts-the-cache",
        "recovery hands out slots without writing again, and persisting, the record it keeps",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        make_ready=(
            (
                "        yield REWRITE_RECORD\n        if mine[STATUS] == DONE:\n            yield PERSIST_RECORD\n",
                "        yield STEP\n",
            ),
        ),
        bounds=Bounds(saves=2),
    ),
    Mutant(
        "recovery-persists-without-rewriting",
        "recovery persists the record it keeps without writing it again",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        make_ready=(("        yield REWRITE_RECORD\n", "        yield STEP\n"),),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "recovery-rewrites-without-persisting",
        "recovery writes the record it keeps again without persisting it",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        make_ready=(
            (
                "        yield REWRITE_RECORD\n        if mine[STATUS] == DONE:\n            yield PERSIST_RECORD\n",
                "        yield REWRITE_RECORD\n",
            ),
        ),
        bounds=Bounds(saves=2),
    ),
    Mutant(
        "recovery-keeps-rejected-records",
        "recovery frees a slot whose record it passed over without an empty record over it",
        EQUIVALENT,
        EQUIVALENT,
        make_ready=(("verdict[slot] == REJECTED", "False"),),
        bounds=Bounds(saves=3, restarts=1),
        why="only torn records are passed over here, and a torn record stays torn until the next one is written",
    ),
    Mutant(
        "make-ready-skips-empty",
        "recovery takes a record that it read as empty for empty on the medium",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        make_ready=((" or verdict[slot] == EMPTY", ""),),
        bounds=Bounds(savers=1, saves=3, faults=1),
    ),
    Mutant(
        "empty-rewritten-without-persist",
        "recovery writes empty records again without persisting them",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        make_ready=(("                yield PERSIST_EMPTY_RECORD\n", "                yield STEP\n"),),
        bounds=Bounds(savers=1, saves=3, faults=1),
    ),
    Mutant(
        "mark-trusted-from-cache",
        "recovery takes a mark that it read for durable",
        LOUD,
        LOUD,
        make_ready=(("if cells[MARKED] == MARK_DURABLE:", "if False:"),),
        bounds=Bounds(saves=2, restarts=1),
    ),
    Mutant(
        "mark-rewritten-without-persist",
        "recovery writes the mark again without persisting it",
        LOUD,
        LOUD,
        make_ready=(("            yield PERSIST_MARK\n", "            yield STEP\n"),),
        bounds=Bounds(saves=2, restarts=1),
    ),
    Mutant(
        "mark-persisted-without-rewriting",
        "recovery persists the mark that it read without writing it again",
        LOUD,
        LOUD,
        make_ready=(("        yield WRITE_MARK\n", "        yield STEP\n"),),
        bounds=Bounds(savers=1, saves=2, faults=1, restarts=1),
    ),
    Mutant(
        "one-persist-unverified",
        "with one persist a save, recovery keeps an older record whose payload it did not verify",
        NEVER_WRONG,
        NEVER_WRONG,
        make_ready=(("                yield VERIFY_PAYLOAD\n", "                yield STEP\n"),),
        bounds=Bounds(saves=3, keep=2, one_persist=1),
    ),
    Mutant(
        "sequence-restarts-low",
        "after recovery sequences start again from the beginning",
        MONOTONE,
        MONOTONE,
        make_ready=(("highest = next_sequence(highest, sequence_of(tags[slot]))", "pass"),),
        bounds=Bounds(saves=2),
    ),
    Mutant(
        "recovery-takes-any",
        "recovery takes the first valid record it meets, not the newest",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        survey=(("best = newer_candidate(best, tags[slot])", "best = best if best else tags[slot]"),),
        bounds=Bounds(saves=2),
    ),
    Mutant(
        "recovery-stops-at-a-bad-one",
        "recovery gives up when the newest record's payload does not verify, without looking at older ones",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        survey=(("        verdict[slot] = REJECTED\n", "        verdict[slot] = REJECTED\n        break\n"),),
        bounds=Bounds(saves=2, one_persist=1),
    ),
    Mutant(
        "recovery-without-verifying",
        "recovery takes the newest record without verifying its payload",
        EQUIVALENT,
        EQUIVALENT,
        survey=(
            (
                "        yield VERIFY_PAYLOAD\n        if mine[STATUS] == DONE:\n",
                "        yield STEP\n        if True:\n",
            ),
        ),
        why="with two persists a save no record is ever durable before its payload",
    ),
    Mutant(
        "one-persist-without-verifying",
        "with one persist a save, recovery takes the newest record without verifying its payload",
        NEVER_WRONG,
        NEVER_WRONG,
        survey=(
            (
                "        yield VERIFY_PAYLOAD\n        if mine[STATUS] == DONE:\n",
                "        yield STEP\n        if True:\n",
            ),
        ),
        bounds=Bounds(saves=2, one_persist=1),
    ),
    Mutant(
        "recovery-empties-what-it-keeps",
        "recovery writes empty records over every slot, the kept one too",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        make_ready=(("if verdict[slot] == REJECTED or verdict[slot] == EMPTY:", "if verdict[slot] != CANDIDATE:"),),
        bounds=Bounds(saves=1),
    ),
    Mutant(
        "recovery-empties-first",
        "recovery writes its empty records before it has made durable what it keeps",
        EQUIVALENT,
        EQUIVALENT,
        make_ready=(("    kept = 0\n", _EMPTYING + "    kept = 0\n"),),
        bounds=Bounds(saves=2),
        why="an empty record covers only what was passed over; what is kept lies elsewhere",
    ),
    Mutant(
        "recovery-goes-on-after-a-failure",
        "recovery does not look at whether the record that it keeps was made durable",
        LOUD,
        LOUD,
        make_ready=(
            (
                "            yield PERSIST_RECORD\n        if mine[STATUS] != DONE:\n            return\n",
                "            yield PERSIST_RECORD\n",
            ),
        ),
        bounds=Bounds(saves=1, faults=1),
    ),
    Mutant(
        "recovery-frees-the-kept",
        "recovery hands out every slot, the kept one too",
        NO_LEAK,
        NO_LEAK,
        make_ready=(("if verdict[slot] != KEPT_RECORD:", "if True:"),),
        bounds=Bounds(saves=1),
    ),
    Mutant(
        "recovery-leaks-a-slot",
        "recovery does not hand out slots whose records it passed over or never found",
        NO_LEAK,
        NO_LEAK,
        make_ready=(("if verdict[slot] != KEPT_RECORD:", "if verdict[slot] == CANDIDATE:"),),
        bounds=Bounds(saves=1),
    ),
)
