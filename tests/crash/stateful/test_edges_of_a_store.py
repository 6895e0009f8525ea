"""What the machine does not do: two threads of one process at the edges of a store's life, and readers opened before them.

Each instant is forced: another thread's call is made where it would come in between, by the thread that is there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastgood.core import SaveFailed, Store, StoreClosed, WrongGeometry, reading
from lastgood.core import store as store_module
from lastgood.core.memory import MemoryDirectory
from tests.store.small import check_kept, check_no_leak, create, is_payload_of, payload_of, save, until
from tests.store.watched import Operation, WatchedMemory

DEVICES = ("auto", "buffered", "mapped", "emulated-pmem")


def once_before(owner: Any, name: str, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call of this function comes just after `act`."""
    original = getattr(owner, name)

    def acting(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, name, original)
        act()
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, acting)


# --- one object, several threads -------------------------------------------------------------------------------------


def test_of_two_that_grow_at_once_the_larger_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """`no-harm`: the header never goes back to smaller slots, in which larger payloads are kept already."""
    directory = MemoryDirectory()
    with create(directory) as store:
        save(store, 1)
        once_before(store._engine, "quiet", lambda: store.grow(40_000), monkeypatch)
        with pytest.raises(WrongGeometry, match="only grows"):
            store.grow(30_000)
        save(store, 2, 40_000)
        check_kept(store, [2, 1])
    with Store.open(directory, read_only=True) as store:
        assert store.slot_bytes == 40_000


def test_a_first_save_that_comes_second_to_close_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`no-harm`: the lock was given back, so not a byte may be written; and no thread is left behind."""
    store = create(tmp_path / "store")
    os.unlink(tmp_path / "store" / "slot-0001")
    before = threading.active_count()
    once_before(store_module, "check_fits", store.close, monkeypatch)
    with pytest.raises(StoreClosed, match="open it again"):
        store.save(payload_of(1), step=1)
    assert threading.active_count() == before
    assert not (tmp_path / "store" / "slot-0001").exists()


def test_close_waits_for_a_store_that_is_growing() -> None:
    """`no-harm`: a header published after the lock was given back would take the place of another writer's."""
    directory = MemoryDirectory()
    store = create(directory)
    save(store, 1)
    closing = threading.Thread(target=store.close)
    publish, locked = directory.publish, []

    def while_closing(name: str, content: bytes) -> None:
        closing.start()
        closing.join(0.1)
        locked.append(directory.writer_alive())
        publish(name, content)

    directory.publish = while_closing  # type: ignore[method-assign]
    store.grow(40_000)
    closing.join(60)
    assert locked == [True]
    assert not directory.writer_alive()


def test_nobody_grows_a_store_that_was_closed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    for instant in ("_started", "quiet"):
        directory = MemoryDirectory()
        store = create(directory)
        save(store, 1)
        before = directory.files["header"].content.tobytes()
        once_before(store if instant == "_started" else store._engine, instant, store.close, monkeypatch)
        with pytest.raises(StoreClosed):
            store.grow(40_000)
        assert directory.files["header"].content.tobytes() == before


def test_a_save_finished_by_hand_beside_close_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """`loud`: it came too late for the writers; its ticket must not wait for ever, and its failure is told."""
    store = create(MemoryDirectory())
    save(store, 1)
    saving = store.begin(step=2)
    saving.push(payload_of(2))
    flight: Any = saving._flight
    until(lambda: flight._outstanding[0] == 1)  # all that was pushed is written

    def finish() -> None:
        with pytest.raises(StoreClosed):
            saving.finish()

    once_before(threading.Thread, "join", finish, monkeypatch)  # the writers take nothing more, and are waited for
    with pytest.raises(SaveFailed, match="closed before it was finished"):
        store.close()
    with pytest.raises(SaveFailed, match="closed before it was finished"):
        saving.ticket.wait(10)


@pytest.mark.parametrize("size", [0, 15_000])
def test_a_save_that_has_written_all_does_not_give_way(size: int) -> None:
    """`loud`: asked to give way while its record is persisted it would end failed, for no reason ("None")."""
    gate, directory = threading.Event(), WatchedMemory()
    with create(directory, in_flight=1, keep=2, overload="replace") as store:
        save(store, 1)
        standing = threading.Event()

        def stand(operation: Operation) -> None:
            if operation.kind == "persist" and operation.file.startswith("slot"):
                standing.set()
                assert gate.wait(60)

        directory.watch = stand
        first = store.save(payload_of(2, size), step=2)
        assert standing.wait(60)
        flight: Any = store._engine._flights[0]  # type: ignore[union-attr]
        flight.refuse()
        flight.refuse()
        assert flight.has_written
        gate.set()
        assert first.wait(60).step == 2
        check_no_leak(store)


@pytest.mark.parametrize("device", DEVICES)
def test_a_read_beside_close_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """`loud`: not that the checkpoints are gone and their files must come from a copy."""
    with create(tmp_path / "store", device=device) as store:
        save(store, 1)
    for question in ("read", "verify"):
        reader = Store.open(tmp_path / "store", read_only=True, device=device)
        once_before(reading, "digest", reader.close, monkeypatch)
        with pytest.raises(StoreClosed):
            getattr(reader, question)()


# --- readers that were there before ----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_a_reader_sees_what_is_saved_after_the_store_grew(tmp_path: Path, device: str) -> None:
    """`newest-survives`: larger files, larger record areas, and other sizes in the header than when it was opened."""
    path = tmp_path / "store"
    sizes = {"slot_bytes": 4096, "in_flight": 1, "meta_bytes": 3900}
    with create(path, device=device, **sizes) as store, Store.open(path, read_only=True, device=device) as reader:
        save(store, 1, 4096)
        store.grow(4096 * 30)
        for step in range(2, 6):
            store.save(payload_of(step, 4096 * 30), step=step, meta=bytes(3900)).wait(60)
        assert "damaged" not in {report.state for report in reader.verify()}
        record, payload = reader.read_with_record()
        assert (record.step, is_payload_of(5, payload), reader.passed_over) == (5, True, ())


def test_a_reader_sees_what_is_saved_into_a_file_that_was_missing(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with create(path, in_flight=1, keep=1) as store:
        slot = save(store, 1).slot
    os.unlink(path / f"slot-{1 - slot:04d}")
    with Store.open(path, read_only=True) as reader:
        assert reader.read_with_record()[0].step == 1
        with Store.open(path, new_run=True) as store:
            save(store, 2)
            assert reader.read_with_record()[0].step == 2


@pytest.mark.parametrize("saves", [0, 1])
def test_a_reader_opened_just_when_a_creation_ends(monkeypatch: pytest.MonkeyPatch, saves: int) -> None:
    """`loud`: neither a place with strange files in it nor a store that has lost its header."""
    directory = MemoryDirectory()
    directory.make()
    read_small, stores = directory.read_small, []

    def created_meanwhile(name: str, limit: int = -1) -> bytes:
        try:
            return read_small(name, limit)
        except FileNotFoundError:
            directory.read_small = read_small  # type: ignore[method-assign]
            stores.append(create(directory))
            for step in range(1, 1 + saves):
                save(stores[0], step)
            raise

    directory.read_small = created_meanwhile  # type: ignore[method-assign]
    with Store.open(directory, read_only=True) as reader:
        assert [record.step for record in reader.records()] == list(range(1, 1 + saves))
    stores[0].close()


def test_a_writer_that_closes_while_somebody_reads_has_damaged_nothing() -> None:
    """`newest-survives`: what was overwritten during the read is not damaged, also when nobody is at work any more."""
    directory = WatchedMemory()
    store = create(directory, in_flight=1, keep=1)
    save(store, 1)
    with Store.open(directory, read_only=True) as reader:

        def save_on_and_close(operation: Operation) -> None:
            if operation.is_payload and operation.kind == "read":
                directory.watch = lambda operation: None
                for step in range(2, 6):
                    save(store, step)
                store.close()

        directory.watch = save_on_and_close
        record, payload = reader.read_with_record()
        assert (record.step, is_payload_of(5, payload), reader.passed_over) == (5, True, ())
