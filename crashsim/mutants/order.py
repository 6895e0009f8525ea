"""Mutants of the order in which a save persists, acknowledges and publishes."""

from __future__ import annotations

from ..promises import LOUD, NEVER_WRONG, NEWEST_SURVIVES, NO_REUSE
from .mutant import EQUIVALENT, Mutant

_RELEASE_AT_END = """        assert before // mask_of_slot(released) % 2 == 0, "S5 one-out"
        yield STEP
"""

ORDER = (
    Mutant(
        "drop-payload-persist",
        "the payload is not persisted before its record is written",
        EQUIVALENT,
        NEVER_WRONG,
        save=(("            yield PERSIST_PAYLOAD\n", "            yield STEP\n"),),
        why="one persist covers the whole slot file, so the record's persist makes the payload durable too",
    ),
    Mutant(
        "swap-data-and-record",
        "the record is written before the payload is persisted",
        EQUIVALENT,
        NEVER_WRONG,
        save=(
            ("            yield PERSIST_PAYLOAD\n", "            yield WRITE_RECORD\n"),
            ("\n    yield WRITE_RECORD\n    if", "\n    yield PERSIST_PAYLOAD\n    if"),
        ),
        why="a record that is durable before its payload is noticed by the payload's digests",
    ),
    Mutant(
        "writers-do-not-persist",
        "each writer leaves it to the saver to persist what it stored",
        EQUIVALENT,
        EQUIVALENT,
        writers_persist=False,
        why="where a persist covers a file or a device, it covers what every thread wrote",
    ),
    Mutant(
        "drop-record-persist",
        "the record is written but not persisted",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(("        yield PERSIST_RECORD\n", "        yield STEP\n"),),
    ),
    Mutant(
        "acknowledge-before-record",
        "a save is acknowledged before its record is written",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(
            ("\n    yield WRITE_RECORD\n", "\n    yield ACKNOWLEDGE\n    yield WRITE_RECORD\n"),
            ("    yield ACKNOWLEDGE\n\n", "\n"),
        ),
    ),
    Mutant(
        "acknowledge-before-record-persist",
        "a save is acknowledged when its record is written, not when it is durable",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(
            ("        yield PERSIST_RECORD\n", "        yield ACKNOWLEDGE\n        yield PERSIST_RECORD\n"),
            ("    yield ACKNOWLEDGE\n\n", "\n"),
        ),
    ),
    Mutant(
        "slot-released-before-barrier",
        "the root is swapped, and the older slot released, before the record is persisted, as the published code does",
        NEWEST_SURVIVES,
        NEVER_WRONG,
        published=True,
        save=(
            ("        yield PERSIST_RECORD\n", "        yield STEP\n"),
            ("    yield ACKNOWLEDGE\n\n", "\n"),
            (_RELEASE_AT_END, _RELEASE_AT_END + "    yield PERSIST_RECORD\n    yield ACKNOWLEDGE\n"),
        ),
    ),
    Mutant(
        "persist-after-swap",
        "the root is swapped before the record is persisted, the older slot released after it",
        NEWEST_SURVIVES,
        NEVER_WRONG,
        save=(
            ("        yield PERSIST_RECORD\n", "        yield STEP\n"),
            ("    yield ACKNOWLEDGE\n\n", "\n"),
            ("    leftover = tag", "    yield PERSIST_RECORD\n    yield ACKNOWLEDGE\n    leftover = tag"),
        ),
    ),
    Mutant(
        "barrier-makes-nothing-durable",
        "the record is persisted by clwb and sfence, as the published code does on a mapped file: nothing on a disk",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(("        yield PERSIST_RECORD\n", "        yield STEP\n"),),
        unless=("pmem", "pmem-eadr"),
        published=True,
    ),
    Mutant(
        "registered-then-maximum",
        "the record is written when the slot is acquired, and recovery believes the highest counter, as published",
        NEVER_WRONG,
        NEVER_WRONG,
        save=(
            ("    yield ACQUIRED\n", "    yield ACQUIRED\n    yield WRITE_RECORD\n"),
            ("\n    yield WRITE_RECORD\n    if mine", "\n    yield STEP\n    if mine"),
        ),
        survey=(
            (
                "        yield VERIFY_PAYLOAD\n        if mine[STATUS] == DONE:\n",
                "        yield STEP\n        if True:\n",
            ),
        ),
        published=True,
    ),
    Mutant(
        "acknowledge-before-mark",
        "a save is acknowledged before the mark that says so is durable",
        LOUD,
        LOUD,
        save=(
            (
                "        mark = load(cells, MARKED)\n        yield STEP\n        while",
                "        yield ACKNOWLEDGE\n        mark = load(cells, MARKED)\n        yield STEP\n        while",
            ),
            ("    yield ACKNOWLEDGE\n\n", "\n"),
        ),
    ),
    Mutant(
        "publish-before-acknowledge",
        "the root is swapped, and others may release the older slot, before the save is acknowledged",
        NO_REUSE,
        NO_REUSE,
        save=(
            ("    yield ACKNOWLEDGE\n\n", "\n"),
            ("    leftover = tag", "    yield ACKNOWLEDGE\n    leftover = tag"),
        ),
    ),
    Mutant(
        "drop-mark-persist",
        "the mark that something was acknowledged is not persisted",
        LOUD,
        LOUD,
        save=(("                yield PERSIST_MARK\n", "                yield STEP\n"),),
    ),
)
