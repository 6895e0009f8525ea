"""A record that may or may not be durable keeps its slot out of use until an empty record was persisted over it.

`newest-survives` and `never-wrong` depend on it: overwritten in place, a payload could end under the doubtful record.
"""

from __future__ import annotations

import errno
import threading
import time
from typing import Any

import pytest

from lastgood.core import SaveFailed, Store
from lastgood.core.layout import slot_name
from tests.store.small import check_kept, check_no_leak, create, payload_of, save, settle, whereabouts
from tests.store.watched import AREA_BYTES, Operation, WatchedMemory, nothing


class Watcher:
    """Notes every operation; refuses what `refuses` says."""

    def __init__(self) -> None:
        self.log: list[Operation] = []
        self.refuses: Any = lambda operation: False

    def __call__(self, operation: Operation) -> None:
        self.log.append(operation)
        if self.refuses(operation):
            raise OSError(errno.EIO, "Input/output error", operation.file)


def record_persist(watcher: Watcher) -> Any:
    """Refuse the persist that follows the write of a record."""

    def refuses(operation: Operation) -> bool:
        before = [each for each in watcher.log[:-1] if each.file == operation.file]
        return operation.kind == "persist" and bool(before) and before[-1].kind == "write" and before[-1].offset == 0

    return refuses


def mark_persist(operation: Operation) -> bool:
    """Refuse to persist the mark."""
    return operation.kind == "persist" and operation.file == "header"


def used(watcher: Watcher) -> list[str]:
    """Writes and persists so far, forgotten now."""
    log, watcher.log = watcher.log, []
    return [f"{each.kind} {each.file} {each.offset if each.kind == 'write' else ''}".strip() for each in log]


def fail(store: Store, step: int) -> None:
    """Save, be told of an earlier failure perhaps, and fail."""
    ticket: Any = None
    try:
        ticket = store.save(payload_of(step), step=step)
    except SaveFailed as error:
        ticket = error.ticket
    with pytest.raises(SaveFailed):
        ticket.wait(60)


@pytest.mark.parametrize("what", ["record", "mark"])
def test_a_failed_record_persist_quarantines_its_slot(what: str) -> None:
    watcher = Watcher()
    with create(WatchedMemory(watcher)) as store:
        if what == "record":
            save(store, 1)
        watcher.refuses = record_persist(watcher) if what == "record" else mark_persist
        fail(store, 2)
        watcher.refuses = lambda operation: False
        places = whereabouts(store)
        assert len(places["quarantined"]) == 1
        assert set(places["quarantined"]).isdisjoint(places["free"] + places["kept"])
        check_no_leak(store)
        with pytest.raises(SaveFailed, match="step 2"):
            store.save(b"", step=3)
        assert store.marked


def test_a_failed_payload_persist_or_write_does_not() -> None:
    """Its record was never written: the slot is simply free again."""
    for kind in ("write", "persist"):
        watcher = Watcher()
        with create(WatchedMemory(watcher)) as store:
            save(store, 1)
            watcher.refuses = lambda operation, kind=kind: operation.kind == kind and operation.file == "slot-0001"
            fail(store, 2)
            watcher.refuses = lambda operation: False
            assert whereabouts(store) == {"free": [1, 2, 3], "quarantined": [], "kept": [0]}
            with pytest.raises(SaveFailed):
                store.save(b"", step=3)


def test_a_quarantined_slot_is_used_only_when_no_other_is_free_and_after_an_empty_record_is_durable() -> None:
    watcher = Watcher()
    with create(WatchedMemory(watcher), in_flight=2, keep=1) as store:
        save(store, 1)
        watcher.refuses = record_persist(watcher)
        fail(store, 2)  # slot 1
        watcher.refuses = lambda operation: False
        doubtful = slot_name(whereabouts(store)["quarantined"][0])
        with pytest.raises(SaveFailed) as told:
            store.save(payload_of(3), step=3)  # the one slot that is free
        told.value.ticket.wait(60)
        for step in (4, 5):  # the slot of 1, then that of 3
            used(watcher)
            save(store, step)
            assert doubtful not in " ".join(used(watcher)), "there was a free slot"
        check_no_leak(store)
        watcher.refuses = record_persist(watcher)
        fail(store, 6)  # now everything that is not kept is in quarantine
        watcher.refuses = lambda operation: False
        assert whereabouts(store)["free"] == []
        assert len(whereabouts(store)["quarantined"]) == 2
        used(watcher)
        with pytest.raises(SaveFailed) as told:
            store.save(payload_of(7), step=7)
        record = told.value.ticket.wait(60)
        name = slot_name(record.slot)
        empty_record, persist, chunk = used(watcher)[:3]
        assert [empty_record, persist] == [f"write {name} 0", f"persist {name}"]
        assert chunk.startswith(f"write {name} "), "the payload, whichever of its chunks a thread writes first"
        assert int(chunk.split()[-1]) >= AREA_BYTES
        save(store, 8)
        save(store, 9)
        check_kept(store, [9])
        check_no_leak(store)


def test_the_empty_record_is_empty() -> None:
    watcher = Watcher()
    directory = WatchedMemory(watcher)
    with create(directory, in_flight=1, keep=1) as store:
        save(store, 1)
        watcher.refuses = record_persist(watcher)
        fail(store, 2)
        doubtful = slot_name(whereabouts(store)["quarantined"][0])
        assert directory.contents()[doubtful][:8] == b"LGRECORD", "the doubtful record is there"

        def refuses(operation: Operation) -> bool:
            return operation.kind == "write" and operation.is_payload

        watcher.refuses = refuses
        fail(store, 3)
        watcher.refuses = lambda operation: False
        assert directory.contents()[doubtful][:8] == b"LGEMPTY\0"
        with pytest.raises(SaveFailed):
            store.save(b"", step=4)


@pytest.mark.parametrize("kind", ["write", "persist"])
def test_an_empty_record_that_cannot_be_made_durable_leaves_the_slot_where_it_is(kind: str) -> None:
    """The save fails, loudly; nothing was written over the payload, so the doubtful record is still whole if it is there."""
    watcher = Watcher()
    directory = WatchedMemory(watcher)
    with create(directory, in_flight=1, keep=1) as store:
        save(store, 1)
        watcher.refuses = record_persist(watcher)
        fail(store, 2)
        doubtful = whereabouts(store)["quarantined"]
        payload = directory.contents()[slot_name(doubtful[0])][AREA_BYTES:]
        for step in (3, 4, 5):
            watcher.refuses = lambda operation: operation.kind == kind and operation.file == slot_name(doubtful[0])
            fail(store, step)
            assert whereabouts(store) == {"free": [], "quarantined": doubtful, "kept": [0]}
            assert directory.contents()[slot_name(doubtful[0])][AREA_BYTES:] == payload
        watcher.refuses = lambda operation: False
        with pytest.raises(SaveFailed, match="step 5") as told:
            store.save(payload_of(6), step=6)
        assert told.value.ticket.wait(60).step == 6
        check_kept(store, [6])
        check_no_leak(store)


def test_a_mark_that_failed_to_persist_for_one_save_is_written_again_for_the_other() -> None:
    """Two first saves at once. A persist that fails leaves the page clean: the other's persist would prove nothing."""
    log: list[str] = []
    both = threading.Barrier(2)

    def watch(operation: Operation) -> None:
        if operation.kind == "persist" and operation.file != "header":
            seen[operation.file] = seen.get(operation.file, 0) + 1
            if seen[operation.file] == 2:  # the record's
                both.wait(60)
        if operation.file == "header":
            log.append(operation.kind)
            if log.count("persist") == 1 and operation.kind == "persist":
                time.sleep(0.05)  # time for the other one to do something wrong
                raise OSError(errno.EIO, "Input/output error", operation.file)

    seen: dict[str, int] = {}
    directory = WatchedMemory()
    with create(directory, writers=2) as store:
        store._started()
        directory.watch = watch
        tickets = [store.save(payload_of(step, 4000), step=step) for step in (1, 2)]
        settle(store)
        assert sorted(ticket.outcome for ticket in tickets) == ["failed", "published"]
        assert log == ["write", "persist", "write", "persist"]
        directory.watch = nothing
        check_no_leak(store)
        with pytest.raises(SaveFailed):
            store.save(b"", step=3)


def test_quarantine_does_not_outlive_the_store() -> None:
    """Recovery looks at the record itself: what was doubtful is found whole, and is the newest."""
    watcher = Watcher()
    directory = WatchedMemory(watcher)
    store = create(directory)
    save(store, 1)
    watcher.refuses = record_persist(watcher)
    fail(store, 2)
    watcher.refuses = lambda operation: False
    with pytest.raises(SaveFailed):
        store.close()
    with Store.open(directory) as store:
        check_kept(store, [2, 1])
        store.read()
        save(store, 3)
        assert whereabouts(store)["quarantined"] == []
        check_no_leak(store)


def test_a_save_that_is_emptying_a_quarantined_slot_does_not_give_way() -> None:
    """`loud`: policy `replace` made it give way in the middle of that, and it ended failed, of nothing."""
    watcher = Watcher()
    with create(WatchedMemory(watcher), in_flight=1, keep=1, overload="replace") as store:
        save(store, 1)
        watcher.refuses = record_persist(watcher)
        fail(store, 2)
        stands, may_go = threading.Event(), threading.Event()

        def hold(operation: Operation) -> bool:
            if operation.kind == "persist":
                stands.set()
                assert may_go.wait(60)
            return False

        watcher.refuses = hold
        tickets: list[Any] = []

        def begin(step: int) -> None:
            try:
                tickets.append(store.save(payload_of(step), step=step))
            except SaveFailed as told:  # of the second, whoever comes first
                tickets.append(told.ticket)

        saver = threading.Thread(target=begin, args=(3,))
        saver.start()
        assert stands.wait(60)
        begin(4)
        may_go.set()
        saver.join(60)
        assert tickets.pop(0).outcome == "skipped", "the one on its way to a slot stays, so the new one gives way"
        assert tickets[0].wait(60).step == 3
        check_kept(store, [3])
        check_no_leak(store)
