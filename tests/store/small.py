"""Small stores for tests, what must be in them, and where each of their slots is (promise `no-leak`)."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastgood.core import Store
from lastgood.core.cells import FREE, KEPT, QUARANTINED, ROOT
from lastgood.core.rules import NO_TAG, SLOTS_PER_WORD, slot_of

SMALL = {"slot_bytes": 20_000, "chunk_bytes": 4096, "in_flight": 2, "keep": 2}


def create(place: Any, **changes: Any) -> Store:
    """A store of four slots of five chunks each, unless told otherwise."""
    return Store.create(place, **{**SMALL, **changes})


def payload_of(step: int, size: int = 15_000) -> NDArray[np.uint8]:
    """The bytes that tests save at a step: the step itself in front, then noise that no other step has."""
    noise = np.frombuffer(hashlib.shake_128(b"%d of %d" % (step, size)).digest(size), np.uint8).copy()
    front = np.frombuffer(step.to_bytes(8, "little"), np.uint8)[:size]
    noise[: front.size] = front
    return noise


def is_payload_of(step: int, found: NDArray[np.uint8]) -> bool:
    """Whether these are the bytes that were saved at this step, all of them and nothing else."""
    return found.tobytes() == payload_of(step, found.size).tobytes()


def save(store: Store, step: int, size: int = 15_000) -> Any:
    """Save the step's payload and wait: the record."""
    return store.save(payload_of(step, size), step=step, meta=b"m%d" % step).wait(60)


def members(cells: Any, first: int, words: int) -> list[int]:
    """The slots in a slot set."""
    return [
        word * SLOTS_PER_WORD + bit
        for word in range(words)
        for bit in range(SLOTS_PER_WORD)
        if int(cells[first + word]) >> bit & 1
    ]


def whereabouts(store: Store) -> dict[str, list[int]]:
    """The slots that are free, quarantined and kept, as the cells say."""
    engine: Any = store._engine
    tags = [int(engine.cells[cell]) for cell in (ROOT, *range(KEPT, KEPT + store.keep - 1))]
    return {
        "free": members(engine.cells, FREE, engine.words),
        "quarantined": members(engine.cells, QUARANTINED, engine.words),
        "kept": [slot_of(tag) for tag in tags if tag != NO_TAG],
    }


def settle(store: Store) -> None:
    """Wait until no save is in flight, without closing the store."""
    engine: Any = store._engine
    until(lambda: not engine._flights)


def check_no_leak(store: Store) -> None:
    """At rest every slot is in exactly one place, all staging memory is back, and nobody holds a permit (`no-leak`)."""
    engine: Any = store._engine
    settle(store)
    places = whereabouts(store)
    everywhere = sorted(slot for slots in places.values() for slot in slots)
    assert everywhere == list(range(store.in_flight + store.keep)), f"no-leak: {places}"
    assert engine.arena.free_bytes == engine.arena.total_bytes, "no-leak: staging memory is missing"
    assert engine._flights == []


def check_kept(store: Store, steps: list[int]) -> None:
    """The store keeps these steps, newest first, each one byte for byte (`never-wrong`)."""
    records = store.records()
    assert [record.step for record in records] == steps
    sequences = [record.sequence for record in records]
    assert sequences == sorted(set(sequences), reverse=True)
    for record in records:
        assert is_payload_of(record.step, store.read(record))


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something that other threads bring about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.0005)


def files_of(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Every file of a store and its bytes; the lock's text differs from opening to opening and is left out."""
    found = {}
    for name in sorted(os.listdir(path)):
        if name != "lock":
            with open(os.path.join(path, name), "rb") as file:
                found[name] = file.read()
    return found
