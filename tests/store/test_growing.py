"""A store may be given larger slots; what it keeps stays where it is, and slot files follow as they are used."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastgood.core import SaveFailed, Store, WrongGeometry
from lastgood.core.memory import MemoryDirectory
from tests.store.small import check_kept, check_no_leak, create, is_payload_of, payload_of, save
from tests.store.watched import Gate, Operation, WatchedFiles, WatchedMemory


@pytest.mark.parametrize("device", ["auto", "buffered", "mapped", "emulated-pmem"])
def test_a_grown_store_takes_larger_payloads_now_and_after_reopening(tmp_path: Path, device: str) -> None:
    path = tmp_path / "store"
    with create(path, device=device, keep=2) as store:
        for step in (1, 2, 3):
            save(store, step, 20_000)
        with pytest.raises(WrongGeometry, match=r"grow\(30000\)"):
            save(store, 4, 30_000)
        store.grow(30_000)
        assert store.slot_bytes == 30_000
        check_kept(store, [3, 2])
        save(store, 4, 30_000)
        check_kept(store, [4, 3])
    with Store.open(path, device=device) as store:
        assert (store.slot_bytes, store.total_bytes >= 4 * 30_000) == (30_000, True)
        check_kept(store, [4, 3])
        store.read()
        for step in range(5, 12):
            save(store, step, 30_000)
        check_kept(store, [11, 10])
        check_no_leak(store)
        assert {report.state for report in store.verify()} <= {"whole", "leftover", "empty"}


@settings(max_examples=25)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("save"), st.floats(0, 1)),
            st.tuples(st.just("grow"), st.integers(1, 40_000)),
            st.tuples(st.just("reopen"), st.just(0)),
        ),
        max_size=14,
    ),
    meta_bytes=st.sampled_from([8, 1024, 5000]),
    persists=st.sampled_from([1, 2]),
    chunk=st.sampled_from([4096, 16384, 1 << 20]),
)
def test_any_mixture_of_growing_saving_and_reopening(
    steps: list[Any], meta_bytes: int, persists: int, chunk: int
) -> None:
    """Also where the record area itself grows (many small chunks), and where a chunk was a whole slot."""
    directory = MemoryDirectory()
    store = create(directory, slot_bytes=5000, meta_bytes=meta_bytes, persists=persists, chunk_bytes=chunk)
    sizes: dict[int, int] = {}
    for step, (what, value) in enumerate(steps, start=1):
        if what == "save":
            sizes[step] = int(value * store.slot_bytes)
            save(store, step, sizes[step])
        elif what == "grow":
            store.grow(store.slot_bytes + value)
        else:
            store.close()
            store = Store.open(directory, new_run=True)
        kept = sorted(sizes, reverse=True)[:2]
        records = store.records()
        assert [record.step for record in records] == kept
        for record in records:
            found = store.read(record)
            assert found.size == sizes[record.step]
            assert is_payload_of(record.step, found)
    if store._engine is not None:
        check_no_leak(store)
    store.close()


def test_a_record_area_that_grows(tmp_path: Path) -> None:
    """Thirty digests do not fit beside this much meta: old slots keep their smaller area, and are read all the same."""
    path = tmp_path / "store"
    with create(path, slot_bytes=4096, in_flight=1, keep=2, meta_bytes=3900) as store:
        save(store, 1, 4096)
        store.grow(4096 * 30)
        record = store.save(payload_of(2, 4096 * 30), step=2, meta=bytes(range(1, 131)) * 30).wait(60)
        assert (store.records()[1].payload_offset, record.payload_offset) == (4096, 8192)
        check_kept(store, [2, 1])
    with Store.open(path, read_only=True) as store:
        check_kept(store, [2, 1])
        assert store.newest() == record
    with Store.open(path) as store:
        store.read()
        save(store, 3, 500)
        check_kept(store, [3, 2])


def test_growing_waits_for_the_saves_in_flight() -> None:
    gate = Gate("persist")
    with create(WatchedMemory(gate)) as store, gate:
        ticket = store.save(b"x" * 4096, step=1)
        gate.wait_for({int.from_bytes(b"x" * 8, "little")})
        assert not ticket.done
        gate.open()
        store.grow(40_000)
        assert ticket.done
        save(store, 2, 40_000)
        check_no_leak(store)


def test_a_store_that_grew_before_its_first_save_is_not_marked() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        store.grow(30_000)
        assert not store.marked
    with Store.open(directory, read_only=True) as store:
        assert not store.marked
        assert store.slot_bytes == 30_000


def test_growing_carries_the_mark_over() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        save(store, 1)
        store.grow(30_000)
        assert store.marked
    for file in [name for name in directory.files if name.startswith("slot")]:
        directory.files[file].content[:] = 0
    with Store.open(directory, read_only=True) as store:
        assert store.marked


def test_a_full_disk_while_growing_fails_that_save_and_harms_nothing(tmp_path: Path) -> None:
    """The slot is extended when it is acquired: ENOSPC then is the save's failure, its slot is free again (`no-harm`)."""

    def full(operation: Operation) -> None:
        if operation.kind == "allocate":
            raise OSError(errno.ENOSPC, "No space left on device", operation.file)

    directory = WatchedFiles(tmp_path / "store")
    with create(directory) as store:
        save(store, 1, 20_000)
        save(store, 2, 20_000)
        store.grow(50_000)
        directory.watch = full
        with pytest.raises(SaveFailed, match=r"step 3 .*No space left on device: 'slot-000\d'") as caught:
            store.save(b"x" * 50_000, step=3).wait(60)
        check_kept(store, [2, 1])
        directory.watch = lambda operation: None
        with pytest.raises(SaveFailed) as told:
            store.save(b"", step=4)
        assert (caught.value.__cause__, told.value.ticket.step) == (told.value.__cause__, 4)
        save(store, 5, 50_000)
        check_kept(store, [5, 4])
        check_no_leak(store)
