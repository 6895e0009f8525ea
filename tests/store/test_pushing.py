"""A payload that becomes ready over time, pushed from any thread: one save, in the order of its beginning."""

from __future__ import annotations

import gc
import itertools
import threading
from typing import Any

import numpy as np
import pytest

from lastgood.core import SaveFailed, SaveSkipped, Store, StoreClosed, StoreError, WrongGeometry
from lastgood.core.memory import MemoryDirectory
from tests.store.small import check_kept, check_no_leak, create, payload_of, save, settle, until, whereabouts


def pieces_of(step: int, size: int = 15_000) -> list[np.ndarray[Any, Any]]:
    """The step's payload in uneven pieces, some of them empty."""
    payload = payload_of(step, size)
    edges = [0, 0, 1, 4000, 4096, 4097, 9000, size, size]
    return [payload[start:end] for start, end in itertools.pairwise(edges)]


def test_what_is_pushed_is_one_payload() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        saving = store.begin(step=3, meta=b"m")
        for piece in pieces_of(3):
            memory = piece.copy()
            saving.push(memory)
            memory[:] = 0  # it was copied
        ticket = saving.finish()
        assert ticket is saving.ticket
        record = ticket.wait(60)
        assert (record.step, record.meta, record.payload_bytes) == (3, b"m", 15_000)
        check_kept(store, [3])
        check_no_leak(store)
    with Store.open(directory, read_only=True) as store:
        check_kept(store, [3])


def test_each_piece_from_another_thread() -> None:
    with create(MemoryDirectory()) as store:
        saving = store.begin(step=3, total_bytes=15_000)
        for piece in pieces_of(3):
            thread = threading.Thread(target=saving.push, args=(piece,))
            thread.start()
            thread.join(60)
        thread = threading.Thread(target=saving.finish)
        thread.start()
        thread.join(60)
        assert saving.ticket.wait(60).step == 3
        check_kept(store, [3])


def test_its_place_in_the_order_of_saves_is_that_of_begin() -> None:
    with create(MemoryDirectory(), keep=2) as store:
        saving = store.begin(step=1)
        saving.push(payload_of(1))
        save(store, 2)
        ticket = saving.finish()
        assert ticket.wait(60).step == 2
        assert (ticket.outcome, ticket.durable) == ("superseded", True)
        check_kept(store, [2, 1])
        check_no_leak(store)


@pytest.mark.parametrize("overload", ["block", "skip", "replace"])
@pytest.mark.parametrize("pushed", [0, 1, 4, 7])
def test_abandoning_gives_everything_back(pushed: int, overload: str) -> None:
    with create(MemoryDirectory(), overload=overload) as store:
        save(store, 1)
        saving = store.begin(step=2)
        for piece in pieces_of(2)[:pushed]:
            saving.push(piece)
        saving.abandon()
        saving.abandon()
        with pytest.raises(SaveFailed, match="step 2 .*abandoned by its caller"):  # noqa: RUF043
            saving.ticket.wait(60)
        check_no_leak(store)
        check_kept(store, [1])
        for step in range(3, 9):
            save(store, step)  # and nothing is told: its caller knows
        check_kept(store, [8, 7])


def test_an_exception_in_its_block_abandons_it() -> None:
    with create(MemoryDirectory()) as store:
        with pytest.raises(ZeroDivisionError), store.begin(step=1) as saving:  # noqa: PT012
            saving.push(payload_of(1))
            raise ZeroDivisionError
        check_no_leak(store)
        with store.begin(step=2) as saving:
            saving.push(payload_of(2))
        assert saving.ticket.wait(60).step == 2
        check_kept(store, [2])


def test_one_that_is_dropped_is_abandoned_and_told_of() -> None:
    with create(MemoryDirectory()) as store:
        save(store, 1)
        store.begin(step=2).push(payload_of(2))
        gc.collect()
        settle(store)
        check_no_leak(store)
        with pytest.raises(SaveFailed, match=r"step 2 .*dropped before it was finished") as told:
            store.save(payload_of(3), step=3)
        assert told.value.ticket.wait(60).step == 3
        check_kept(store, [3, 1])


def test_more_than_fits_abandons_it() -> None:
    with create(MemoryDirectory()) as store:
        saving = store.begin(step=1)
        saving.push(bytes(20_000))
        with pytest.raises(WrongGeometry, match="20,001"):
            saving.push(b"x")
        with pytest.raises(SaveFailed):
            saving.ticket.wait(60)
        check_no_leak(store)
        save(store, 2)
        with pytest.raises(WrongGeometry, match="20,001"):
            store.begin(step=3, total_bytes=20_001)
        assert whereabouts(store)["free"] != []
        check_no_leak(store)


@pytest.mark.parametrize(
    "bad", ["text", 5, np.zeros(10)[::2], np.array([None])], ids=["text", "number", "stride", "object"]
)
def test_what_has_no_bytes_abandons_it(bad: Any) -> None:
    with create(MemoryDirectory()) as store:
        saving = store.begin(step=1)
        with pytest.raises(TypeError, match="cannot save"):
            saving.push(bad)
        check_no_leak(store)
        save(store, 2)


def test_after_the_end_there_is_nothing_to_push_to() -> None:
    with create(MemoryDirectory()) as store:
        saving = store.begin(step=1)
        saving.finish().wait(60)
        for _ in range(2):
            with pytest.raises(StoreError, match="step 1 is finished"):
                saving.push(b"more")
        assert saving.finish() is saving.ticket
        saving.abandon()
        assert saving.ticket.wait(60).payload_bytes == 0
        check_no_leak(store)


def test_a_skipped_one_takes_what_is_pushed_and_says_so_in_the_end() -> None:
    with create(MemoryDirectory(), overload="skip", in_flight=1) as store:
        first = store.begin(step=1)
        second = store.begin(step=2)
        assert second.ticket.outcome == "skipped"
        for piece in pieces_of(2):
            second.push(piece)
        with pytest.raises(SaveSkipped):
            second.finish().wait(60)
        first.push(payload_of(1))
        assert first.finish().wait(60).step == 1
        check_kept(store, [1])
        check_no_leak(store)


def test_closing_does_not_wait_for_one_that_nobody_will_finish() -> None:
    """A block that raises between begin and finish closes the store while the save is still open, and may not hang."""
    directory = MemoryDirectory()
    store = create(directory)
    save(store, 1)
    saving = store.begin(step=2)
    saving.push(payload_of(2))
    results: list[Any] = []

    def close() -> None:
        try:
            store.close()
        except StoreError as error:
            results.append(error)

    thread = threading.Thread(target=close, daemon=True)
    thread.start()
    thread.join(10)
    hangs = thread.is_alive()
    saving.abandon()
    thread.join(60)
    assert not hangs, "close() waits for a save that is still being pushed"
    assert saving.ticket.outcome == "failed"
    assert len(results) == 1, "loud: it did not become durable"
    with pytest.raises((StoreClosed, StoreError)):
        saving.push(b"x")
    with Store.open(directory, read_only=True) as reader:
        check_kept(reader, [1])


def test_what_fails_in_a_thread_that_nobody_listens_to_is_told_by_the_next_save() -> None:
    with create(MemoryDirectory()) as store:
        broken = store.begin(step=1)
        broken.abandon(ValueError("the producer broke"), told=False)
        until(lambda: broken.ticket.done)  # it ends in a writer's thread
        quiet = store.begin(step=2)
        quiet.push(payload_of(2))
        assert quiet.finish(tell=False) is quiet.ticket, "this thread is not the one to hear of it"
        with pytest.raises(SaveFailed, match=r"step 1 .*the producer broke") as told:
            store.save(payload_of(3), step=3)
        assert told.value.ticket is not None
        assert told.value.ticket.wait(60).step == 3
        check_kept(store, [3, 2])


def test_what_its_caller_abandons_is_not_told_again() -> None:
    with create(MemoryDirectory()) as store:
        saving = store.begin(step=1)
        saving.abandon(ValueError("I know"))
        assert save(store, 2).step == 2
        with pytest.raises(SaveFailed, match="I know"):
            saving.ticket.wait(60)
