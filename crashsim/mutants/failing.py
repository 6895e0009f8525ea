"""Mutants of what a save does when one of its steps failed."""

from __future__ import annotations

from ..bounds import Bounds
from ..promises import LOUD, NEVER_WRONG, NEWEST_SURVIVES, NO_HARM, NO_LEAK
from .mutant import EQUIVALENT, Mutant

FAILING = (
    Mutant(
        "free-on-record-persist-failure",
        "a slot whose record failed to persist is released instead of quarantined",
        EQUIVALENT,
        NEVER_WRONG,
        save=(
            (
                "fetch_add(cells, quarantine_cell, bit)\n        yield STEP\n        return\n    yield ACKNOWLEDGE\n",
                "fetch_add(cells, free_cell, bit)\n        yield STEP\n        return\n    yield ACKNOWLEDGE\n",
            ),
        ),
        bounds=Bounds(saves=3, faults=1),
        why="the doubtful record no longer fits the payload, which the digests notice",
    ),
    Mutant(
        "retry-failed-record-persist",
        "a record whose persist failed is persisted again, and the second success believed",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(
            (
                "        yield PERSIST_RECORD\n",
                "        yield PERSIST_RECORD\n        if mine[STATUS] != DONE:\n            yield PERSIST_RECORD\n",
            ),
        ),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "retry-failed-payload-persist",
        "a payload whose persist failed is persisted again, and the second success believed",
        NEWEST_SURVIVES,
        NEVER_WRONG,
        save=(
            (
                "            yield PERSIST_PAYLOAD\n",
                "            yield PERSIST_PAYLOAD\n            if mine[STATUS] != DONE:\n"
                "                yield PERSIST_PAYLOAD\n",
            ),
        ),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "believe-failed-record-persist",
        "the failure of the record's persist is not looked at",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(("        yield PERSIST_RECORD\n", "        yield PERSIST_RECORD\n        mine[STATUS] = DONE\n"),),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "believe-failed-payload-persist",
        "the failure of the payload's persist is not looked at",
        NEWEST_SURVIVES,
        NEVER_WRONG,
        save=(
            (
                "            yield PERSIST_PAYLOAD\n",
                "            yield PERSIST_PAYLOAD\n            mine[STATUS] = DONE\n",
            ),
        ),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "believe-failed-payload-write",
        "a payload that could not be written to its end is taken for written",
        NEWEST_SURVIVES,
        NEVER_WRONG,
        save=(("    yield WRITE_PAYLOAD ", "    yield WRITE_PAYLOAD\n    mine[STATUS] = DONE "),),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "believe-failed-record-write",
        "a record that could not be written is taken for written",
        NEWEST_SURVIVES,
        NEWEST_SURVIVES,
        save=(("\n    yield WRITE_RECORD\n", "\n    yield WRITE_RECORD\n    mine[STATUS] = DONE\n"),),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "believe-failed-mark-persist",
        "the failure of the mark's persist is not looked at",
        LOUD,
        LOUD,
        save=(
            (
                "                        yield PERSIST_MARK\n",
                "                        yield PERSIST_MARK\n                        mine[STATUS] = DONE\n",
            ),
        ),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "make-room-by-removing",
        "a save that cannot write its payload removes the newest checkpoint to make room",
        NO_HARM,
        NO_HARM,
        save=(
            (
                "        mine[OUTCOME] = outcome_of(mine[STATUS])\n",
                "        mine[OUTCOME] = outcome_of(mine[STATUS])\n        mine[MY_TAG] = load(cells, ROOT)\n"
                "        yield WRITE_EMPTY_RECORD\n",
            ),
        ),
        bounds=Bounds(saves=1, faults=1),
    ),
    Mutant(
        "failed-and-keeps-its-slot",
        "a save whose payload could not be written does not give its slot back",
        NO_LEAK,
        NO_LEAK,
        save=(
            (
                "        mine[OUTCOME] = outcome_of(mine[STATUS])\n        fetch_add(cells, free_cell, bit)\n",
                "        mine[OUTCOME] = outcome_of(mine[STATUS])\n",
            ),
        ),
        bounds=Bounds(saves=1, faults=1),
    ),
    Mutant(
        "failed-without-saying",
        "a save whose record persist failed ends without an outcome",
        LOUD,
        LOUD,
        save=(
            (
                "        mine[OUTCOME] = FAILED\n        fetch_add(cells, quarantine_cell, bit)\n        yield STEP\n"
                "        return\n    yield ACKNOWLEDGE\n",
                "        fetch_add(cells, quarantine_cell, bit)\n        yield STEP\n"
                "        return\n    yield ACKNOWLEDGE\n",
            ),
        ),
        bounds=Bounds(saves=1, faults=1),
    ),
    Mutant(
        "quarantine-is-forever",
        "a quarantined slot is never looked at again",
        NO_LEAK,
        NO_LEAK,
        save=(("if place == 2 * words:", "if place == words:"),),
        bounds=Bounds(savers=1, saves=4, faults=2),
    ),
    Mutant(
        "reuse-without-emptying",
        "a quarantined slot is used again without an empty record over its doubtful one",
        EQUIVALENT,
        NEVER_WRONG,
        save=(("    if place >= words:", "    if False:"),),
        bounds=Bounds(savers=1, saves=3, faults=1),
        why="the doubtful record no longer fits the payload, which the digests notice",
    ),
    Mutant(
        "empty-without-persist",
        "the empty record over a doubtful one is written but not persisted",
        EQUIVALENT,
        NEVER_WRONG,
        save=(("            yield PERSIST_EMPTY_RECORD\n", "            yield STEP\n"),),
        bounds=Bounds(savers=1, saves=3, faults=1),
        why="the doubtful record no longer fits the payload, which the digests notice",
    ),
)
