"""A driver of the save program for many threads: no input or output, every promise checked at every step.

Runs compiled and without the GIL; with the JIT off the same source runs interpreted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit, types

from lastgood.core.atomics import compare_swap, load
from lastgood.core.cells import KEPT, MINE_COUNT, MY_SLOT, MY_TAG, OUTCOME, ROOT, STATUS
from lastgood.core.jit import JIT
from lastgood.core.rules import BROKEN, DONE, NO_TAG, REFUSED, is_overtaken, slot_of
from lastgood.core.steps import (
    ACKNOWLEDGE,
    ACQUIRED,
    PERSIST_EMPTY_RECORD,
    PERSIST_MARK,
    PERSIST_PAYLOAD,
    PERSIST_RECORD,
    STEP,
    WAIT,
    WRITE_EMPTY_RECORD,
    WRITE_PAYLOAD,
    WRITE_RECORD,
)

if JIT:
    let_others_run = types.ExternalFunction("sched_yield", types.int32())
else:

    def let_others_run() -> None:
        time.sleep(0)


WENT_BACK, HANDED_OUT_TWICE, OVERWRITTEN, NEVER_FOUND = 1, 2, 3, 4
COMPLAINTS = {
    WENT_BACK: "monotone: the root went back",
    HANDED_OUT_TWICE: "no-reuse: a slot was handed to two saves",
    OVERWRITTEN: "no-reuse: a slot that holds a kept checkpoint was overwritten",
    NEVER_FOUND: "no-leak: no slot was ever found",
}


@njit(nogil=True)
def next_random(state: int) -> int:
    """Marsaglia's 31-bit congruence; good enough to spread failures about."""
    return (state * 1103515245 + 12345) % 2147483648


@njit(nogil=True)
def stamp(stamps: Any, slot: int, what: int) -> None:
    """What the slot holds from now on."""
    seen = load(stamps, slot)
    while True:
        found = compare_swap(stamps, slot, seen, what)
        if found == seen:
            return
        seen = found


@njit(nogil=True)
def is_overwritten(cells: Any, stamps: Any, cell: int) -> bool:
    """Whether a tag is in this cell before and after a look at its slot, and the slot holds something else."""
    tag = load(cells, cell)
    if tag == NO_TAG:
        return False
    held = load(stamps, slot_of(tag))
    return held != tag and load(cells, cell) == tag


@njit(nogil=True)
def status_for(step: int, dice: int) -> int:
    """What befalls a step: the driver's answer, from a number below 2^31."""
    dice = dice // 65536 % 64
    if step == WRITE_PAYLOAD and dice < 4:
        return BROKEN
    if step == WRITE_PAYLOAD and dice == 4:
        return REFUSED
    if step in (PERSIST_PAYLOAD, WRITE_RECORD) and dice == 5:
        return BROKEN
    if step in (PERSIST_RECORD, PERSIST_MARK, PERSIST_EMPTY_RECORD) and dice < 6:
        return BROKEN
    return DONE


def driver_of(program: Callable[..., Iterator[int]]) -> Callable[..., int]:
    """A compiled driver of this save program."""
    compiled = njit(program)

    @njit(nogil=True)
    def run_saves(
        cells: Any,
        owners: Any,
        stamps: Any,
        acknowledged: Any,
        outcomes: Any,
        words: int,
        keep: int,
        me: int,
        count: int,
    ) -> int:
        """Run `count` saves one after the other; 0, or which promise was broken.

        `owners[slot]` is the saver that holds the slot, `stamps[slot]` the tag whose record lies in it (0: none).
        `acknowledged` receives the tags that passed the durable point, `outcomes` counts the ends.
        """
        mine = np.zeros(MINE_COUNT, np.int64)
        dice = me
        newest = 0
        for number in range(count):
            mine[:] = 0
            waits = 0
            last_step = STEP
            for step in compiled(cells, mine, words, keep, 0):
                dice = next_random(dice)
                mine[STATUS] = status_for(step, dice)
                slot = mine[MY_SLOT]
                if step == WAIT:
                    waits += 1
                    if waits > 1_000_000:
                        return NEVER_FOUND
                if step == WAIT or dice // 1024 % 16 == 0:
                    let_others_run()
                if step in (WRITE_EMPTY_RECORD, ACQUIRED):
                    found = compare_swap(owners, slot, 0, me)
                    if found not in (0, me):
                        return HANDED_OUT_TWICE
                    stamp(stamps, slot, 0)
                if step == WRITE_RECORD and mine[STATUS] == DONE:
                    stamp(stamps, slot, mine[MY_TAG])
                if step == ACKNOWLEDGE:
                    acknowledged[number] = mine[MY_TAG]
                lets_go = mine[STATUS] != DONE or step == ACKNOWLEDGE
                if last_step == WRITE_PAYLOAD and step == STEP:
                    oldest_kept = load(cells, ROOT if keep == 1 else KEPT + keep - 2)
                    lets_go = is_overtaken(oldest_kept, mine[MY_TAG])
                if lets_go:
                    compare_swap(owners, slot, me, 0)  # from here on the program may put the slot back at any time
                last_step = step
                root = load(cells, ROOT)
                if root < newest:
                    return WENT_BACK
                newest = root
                if is_overwritten(cells, stamps, ROOT):
                    return OVERWRITTEN
                for cell in range(KEPT, KEPT + keep - 1):
                    if is_overwritten(cells, stamps, cell):
                        return OVERWRITTEN
            outcomes[mine[OUTCOME]] += 1
        return 0

    driver: Callable[..., int] = run_saves
    return driver
