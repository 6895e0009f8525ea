"""Counts every slot, place and buffer of an open store that is at rest (promise `no-leak`)."""

from __future__ import annotations

import time

from lastgood.core import Store
from lastgood.core.cells import FREE, KEPT, QUARANTINED, ROOT
from lastgood.core.rules import NO_TAG, SLOTS_PER_WORD, slot_of


def slots_in(cells: list[int], first: int, words: int) -> list[int]:
    """The members of a slot set."""
    return [
        word * SLOTS_PER_WORD + bit
        for word in range(words)
        for bit in range(SLOTS_PER_WORD)
        if cells[first + word] >> bit & 1
    ]


def slots_kept(cells: list[int], keep: int) -> list[int]:
    """The slots whose tags the root and the kept cells hold."""
    tags = [cells[ROOT], *cells[KEPT : KEPT + keep - 1]]
    return [slot_of(tag) for tag in tags if tag != NO_TAG]


def assert_partition(cells: list[int], slot_count: int, words: int, keep: int) -> None:
    """Every slot is free, quarantined or kept, and only one of these."""
    free, quarantined, kept = slots_in(cells, FREE, words), slots_in(cells, QUARANTINED, words), slots_kept(cells, keep)
    assert sorted(free + quarantined + kept) == list(range(slot_count)), (
        f"no-leak: free {free}, quarantined {quarantined}, kept {kept} of {slot_count} slots"
    )


def assert_at_rest(store: Store, patience_seconds: float = 30) -> None:
    """No save is in flight, and nothing that one held is missing. The store must have saved once."""
    engine = store._engine
    assert engine is not None
    deadline = time.monotonic() + patience_seconds
    while engine._flights:  # not `wait_all`: a lost place must not hang the test
        assert time.monotonic() < deadline, f"no-leak: still in flight: {[flight.ticket for flight in engine._flights]}"
        time.sleep(0.001)
    assert engine.arena.free_bytes == engine.arena.total_bytes, "no-leak: staging memory is missing at rest"
    assert_partition(engine.cells.tolist(), engine.layout.slot_count, engine.words, store.keep)
