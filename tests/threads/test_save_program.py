"""Thousands of saves at once over the same words, in several threads: the program that runs, not a model of it.

Every slot is accounted for, none is handed out twice, what is kept is not overwritten, the root only rises, and the
newest acknowledged checkpoints are the ones kept. Some of the steps fail on the way, as disks do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lastgood.core.cells import FREE, KEPT, ROOT, SEQUENCE, new_cells
from lastgood.core.jit import JIT
from lastgood.core.rules import (
    FAILED,
    NO_TAG,
    PUBLISHED,
    SKIPPED,
    SUPERSEDED,
    mask_of_slot,
    sequence_of,
    word_of_slot,
    words_for,
)
from lastgood.core.save import save
from tests.threads.accounting import assert_partition
from tests.threads.mistakes import with_mistake
from tests.threads.running import together
from tests.threads.savers import COMPLAINTS, driver_of

SAVES = 100_000 if JIT else 1_500


def fresh_cells(slot_count: int) -> Any:
    cells = new_cells()
    for slot in range(slot_count):
        cells[FREE + word_of_slot(slot)] += mask_of_slot(slot)
    return cells


def run(drive: Callable[..., int], threads: int, slot_count: int, keep: int, saves: int) -> Any:
    """Run the saves and check everything that must hold at rest; how many ended which way."""
    cells, words = fresh_cells(slot_count), words_for(slot_count)
    owners, stamps = np.zeros(slot_count, np.int64), np.zeros(slot_count, np.int64)
    each = saves // threads
    acknowledged = [np.zeros(each, np.int64) for _ in range(threads)]
    outcomes = [np.zeros(8, np.int64) for _ in range(threads)]

    if JIT:  # compiled before the threads start, or they would come out of the compiler one by one
        drive(cells, owners, stamps, acknowledged[0], outcomes[0], words, keep, 1, 0)

    def work(index: int) -> int:
        return drive(cells, owners, stamps, acknowledged[index], outcomes[index], words, keep, index + 1, each)

    results = together([lambda index=index: work(index) for index in range(threads)])  # type: ignore[misc]
    assert [COMPLAINTS[result] for result in results if result] == []
    assert_partition(cells.tolist(), slot_count, words, keep)
    assert cells[SEQUENCE] == threads * each
    ends = sum(outcomes)
    assert ends.sum() == threads * each, "every save ends one way"
    tags = np.concatenate(acknowledged)
    tags = np.sort(tags[tags != NO_TAG])[::-1]
    held = [int(tag) for tag in [cells[ROOT], *sorted(cells[KEPT : KEPT + keep - 1], reverse=True)]]
    assert held == tags[:keep].tolist(), "newest-survives: the newest acknowledged checkpoints are those kept"
    assert sequence_of(held[0]) > 0.9 * threads * each
    return ends


@pytest.fixture(scope="module")
def drive() -> Callable[..., int]:
    return driver_of(save)


@pytest.mark.parametrize(
    ("threads", "slot_count", "keep"), [(4, 5, 1), (4, 6, 2), (4, 9, 5), (2, 4, 2), (8, 24, 16), (4, 67, 3)]
)
def test_many_saves_in_several_threads(drive: Callable[..., int], threads: int, slot_count: int, keep: int) -> None:
    """`no-leak`, `no-reuse`, `monotone`, `newest-survives`."""
    ends = run(drive, threads, slot_count, keep, SAVES)
    assert min(ends[outcome] for outcome in (PUBLISHED, SKIPPED, FAILED)) > 0
    if threads > 2 and JIT:
        assert ends[SUPERSEDED] > 0, "the savers never overtook each other: this run shows little"


MISTAKES = {
    "a swap that is not looked at": (
        "if compare_swap(cells, cell, mask, mask - mask_of_slot(lowest)) == mask:",
        "if compare_swap(cells, cell, mask, mask - mask_of_slot(lowest)) > 0:",
    ),
    "a root that takes whoever comes last": (
        "outcome = publish_outcome(seen, found, tag)",
        "outcome = PUBLISHED if found == seen else LOOK_AGAIN",
    ),
    "one slot that is not given back": (
        "if leftover != NO_TAG:",
        "if leftover != NO_TAG and sequence != 500:",
    ),
    "a slot given back while it is kept": (
        "leftover = tag_displaced(outcome, seen, tag)",
        "leftover = tag_displaced(outcome, seen, tag) if sequence != 500 else tag",
    ),
    "a kept cell that forgets what it held": (
        "leftover = held",
        "leftover = held if sequence != 500 else NO_TAG",
    ),
    "a sequence that is counted by hand": (
        "sequence = fetch_add(cells, SEQUENCE, 1) + 1",
        "sequence = load(cells, SEQUENCE) + 1\n    yield STEP\n    cells[SEQUENCE] = sequence",
    ),
}


@pytest.mark.skipif(not JIT, reason="the mistakes need threads that really meet")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_program_is_noticed(mistake: str) -> None:
    wrong = driver_of(with_mistake(*MISTAKES[mistake]))

    def often() -> None:
        for _ in range(20):
            run(wrong, 4, 6, 2, 20_000)

    with pytest.raises(AssertionError):
        often()


@pytest.mark.skipif(not JIT, reason="this is that run")
def test_the_same_interpreted() -> None:
    """The lock-based twins of the operations, with threads changing places as often as the interpreter likes."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", __file__, "-k", "many_saves"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
