"""Many saves in flight while a tenth of what they ask of the device is refused: nothing is lost, nothing is silent."""

from __future__ import annotations

import errno
import random
import threading
from typing import Any

import pytest

from lastgood.core import SaveFailed, Store
from tests.store.small import check_no_leak, create, is_payload_of, payload_of, save, settle, until
from tests.store.watched import AREA_BYTES, Operation, WatchedMemory, nothing


class BadDevice:
    """Refuses a share of all writes and persists."""

    def __init__(self, seed: int, share: float) -> None:
        self.random = random.Random(seed)
        self.share = share
        self.lock = threading.Lock()
        self.refused = 0

    def __call__(self, operation: Operation) -> None:
        with self.lock:
            hit = self.random.random() < self.share and operation.kind in ("write", "persist")
            self.refused += hit
        if hit:
            raise OSError(errno.EIO, "Input/output error", operation.file)


@pytest.mark.parametrize("overload", ["block", "skip", "replace"])
@pytest.mark.parametrize("seed", range(6))
def test_many_saves_on_a_bad_device(seed: int, overload: str) -> None:
    directory = WatchedMemory()
    device = BadDevice(seed, 0.1)
    told: list[str] = []
    tickets: list[Any] = []
    store = create(directory, in_flight=3, keep=2, writers=3, overload=overload, staging_bytes=40_000)
    store.save(payload_of(1), step=1).wait(60)
    directory.watch = device
    for step in range(2, 60):
        try:
            tickets.append(store.save(payload_of(step), step=step))
        except SaveFailed as error:
            told.append(str(error))
            tickets.append(error.ticket)
        if step % 3 == 0:
            until(lambda: all(ticket.done for ticket in tickets))  # or the policies would refuse nearly all
    settle(store)
    directory.watch = nothing
    check_no_leak(store)

    outcomes = [ticket.outcome for ticket in tickets]
    failed = [ticket for ticket in tickets if ticket.outcome == "failed"]
    durable = [ticket.step for ticket in tickets if ticket.durable]
    assert device.refused >= len(failed) > 0
    assert "pending" not in outcomes
    assert [record.step for record in store.records()] == sorted([1, *durable], reverse=True)[:2], "newest-survives"
    for ticket in failed:
        with pytest.raises(SaveFailed, match="Input/output error"):
            ticket.wait()
    counted = store.statistics()
    assert (counted.failed, counted.skipped) == (len(failed), outcomes.count("skipped"))
    assert (counted.published, counted.superseded) == (1 + outcomes.count("published"), outcomes.count("superseded"))
    try:
        store.close()
    except SaveFailed as error:
        told.append(str(error))
    announced = len(told) + sum(int(line.rpartition("(and ")[2].split()[0]) for line in told if "(and " in line)
    assert announced == len(failed), "loud: each failure is told of once, by a save or by close"

    with Store.open(directory) as store:
        record, found = store.read_with_record()
        assert record.step >= max([1, *durable]), "newest-survives"
        assert is_payload_of(record.step, found)
        store.save(payload_of(99), step=99).wait(60)
        check_no_leak(store)


def test_the_first_error_is_the_one_that_is_told() -> None:
    """Two chunks of one save fail, one after the other, with different reasons: the later one is a consequence, perhaps."""
    directory = WatchedMemory()
    with create(directory, writers=2) as store:
        save(store, 1)
        engine: Any = store._engine
        both_are_writing = threading.Event()

        def watch(operation: Operation) -> None:
            if operation.kind == "write" and operation.offset == AREA_BYTES:
                assert both_are_writing.wait(60)
                raise OSError(errno.EIO, "first", operation.file)
            if operation.kind == "write" and operation.offset == AREA_BYTES + 4096:
                both_are_writing.set()
                until(lambda: engine._flights[0].error is not None)
                raise OSError(errno.ENOSPC, "second", operation.file)

        directory.watch = watch
        ticket = store.save(payload_of(2, 8192), step=2)
        with pytest.raises(SaveFailed, match=r"\[Errno 5\] first"):
            ticket.wait(60)
        directory.watch = nothing
        with pytest.raises(SaveFailed, match=r"\[Errno 5\] first"):
            store.save(b"", step=3)
        check_no_leak(store)


def test_a_failed_persist_of_an_older_save_does_not_touch_a_newer_one() -> None:
    """Three in flight; the oldest fails last: the newer two are published, and it is told of."""
    stands, held = threading.Event(), threading.Event()
    directory = WatchedMemory()

    def watch(operation: Operation) -> None:
        if operation.kind == "persist" and operation.file == "slot-0000":
            stands.set()
            held.wait(60)
            raise OSError(errno.EIO, "Input/output error", operation.file)

    with create(directory, in_flight=3, keep=2, writers=3) as store:
        store._started()
        directory.watch = watch
        first = store.save(payload_of(1, 4000), step=1)
        assert stands.wait(60), "else the newer two may overtake it before it has anything to persist"
        second, third = (store.save(payload_of(step, 4000), step=step) for step in (2, 3))
        assert [ticket.wait(60).step for ticket in (second, third)] in ([2, 3], [3, 3])
        held.set()
        with pytest.raises(SaveFailed, match="step 1"):
            first.wait(60)
        directory.watch = nothing
        check_no_leak(store)
        assert [record.step for record in store.records()] == [3, 2]
        with pytest.raises(SaveFailed, match="step 1") as told:
            store.save(b"", step=4)
        assert told.value.ticket.wait(60).step == 4
