"""Staging memory among saves of different age: who gets a buffer, and who waits (promise `bounded`)."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from lastgood.core import Store
from lastgood.core.arena import Arena
from lastgood.core.memory import MemoryDirectory

PAGE = 4096
OLDER, YOUNGER, YOUNGEST = 1, 2, 3


class Waits(Exception):
    """Raised where a saver has waited for a buffer in vain."""


def wait_no_longer() -> None:
    raise Waits


def take(arena: Arena, sequence: int, count: int) -> list[int]:
    return [arena.acquire(sequence, wait_no_longer) for _ in range(count)]


def test_a_younger_save_does_not_fill_the_memory_while_an_older_one_is_being_written() -> None:
    arena = Arena(PAGE, 8, ahead=3)
    older = take(arena, OLDER, 2)
    take(arena, YOUNGER, 1)
    with pytest.raises(Waits):  # five are free; what it copied now would only grow old there
        arena.acquire(YOUNGER, wait_no_longer)
    older += take(arena, OLDER, 5)  # the older one goes on at once, with everything there is
    with pytest.raises(Waits):
        arena.acquire(OLDER, wait_no_longer)
    for index in older:
        arena.release(index)
    take(arena, YOUNGER, 7)


def test_waiting_in_vain_leaves_no_place_in_the_queue() -> None:
    arena = Arena(PAGE, 4, ahead=1)
    (index,) = take(arena, OLDER, 1)
    with pytest.raises(Waits):
        arena.acquire(YOUNGER, wait_no_longer)
    arena.release(index)
    assert len(take(arena, YOUNGEST, 4)) == 4


def test_a_buffer_that_an_older_save_holds_back_keeps_nobody_from_filling_one() -> None:
    """Payloads pushed by hand, turn by turn from one thread: the oldest is half way through a chunk and goes on last."""
    sizes = {"slot_bytes": 40 * PAGE, "chunk_bytes": PAGE, "in_flight": 4, "staging_bytes": 8 * PAGE}
    with Store.create(MemoryDirectory(), **sizes) as store:
        saves = [store.begin(step=step) for step in range(4)]
        for save in saves:
            save.push(b"x")
        for save in reversed(saves):
            save.push(np.full(30 * PAGE, save.ticket.step, np.uint8))
        records = [save.finish().wait() for save in saves]
        newest = store.read()
    assert records[-1].step == 3
    assert bytes(newest[1:]) == bytes([3]) * 30 * PAGE


def test_a_policy_that_never_waits_may_use_all_of_it() -> None:
    with Store.create(MemoryDirectory(), slot_bytes=64 * PAGE, chunk_bytes=PAGE, overload="skip") as store:
        store.save(b"x", step=1).wait()
        arena = store._started().arena
    assert arena.ahead == arena.count


@pytest.mark.parametrize("looks", ["first save", "verify"])
def test_verifying_takes_the_memory_of_a_chunk_not_of_a_checkpoint(tmp_path: Path, looks: str) -> None:
    """On a host that cannot hold the state twice the first save of a new run ended in a MemoryError, every time."""
    size, chunk = 2**22, 2**16
    with Store.create(tmp_path / "store", slot_bytes=size, chunk_bytes=chunk) as store:
        store.save(np.zeros(size, np.uint8), step=1).wait()
    with Store.open(tmp_path / "store", new_run=True, staging_bytes=2 * chunk) as store:
        tracemalloc.start()
        try:
            if looks == "verify":
                assert [each.state for each in store.verify()].count("damaged") == 0
            else:
                store.save(b"x", step=2).wait()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < size / 4
