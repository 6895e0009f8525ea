"""Mutants of what concurrent saves do to each other: who publishes, who acquires, who releases."""

from __future__ import annotations

from ..bounds import Bounds
from ..promises import BOUNDED, LOUD, MONOTONE, NEVER_WRONG, NEWEST_SURVIVES, NO_LEAK, NO_REUSE
from .mutant import EQUIVALENT, SLOT_ONLY, Mutant

_RELEASE_AT_END = """        assert before // mask_of_slot(released) % 2 == 0, "S5 one-out"
        yield STEP
"""

SHARING = (
    Mutant(
        "pointer-only-compare",
        "the compare-and-swap looks at the slot alone, as the published listing does with an address",
        NEWEST_SURVIVES,
        NEVER_WRONG,
        compare_swap=SLOT_ONLY,
        bounds=Bounds(saves=4),
        published=True,
    ),
    Mutant(
        "swap-over-newer",
        "a publish that lost to a newer checkpoint tries again over it",
        MONOTONE,
        MONOTONE,
        save=(
            (
                "outcome = publish_outcome(seen, found, tag)",
                "outcome = PUBLISHED if found == seen else LOOK_AGAIN",
            ),
        ),
    ),
    Mutant(
        "count-before-load-unguarded",
        "the sequence is taken before the root is looked at, and an older save may swap over a newer one",
        MONOTONE,
        MONOTONE,
        save=(
            (
                "    seen = load(cells, ROOT)\n    yield STEP\n    sequence = fetch_add(cells, SEQUENCE, 1) + 1\n",
                "    sequence = fetch_add(cells, SEQUENCE, 1) + 1\n    yield STEP\n    seen = load(cells, ROOT)\n",
            ),
            ("LOOK_AGAIN if may_publish(seen, tag) else SUPERSEDED", "LOOK_AGAIN"),
        ),
        bounds=Bounds(saves=3, keep=2),
    ),
    Mutant(
        "count-before-load",
        "the sequence is taken before the root is looked at",
        EQUIVALENT,
        EQUIVALENT,
        save=(
            (
                "    seen = load(cells, ROOT)\n    yield STEP\n    sequence = fetch_add(cells, SEQUENCE, 1) + 1\n",
                "    sequence = fetch_add(cells, SEQUENCE, 1) + 1\n    yield STEP\n    seen = load(cells, ROOT)\n",
            ),
        ),
        bounds=Bounds(saves=3, keep=2),
        why="the guard before the swap is enough; the order is the second defence",
    ),
    Mutant(
        "unguarded-swap",
        "the swap is tried also over a tag that is not older",
        EQUIVALENT,
        EQUIVALENT,
        save=(("LOOK_AGAIN if may_publish(seen, tag) else SUPERSEDED", "LOOK_AGAIN"),),
        bounds=Bounds(saves=3, keep=2),
        why="a root seen before the sequence was taken is always older; the guard is the second defence",
    ),
    Mutant(
        "release-before-publish",
        "the slot of the checkpoint that was seen is released before the root is swapped",
        NO_REUSE,
        NO_REUSE,
        save=(
            (
                "    while outcome == LOOK_AGAIN:\n",
                "    if outcome == LOOK_AGAIN and seen != NO_TAG:\n"
                "        fetch_add(cells, FREE + word_of_slot(slot_of(seen)), mask_of_slot(slot_of(seen)))\n"
                "        yield STEP\n"
                "    while outcome == LOOK_AGAIN:\n",
            ),
            ("leftover = tag_displaced(outcome, seen, tag)", "leftover = NO_TAG if outcome == PUBLISHED else tag"),
        ),
    ),
    Mutant(
        "check-then-store-root",
        "the root is looked at and then stored, in two steps instead of one compare-and-swap",
        MONOTONE,
        MONOTONE,
        save=(
            (
                "        found = compare_swap(cells, ROOT, seen, tag)\n        yield STEP\n",
                "        found = load(cells, ROOT)\n        yield STEP\n        if found == seen:\n"
                "            fetch_add(cells, ROOT, tag - seen)\n            yield STEP\n",
            ),
        ),
    ),
    Mutant(
        "count-in-two-steps",
        "the sequence is read and then stored, so that two saves can take the same one",
        MONOTONE,
        MONOTONE,
        save=(
            (
                "    sequence = fetch_add(cells, SEQUENCE, 1) + 1\n",
                "    sequence = load(cells, SEQUENCE) + 1\n    yield STEP\n"
                "    compare_swap(cells, SEQUENCE, sequence - 1, sequence)\n",
            ),
        ),
    ),
    Mutant(
        "count-of-its-own",
        "the sequence is one more than that of the checkpoint seen, not counted by all",
        MONOTONE,
        MONOTONE,
        save=(("sequence = fetch_add(cells, SEQUENCE, 1) + 1\n", "sequence = seen // 4096 + 1\n"),),
    ),
    Mutant(
        "forget-own-slot",
        "a superseded save does not give its own slot back",
        NO_LEAK,
        NO_LEAK,
        save=(("leftover = tag_displaced(outcome, seen, tag)", "leftover = seen if outcome == PUBLISHED else NO_TAG"),),
    ),
    Mutant(
        "double-release",
        "the slot that fell out is released twice",
        NO_LEAK,
        NO_LEAK,
        save=(
            (
                _RELEASE_AT_END,
                _RELEASE_AT_END
                + "        fetch_add(cells, FREE + word_of_slot(released), mask_of_slot(released))\n        yield STEP\n",
            ),
        ),
    ),
    Mutant(
        "release-own-after-publish",
        "a published save releases its own slot instead of the one it displaced",
        NO_REUSE,
        NO_REUSE,
        save=(("leftover = tag_displaced(outcome, seen, tag)", "leftover = tag"),),
    ),
    Mutant(
        "acquire-without-compare",
        "a slot is taken whether or not the compare-and-swap succeeded",
        NO_REUSE,
        NO_REUSE,
        save=(
            (
                "            if compare_swap(cells, cell, mask, mask - mask_of_slot(lowest)) == mask:\n"
                "                slot =",
                "            compare_swap(cells, cell, mask, mask - mask_of_slot(lowest))\n            slot =",
            ),
        ),
    ),
    Mutant(
        "offer-to-nobody",
        "a displaced checkpoint is released without being offered to the cells that keep the next newest",
        NO_REUSE,
        NO_REUSE,
        save=(("range(KEPT, KEPT + keep - 1)", "range(KEPT, KEPT)"),),
        bounds=Bounds(saves=3, keep=2),
    ),
    Mutant(
        "offer-without-compare",
        "a cell of kept tags takes whatever is offered, newer or not",
        NO_REUSE,
        NO_REUSE,
        save=(("while keeps_offered(held, leftover):", "while held != leftover:"),),
        bounds=Bounds(saves=4, keep=2),
    ),
    Mutant(
        "gives-way-and-keeps-its-slot",
        "a save that was overtaken while it wrote its payload does not give its slot back",
        NO_LEAK,
        NO_LEAK,
        save=(
            (
                "            mine[OUTCOME] = SUPERSEDED\n            fetch_add(cells, free_cell, bit)\n",
                "            mine[OUTCOME] = SUPERSEDED\n",
            ),
        ),
    ),
    Mutant(
        "gives-way-to-the-newest",
        "a save that is older than the newest checkpoint gives way, though it would be kept beside it",
        EQUIVALENT,
        EQUIVALENT,
        save=(("load(cells, ROOT if keep == 1 else KEPT + keep - 2)", "load(cells, ROOT)"),),
        bounds=Bounds(saves=3, keep=2),
        why="a checkpoint fewer is kept for a while; none that was acknowledged is lost",
    ),
    Mutant(
        "releases-the-next-slot",
        "the slot behind the one that fell out is released, at the end of the row one that does not exist",
        BOUNDED,
        BOUNDED,
        save=(("released = slot_of(leftover)", "released = slot_of(leftover) + 1"),),
    ),
    Mutant(
        "never-gives-way",
        "a save that was overtaken while it wrote its payload goes on",
        EQUIVALENT,
        EQUIVALENT,
        save=(("if is_overtaken(oldest_kept, tag):", "if False:"),),
        why="giving way saves work; a save that goes on is superseded at its publish",
    ),
    Mutant(
        "mark-shared",
        "whoever finds no durable mark writes and persists it, others or not",
        LOUD,
        LOUD,
        save=(
            (
                "            if mark == MARK_ABSENT:\n                # One",
                "            if True:\n                # One",
            ),
            (
                "                if mark == MARK_ABSENT:\n                    yield WRITE_MARK",
                "                if True:\n                    yield WRITE_MARK",
            ),
        ),
        bounds=Bounds(saves=2, faults=1),
    ),
    Mutant(
        "mark-under-way-is-enough",
        "a save is acknowledged while another save's mark is only on its way",
        LOUD,
        LOUD,
        save=(("while mark != MARK_DURABLE and", "while mark == MARK_ABSENT and"),),
        bounds=Bounds(saves=2),
    ),
    Mutant(
        "mark-never-given-back",
        "a save whose mark failed to persist leaves it under way for ever",
        NO_LEAK,
        NO_LEAK,
        save=(
            (
                "mark = MARK_DURABLE if mine[STATUS] == DONE else MARK_ABSENT",
                "mark = MARK_DURABLE if mine[STATUS] == DONE else MARK_UNDER_WAY",
            ),
        ),
        bounds=Bounds(saves=2, faults=1),
    ),
)
