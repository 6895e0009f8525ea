"""Readers hold no lock: what they return is whole and as new as what was acknowledged when they began, at any speed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from lastgood.core import NoStore, SaveFailed, Store, StoreError
from lastgood.core.rules import FAILED
from tests.store.small import check_kept, create, is_payload_of, payload_of, save, until
from tests.store.watched import Operation, WatchedMemory, nothing


class Saver(threading.Thread):
    """Saves one step after another until told to stop; `acknowledged` is the newest durable one."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.acknowledged = 0
        self.stop = False

    def run(self) -> None:
        step = self.store.newest().step if self.store.newest() else 0
        while not self.stop:
            step += 1
            save(self.store, step)
            self.acknowledged = step

    def __enter__(self) -> Saver:
        self.start()
        until(lambda: self.acknowledged > 0)
        return self

    def __exit__(self, *error: object) -> None:
        self.stop = True
        self.join(60)


@contextmanager
def unless_too_fast() -> Iterator[None]:
    """A busy machine may let the saver outrun every look; that must be said, and nothing else."""
    try:
        yield
    except StoreError as error:
        if type(error) is not StoreError or "overwritten faster than it can be read" not in str(error):
            raise


@pytest.mark.parametrize("who", ["the writer", "a reader"])
@pytest.mark.parametrize(("in_flight", "keep"), [(1, 1), (2, 2)])
def test_reads_are_whole_and_not_older_than_what_was_acknowledged(who: str, in_flight: int, keep: int) -> None:
    directory = WatchedMemory()
    with create(directory, in_flight=in_flight, keep=keep) as store:
        save(store, 1)
        reader = store if who == "the writer" else Store.open(directory, read_only=True)
        with Saver(store) as saver:
            for _ in range(25):
                before = saver.acknowledged
                assert reader.newest().step >= before
                with unless_too_fast():
                    record, payload = reader.read_with_record()
                    assert record.step >= before
                    assert is_payload_of(record.step, payload)
        assert reader.read_with_record()[0].step == saver.acknowledged
        assert reader.passed_over == ()


@pytest.mark.parametrize("who", ["the writer", "a reader"])
def test_verifying_beside_saves_finds_no_damage(who: str) -> None:
    """What is overwritten while it is looked at is not damaged; `lastgood verify` beside a job must not cry wolf."""
    directory = WatchedMemory()
    with create(directory, in_flight=1, keep=1) as store:
        save(store, 1)
        reader = store if who == "the writer" else Store.open(directory, read_only=True)
        with Saver(store):
            for _ in range(5):
                with unless_too_fast():
                    assert "damaged" not in {report.state for report in reader.verify()}


def test_a_store_that_is_overwritten_faster_than_it_is_read_says_that_and_nothing_worse() -> None:
    """Not `NothingUsable`, which tells the user to restore the files from a copy."""
    directory = WatchedMemory()
    with create(directory, in_flight=1, keep=1) as store:
        save(store, 1)

        def outrun(operation: Operation) -> None:
            if operation.is_payload and operation.kind == "read":
                for _ in range(2):
                    step = store.newest().step + 1
                    directory.watch = lambda operation: None
                    save(store, step)
                    directory.watch = outrun

        directory.watch = outrun
        with pytest.raises(StoreError, match="overwritten faster than it can be read") as caught:
            store.read()
        assert type(caught.value) is StoreError
        directory.watch = lambda operation: None
        assert is_payload_of(store.newest().step, store.read())
        assert store.passed_over == ()


def test_a_reader_sees_saves_made_after_it_was_opened() -> None:
    directory = WatchedMemory()
    with create(directory) as store, Store.open(directory, read_only=True) as reader:
        assert reader.records() == []
        for step in (1, 2, 3):
            save(store, step)
            assert is_payload_of(step, reader.read())
            check_kept(reader, list(range(step, 0, -1))[:2])


def test_the_reason_of_a_failure_is_there_when_it_is_told() -> None:
    """A save that asks at the very moment when another one fails is told why, not `None`."""
    directory = WatchedMemory()
    store = create(directory)
    save(store, 1)
    engine: Any = store._engine
    add = engine.counters.add

    def slowly(cell: int, amount: int = 1) -> None:
        add(cell, amount)
        if cell == FAILED:
            time.sleep(0.05)

    def fail(operation: Operation) -> None:
        if operation.is_payload:
            raise OSError(5, "Input/output error", operation.file)

    engine.counters.add = slowly
    directory.watch = fail
    store.save(payload_of(2), step=2)
    until(lambda: len(engine.failures) > 0)
    directory.watch = lambda operation: None
    with pytest.raises(SaveFailed, match=r"step 2 did not become durable: .*Input/output error") as caught:
        store.save(np.zeros(3), step=3)
    assert isinstance(caught.value.__cause__, OSError)
    store.close()


def test_a_look_at_any_instant_of_the_first_save_finds_nothing_yet_or_all_of_it() -> None:
    """`loud`: a store says that it lost everything only when it did, not between the mark and the first publish."""
    found: list[str] = []

    def look(operation: Operation) -> None:
        if operation.kind == "read":
            return
        directory.watch = nothing
        for reader in (store, Store.open(directory, read_only=True)):
            try:
                assert is_payload_of(1, reader.read())
                found.append("whole")
            except NoStore:
                found.append("nothing yet")
        directory.watch = look

    directory = WatchedMemory()
    with create(directory) as store:
        store._started()
        directory.watch = look
        save(store, 1)
        directory.watch = nothing
        assert is_payload_of(1, store.read())
    assert set(found) == {"nothing yet", "whole"}
    assert len(found) > 10


@pytest.mark.parametrize("keep", [1, 2])
def test_damage_beside_an_idle_writer_is_damage(keep: int) -> None:
    """`newest-survives`: nothing moves, so a second look is enough to return the older one, or to say that it is lost."""
    directory = WatchedMemory()
    with create(directory, keep=keep) as store:
        save(store, 1)
        record = save(store, 2)
        directory.files[f"slot-{record.slot:04d}"].content[record.payload_offset] ^= 1
        looks = 0

        def count(operation: Operation) -> None:
            nonlocal looks
            looks += operation.kind == "read" and operation.file == f"slot-{record.slot:04d}" and operation.is_payload

        directory.watch = count
        reader = Store.open(directory, read_only=True)
        assert is_payload_of(1, reader.read())
        assert looks <= 2
        assert any("step 2" in reason for reason in reader.passed_over)
        states = [report.state for report in reader.verify()]
        assert states.count("damaged") == 1
        assert looks <= 4


def test_a_first_read_that_whole_saves_overtake_returns_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """`newest-survives`: the reader knew of step 1 only, whose slot another thread had used again when it came to read it."""
    directory = WatchedMemory()
    with create(directory, in_flight=1, keep=1) as store:
        save(store, 1)
    with Store.open(directory, new_run=True) as store:
        plain = store._scan.settle

        def overtaken(into: Any = None) -> Any:
            monkeypatch.undo()
            saver = threading.Thread(target=lambda: [save(store, 2), save(store, 3)])
            saver.start()
            saver.join(60)
            return plain(into)

        monkeypatch.setattr(store._scan, "settle", overtaken)
        record, payload = store.read_with_record()
        assert record.step == 3
        assert is_payload_of(3, payload)
        assert store.passed_over == ()
