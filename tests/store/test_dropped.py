"""Saves that were begun and that nobody holds any more: abandoned, wherever the garbage collector comes upon them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from lastgood.core import SaveFailed, Store
from lastgood.core.memory import MemoryDirectory
from tests.store.small import check_kept, check_no_leak, create, save


def begun(store: Store) -> list[Any]:
    """A save with some bytes pushed, in a list from which it can be dropped."""
    saving = store.begin(step=2)
    saving.push(bytes(9000))
    return [saving]


def test_one_that_is_dropped_where_a_lock_of_ours_is_held() -> None:
    """Newer interpreters collect garbage at any step of a thread: its own destructor waited for its own lock, for ever."""
    with create(MemoryDirectory(), keep=1) as store:
        save(store, 1)
        engine: Any = store._engine
        held = begun(store)
        with engine._landed, engine.arena._given_back, engine.writers._one_at_a_time:
            held.clear()
        check_no_leak(store)
        check_kept(store, [1])
        with pytest.raises(SaveFailed, match=r"step 2 .* dropped before it was finished") as told:
            store.save(b"x", step=3)
        assert told.value.ticket.wait(60).step == 3


def test_a_forked_child_drops_nothing_of_its_parents() -> None:
    with create(MemoryDirectory(), keep=1) as store:
        save(store, 1)
        held = begun(store)
        engine: Any = store._engine
        child = os.fork()
        if child == 0:
            held.clear()
            os._exit(len(engine.writers._left))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert held[0].finish().wait(60).step == 2
