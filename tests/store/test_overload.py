"""What a save does when nothing is free: waits, is refused, or has a younger one refused. Promises `loud`, `bounded`.

The device is held up by a gate, so that every slot or all staging memory stays taken for as long as a test needs.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from lastgood.core import SaveFailed, SaveSkipped
from tests.store.small import check_kept, check_no_leak, create, payload_of, save, until
from tests.store.watched import Gate, Operation, WatchedMemory


def in_a_thread(call: Any) -> tuple[threading.Thread, list[Any]]:
    """Run a call elsewhere; its result, or what it raised, is put into the list."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


@pytest.mark.parametrize("what_is_short", ["slots", "staging memory"])
def test_block_waits_until_the_device_has_caught_up(what_is_short: str) -> None:
    gate = Gate("persist" if what_is_short == "slots" else "write")
    geometry = {"in_flight": 2} if what_is_short == "slots" else {"in_flight": 5, "staging_bytes": 8192}
    size = 4000 if what_is_short == "slots" else 8000
    with create(WatchedMemory(gate), overload="block", writers=2, **geometry) as store, gate:
        taken = [
            store.save(payload_of(step, size), step=step) for step in range(1, 3 if what_is_short == "slots" else 2)
        ]
        gate.wait_for({ticket.step for ticket in taken})
        thread, results = in_a_thread(lambda: store.save(payload_of(9, size), step=9))
        thread.join(0.05)
        assert thread.is_alive(), "save returned though there was no room to copy to"
        assert store.statistics().saves == 0
        gate.open()
        thread.join(60)
        assert results[0].wait(60).step == 9
        check_no_leak(store)
        counted = store.statistics()
        assert (counted.skipped, counted.failed, counted.saves) == (0, 0, len(taken) + 1)
        assert counted.seconds_blocked >= 0.04, "the wait for slots or staging memory is counted"


def test_block_does_not_wait_while_there_is_room() -> None:
    gate = Gate("persist")
    with create(WatchedMemory(gate), in_flight=3, writers=3) as store, gate:
        tickets = [store.save(payload_of(step, 4000), step=step) for step in (1, 2, 3)]
        assert not any(ticket.done for ticket in tickets)
        assert store.statistics().seconds_blocked < 10
        gate.open()


@pytest.mark.parametrize("what_is_short", ["slots", "staging memory"])
def test_skip_refuses_this_save_loudly_and_only_this_one(what_is_short: str) -> None:
    gate = Gate("persist" if what_is_short == "slots" else "write")
    geometry = {"in_flight": 1} if what_is_short == "slots" else {"in_flight": 5, "staging_bytes": 8192}
    with create(WatchedMemory(gate), overload="skip", writers=2, **geometry) as store, gate:
        first = store.save(payload_of(1, 8000), step=1)
        gate.wait_for({1})
        skipped = [store.save(payload_of(step, 8000), step=step) for step in (2, 3)]
        for ticket in skipped:
            assert (ticket.done, ticket.outcome, ticket.durable) == (True, "skipped", False)
            with pytest.raises(SaveSkipped, match=f"step {ticket.step} was skipped"):
                ticket.wait()
        assert issubclass(SaveSkipped, SaveFailed)
        gate.open()
        assert first.wait(60).step == 1
        assert save(store, 4, 8000).step == 4  # room again, and nothing is told of the skipped ones twice
        counted = store.statistics()
        assert (counted.published, counted.skipped, counted.failed, counted.saves) == (2, 2, 0, 4)
        check_kept(store, [4, 1])
        check_no_leak(store)


def test_skip_takes_a_save_that_just_fits_into_staging_memory() -> None:
    gate = Gate("write")
    with create(WatchedMemory(gate), overload="skip", in_flight=5, staging_bytes=12288, writers=2) as store, gate:
        first = store.save(payload_of(1, 4096), step=1)
        gate.wait_for({1})
        assert store.save(payload_of(2, 8193), step=2).outcome == "skipped"
        fits = store.save(payload_of(3, 8192), step=3)
        assert fits.outcome == "pending"
        gate.open()
        assert [first.wait(60).step >= 1, fits.wait(60).step] == [True, 3]
        check_no_leak(store)


def test_skip_takes_a_save_larger_than_all_staging_memory_when_nothing_else_is_there() -> None:
    with create(WatchedMemory(), overload="skip", staging_bytes=8192) as store:
        assert save(store, 1, 20_000).payload_bytes == 20_000


def test_replace_lets_the_youngest_that_has_not_begun_to_write_give_way() -> None:
    """One writer thread is held up by save 1, so 2 and 3 have written nothing: 4 takes the place of 3, 5 that of 4."""
    gate = Gate("write")
    with (
        create(WatchedMemory(gate), overload="replace", in_flight=3, keep=2, writers=1, staging_bytes=40_000) as store,
        gate,
    ):
        tickets = {1: store.save(payload_of(1, 4000), step=1)}
        gate.wait_for({1})
        for step in (2, 3, 4, 5):
            tickets[step] = store.save(payload_of(step, 4000), step=step)
        assert [tickets[step].outcome for step in (1, 2, 3, 4, 5)] == [
            "pending", "pending", "skipped", "skipped", "pending",
        ]  # fmt: skip
        for step in (3, 4):
            with pytest.raises(SaveSkipped):
                tickets[step].wait()
        gate.open()
        assert tickets[5].wait(60).step == 5
        until(lambda: tickets[1].done and tickets[2].done)
        check_kept(store, [5, 2])
        counted = store.statistics()
        assert (counted.skipped, counted.failed, counted.saves) == (2, 0, 5)
        check_no_leak(store)


def test_replace_frees_staging_memory_too() -> None:
    gate = Gate("write")
    geometry = {"in_flight": 5, "staging_bytes": 12288, "writers": 1}
    with create(WatchedMemory(gate), overload="replace", **geometry) as store, gate:
        first = store.save(payload_of(1, 4000), step=1)
        gate.wait_for({1})
        second = store.save(payload_of(2, 8000), step=2)
        third = store.save(payload_of(3, 8000), step=3)
        assert (first.outcome, second.outcome, third.outcome) == ("pending", "skipped", "pending")
        gate.open()
        assert third.wait(60).step == 3
        check_no_leak(store)


def test_replace_refuses_the_new_one_when_all_others_have_begun_to_write() -> None:
    gate = Gate("write")
    with create(WatchedMemory(gate), overload="replace", in_flight=2, writers=2) as store, gate:
        tickets = [store.save(payload_of(step, 4000), step=step) for step in (1, 2)]
        gate.wait_for({1, 2})
        third = store.save(payload_of(3, 4000), step=3)
        assert third.outcome == "skipped"
        gate.open()
        assert [ticket.wait(60).step for ticket in tickets][-1] == 2
        check_kept(store, [2, 1])
        check_no_leak(store)


def test_oldest_first() -> None:
    """Chunks of an older save go to the device before those of a younger one, whoever was queued first."""
    gate = Gate("write")
    seen: list[int] = []

    def watch(operation: Operation) -> None:
        gate(operation)
        if operation.kind == "write" and operation.is_payload:
            seen.append(int(operation.file[-1]))

    with create(WatchedMemory(watch), in_flight=3, keep=1, writers=1, staging_bytes=80_000) as store, gate:
        store.save(payload_of(1, 4096), step=1)
        gate.wait_for({1})
        slow = iter([payload_of(2, 4096), payload_of(3, 4096)])

        def pieces() -> Any:
            yield next(slow)
            third.append(
                store.save(payload_of(5, 8192), step=5)
            )  # begun in the middle of save 2, and queued before its rest
            yield next(slow)

        third: list[Any] = []
        second = store.save(pieces(), step=2)
        gate.open()
        assert third[0].wait(60).step == 5
        assert second.wait(60).step >= 2
        assert seen == [0, 1, 1, 2, 2]


def test_memory_stays_what_it_was_whatever_the_load() -> None:
    """`bounded`: many threads save more than fits, by every policy; staging memory and files keep their sizes."""
    for overload in ("block", "skip", "replace"):
        directory = WatchedMemory(lambda operation: time.sleep(0.0002))
        with create(directory, overload=overload, in_flight=3, writers=2, staging_bytes=12288) as store:
            sizes = {name: device.size() for name, device in directory.files.items()}
            staging = store.staging_bytes
            outcomes: list[str] = []

            def work(first: int, store: Any = store, outcomes: list[str] = outcomes) -> None:
                for step in range(first, first + 10):
                    ticket = store.save(payload_of(step, 9000), step=step)
                    until(lambda ticket=ticket: ticket.done)
                    outcomes.append(ticket.outcome)

            threads = [in_a_thread(lambda first=first: work(first)) for first in (100, 200, 300, 400)]
            for thread, _ in threads:
                thread.join(60)
            assert [results for _, results in threads] == [[None]] * 4
            check_no_leak(store)
            counted = store.statistics()
            assert counted.saves == len(outcomes) == 40
            assert counted.skipped == outcomes.count("skipped")
            assert counted.published == outcomes.count("published") > 0
            assert counted.failed == 0
            assert overload != "block" or counted.skipped == 0
            assert store.staging_bytes == staging == 12288
            assert {name: device.size() for name, device in directory.files.items()} == sizes
