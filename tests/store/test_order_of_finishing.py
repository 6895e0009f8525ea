"""Several saves in flight finish in any order: the newest `keep` are kept, and nobody's slot is lost.

A gate holds each save up before its payload is persisted (so it will be durable, however late) or before its payload is
written (so that it can be overtaken), and lets them go in the order under test. Promises `monotone`, `no-reuse`, `no-leak`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastgood.core import Store
from tests.store.small import check_kept, check_no_leak, create, payload_of, save, settle, until, whereabouts
from tests.store.watched import Gate, WatchedMemory


def finish_in_order(order: Sequence[int], keep: int, kind: str = "persist") -> None:
    """Save steps 1 .. n at once behind a gate, let them finish in `order`, and compare with the obvious model."""
    count = len(order)
    gate = Gate(kind)
    directory = WatchedMemory(gate)
    with create(directory, in_flight=count, keep=keep, writers=count, staging_bytes=count * 4096) as store, gate:
        tickets = {step: store.save(payload_of(step, 4000), step=step) for step in range(1, count + 1)}
        gate.wait_for(set(tickets))
        assert len(set(whereabouts(store)["free"])) == keep, "each save in flight has a slot of its own"
        durable: list[int] = []
        for step in order:
            kept_before = sorted(durable, reverse=True)[:keep]
            gate.release(step)
            record = tickets[step].wait(60)
            overtaken = kind == "write" and len(kept_before) == keep and kept_before[-1] > step
            if not overtaken:
                durable.append(step)
            newest = max(durable)
            assert tickets[step].outcome == ("published" if newest == step else "superseded")
            assert tickets[step].durable is not overtaken
            assert record.step == newest, "a superseded ticket returns the newer record"
            check_kept(store, sorted(durable, reverse=True)[:keep])
        check_no_leak(store)
        counted = store.statistics()
        superseded = sum(ticket.outcome == "superseded" for ticket in tickets.values())
        assert (counted.published, counted.superseded) == (count - superseded, superseded)
    with Store.open(directory, read_only=True) as store:
        check_kept(store, sorted(durable, reverse=True)[:keep])


@pytest.mark.parametrize("kind", ["persist", "write"])
@pytest.mark.parametrize("keep", [1, 2, 3])
@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))), ids=str)
def test_three_saves_in_every_order(order: tuple[int, ...], keep: int, kind: str) -> None:
    finish_in_order(order, keep, kind)


@settings(max_examples=30)
@given(
    order=st.integers(1, 7).flatmap(lambda n: st.permutations(range(1, n + 1))), keep=st.integers(1, 5), data=st.data()
)
def test_more_saves_in_any_order(order: list[int], keep: int, data: st.DataObject) -> None:
    finish_in_order(order, keep, data.draw(st.sampled_from(["persist", "write"])))


def test_a_slow_save_outlived_by_two_generations_does_not_come_back() -> None:
    """The slot that was newest when it began holds another checkpoint now (ABA): its late finish must not win."""
    gate = Gate("persist")
    with create(WatchedMemory(gate), in_flight=2, keep=1, writers=2) as store, gate:
        gate.release(1)
        save(store, 1, 4000)
        slow = store.save(payload_of(2, 4000), step=2)
        gate.wait_for({2})
        for step in range(3, 9):
            gate.release(step)
            save(store, step, 4000)
        gate.release(2)
        assert slow.wait(60).step == 8
        assert slow.outcome == "superseded"
        check_kept(store, [8])
        check_no_leak(store)


def test_an_overtaken_save_stops_writing_and_gives_its_slot_back() -> None:
    """A save that would be released at once is abandoned between two chunks, so that the device is spared its rest."""
    gate = Gate("write")
    with create(WatchedMemory(gate), in_flight=2, keep=1, writers=2) as store, gate:

        def pieces() -> Iterator[Any]:
            yield payload_of(1)[:4096]
            gate.wait_for({1})
            gate.release(2)
            save(store, 2, 4000)
            gate.release(1)
            yield payload_of(1)[4096:]

        overtaken = store.save(pieces(), step=1)
        assert overtaken.wait(60).step == 2
        assert (overtaken.outcome, overtaken.durable) == ("superseded", False)
        assert store.statistics().bytes_written == 2 * 4096, "its first chunk and the whole of save 2"
        check_kept(store, [2])
        check_no_leak(store)


def test_a_save_that_will_be_kept_is_not_abandoned_though_a_newer_one_is_published() -> None:
    """With keep=2 one newer checkpoint is no reason to give up: both are to be kept."""
    gate = Gate("write")
    with create(WatchedMemory(gate), in_flight=2, keep=2, writers=2) as store, gate:

        def pieces() -> Iterator[Any]:
            yield payload_of(1)[:4096]
            gate.wait_for({1})
            gate.release(2)
            save(store, 2, 4000)
            gate.release(1)
            yield payload_of(1)[4096:]

        late = store.save(pieces(), step=1)
        assert late.wait(60).step == 2
        assert (late.outcome, late.durable) == ("superseded", True)
        check_kept(store, [2, 1])
        check_no_leak(store)


def test_superseded_saves_and_newer_ones_never_share_a_slot() -> None:
    """`no-reuse`: while saves are held, the slots of all of them and of all that is kept are different ones."""
    gate = Gate("persist")
    with create(WatchedMemory(gate), in_flight=3, keep=2, writers=3) as store, gate:
        for step in (1, 2):
            gate.release(step)
            save(store, step, 4000)
        tickets = [store.save(payload_of(step, 4000), step=step) for step in (3, 4, 5)]
        gate.wait_for({3, 4, 5})
        places = whereabouts(store)
        assert places["free"] == []
        check_kept(store, [2, 1])  # what is kept was not touched by the payloads written meanwhile
        for step in (5, 3, 4):
            gate.release(step)
        until(lambda: all(ticket.done for ticket in tickets))
        check_kept(store, [5, 4])
        check_no_leak(store)


@pytest.mark.parametrize(("in_flight", "keep"), [(1, 1), (1, 16), (64, 1), (64, 16), (2, 15), (63, 2), (62, 1)])
def test_the_smallest_and_the_largest_stores(in_flight: int, keep: int) -> None:
    """80 slots take two words of a slot set; everything in flight at once, let go from both ends."""
    gate = Gate("persist")
    directory = WatchedMemory(gate)
    with create(directory, in_flight=in_flight, keep=keep, writers=in_flight, slot_bytes=100) as store, gate:
        first = {step: store.save(payload_of(step, 100), step=step) for step in range(1, in_flight + 1)}
        gate.wait_for(set(first))
        for step in sorted(first, key=lambda step: (step % 2, step if step % 3 else -step)):
            gate.release(step)
        until(lambda: all(ticket.done for ticket in first.values()))
        gate.open()
        check_kept(store, sorted(first, reverse=True)[:keep])
        for step in range(in_flight + 1, in_flight + 100):
            store.save(payload_of(step, 100), step=step)
        settle(store)
        check_kept(store, list(range(in_flight + 99, 0, -1))[:keep])
        check_no_leak(store)
    with Store.open(directory) as store:
        check_kept(store, list(range(in_flight + 99, 0, -1))[:keep])
        store.read()
        save(store, 1000, 100)
        check_no_leak(store)


def test_a_hundred_saves_without_waiting_keep_the_newest() -> None:
    directory = WatchedMemory()
    with create(directory, in_flight=5, keep=3, writers=3) as store:
        tickets = [store.save(payload_of(step, 9000), step=step) for step in range(1, 101)]
        settle(store)
        check_kept(store, [100, 99, 98])
        check_no_leak(store)
        assert {ticket.outcome for ticket in tickets} <= {"published", "superseded"}
        assert [ticket.sequence for ticket in tickets] == list(range(1, 101))
        assert tickets[0].wait().step >= 1
        assert store.statistics().saves == 100


def test_waiting_has_a_limit_and_may_be_taken_up_again() -> None:
    gate = Gate("persist")
    with create(WatchedMemory(gate)) as store, gate:
        ticket = store.save(payload_of(1), step=1)
        gate.wait_for({1})
        assert (ticket.done, ticket.durable, ticket.outcome) == (False, False, "pending")
        with pytest.raises(TimeoutError, match=r"step 1 has not ended within 0\.01 seconds"):
            ticket.wait(0.01)
        assert store.newest() is None
        assert store.records() == []
        gate.open()
        assert ticket.wait(60).step == 1
