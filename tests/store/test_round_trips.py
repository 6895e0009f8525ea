"""What is saved comes back, byte for byte (`never-wrong`): sizes around every edge, every kind of buffer, mutated after."""

from __future__ import annotations

import array
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastgood.core import Store
from lastgood.core.memory import MemoryDirectory
from tests.store.small import SMALL, check_kept, check_no_leak, create, is_payload_of, payload_of, save, settle

PAGE = 4096
CHUNK = SMALL["chunk_bytes"]
ROOM = SMALL["slot_bytes"]
EDGES = sorted(
    {
        size + near
        for size in (0, 8, 32, PAGE, 2 * PAGE, 3 * PAGE, ROOM // PAGE * PAGE, ROOM)
        for near in (-9, -1, 0, 1, 9)
        if 0 <= size + near <= ROOM
    }
)
sizes = st.one_of(st.sampled_from(EDGES), st.integers(0, ROOM))


@pytest.mark.parametrize("device", ["direct", "buffered", "mapped", "emulated-pmem"])
def test_every_size_around_an_edge_comes_back_from_every_device(tmp_path: Path, device: str) -> None:
    try:
        store = create(tmp_path / "store", device=device, keep=1, in_flight=1)
    except Exception as error:
        if device == "direct" and "O_DIRECT" in str(error):
            pytest.skip(f"this file system has no O_DIRECT: {error}")
        raise
    with store:
        for step, size in enumerate(EDGES, start=1):
            record = save(store, step, size)
            assert record.payload_bytes == size
            found = store.read()
            assert found.size == size
            assert is_payload_of(step, found)
    with Store.open(tmp_path / "store", read_only=True, device=device) as store:
        assert is_payload_of(len(EDGES), store.read())
        assert store.newest() == record


@settings(max_examples=40)
@given(sizes=st.lists(sizes, max_size=12).filter(lambda found: sum(found) <= ROOM), as_iterator=st.booleans())
def test_many_buffers_come_back_one_after_the_other(sizes: list[int], as_iterator: bool) -> None:
    buffers = [payload_of(index, size) for index, size in enumerate(sizes)]
    with create(MemoryDirectory()) as store:
        record = store.save(iter(buffers) if as_iterator else buffers, step=1).wait(60)
        assert record.payload_bytes == sum(sizes)
        assert store.read().tobytes() == b"".join(buffer.tobytes() for buffer in buffers)
        check_no_leak(store)


@settings(max_examples=40)
@given(
    chunk=st.sampled_from([4096, 8192, 12288, 1 << 20]),
    room=st.integers(1, 40_000),
    staging=st.one_of(st.none(), st.integers(1, 50_000)),
    writers=st.integers(1, 4),
    persists=st.sampled_from([1, 2]),
    meta=st.binary(max_size=100),
    step=st.integers(-(2**63), 2**63 - 1),
    data=st.data(),
)
def test_every_geometry_keeps_what_it_is_given(
    chunk: int, room: int, staging: int | None, writers: int, persists: int, meta: bytes, step: int, data: Any
) -> None:
    size = data.draw(st.one_of(st.sampled_from(sorted({0, 1, room - 1, room})), st.integers(0, room)))
    payload = payload_of(7, size)
    directory = MemoryDirectory()
    options = {"chunk_bytes": chunk, "staging_bytes": staging, "writers": writers, "persists": persists}
    with create(directory, slot_bytes=room, meta_bytes=100, **options) as store:
        written = store.save(payload, step=step, meta=meta).wait(60)
        check_no_leak(store)
    with Store.open(directory, read_only=True) as store:
        record = store.newest()
        assert record == written
        assert (record.step, record.meta, record.payload_bytes) == (step, meta, size)
        assert store.read().tobytes() == payload.tobytes()
        assert {report.state for report in store.verify()} == {"whole", "empty"}


def dtypes() -> list[Any]:
    """One of each kind that has bytes of its own."""
    plain = ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "g", "F", "D", ">i4", ">f8", "S7", "U3", "V5"]
    return [*plain, "M8[s]", "m8[ns]", [("a", "i2"), ("b", ">f4", (2,))]]


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
def test_arrays_of_every_dtype_come_back(dtype: Any) -> None:
    kind = np.dtype(dtype)
    values = np.frombuffer(payload_of(3, 60 * kind.itemsize).tobytes(), kind).reshape(3, 4, 5)
    with create(MemoryDirectory()) as store:
        store.save([values, values[:0], values[1]], step=1).wait(60)
        assert store.read().tobytes() == values.tobytes() + values[1].tobytes()


class OnlyAnIterator:
    """Neither a list nor a generator."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces = list(pieces)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.pieces:
            raise StopIteration
        return self.pieces.pop(0)


def mapped(content: bytes) -> mmap.mmap:
    """Memory that is bytes-like and can be iterated, too."""
    memory = mmap.mmap(-1, len(content))
    memory[:] = content
    return memory


def read_only(content: bytes) -> np.ndarray[Any, Any]:
    values = np.frombuffer(content, np.uint8).copy()
    values.flags.writeable = False
    return values


CONTENT = payload_of(5, 4100).tobytes()
BUFFERS = {
    "bytes": lambda: CONTENT,
    "bytearray": lambda: bytearray(CONTENT),
    "memoryview": lambda: memoryview(CONTENT),
    "memoryview of words": lambda: memoryview(CONTENT).cast("I"),
    "memoryview of a table": lambda: memoryview(CONTENT).cast("B", (41, 100)),
    "array": lambda: array.array("i", CONTENT),
    "mmap": lambda: mapped(CONTENT),
    "read-only array": lambda: read_only(CONTENT),
    "array of no dimensions": lambda: np.frombuffer(CONTENT, "V4100").reshape(()),
    "matrix": lambda: np.frombuffer(CONTENT, np.uint8).view(np.matrix),
    "array not at a word": lambda: np.frombuffer(b"x" + CONTENT, np.uint8)[1:],
    "list": lambda: [CONTENT[:5], bytearray(CONTENT[5:])],
    "tuple": lambda: (CONTENT[:4096], np.frombuffer(CONTENT[4096:], np.uint8)),
    "generator": lambda: (CONTENT[start : start + 100] for start in range(0, len(CONTENT), 100)),
    "iterator": lambda: OnlyAnIterator(CONTENT[:4000], b"", CONTENT[4000:]),
    "map": lambda: map(bytes, [CONTENT[:1], CONTENT[1:]]),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_every_kind_of_buffer_comes_back(name: str) -> None:
    with create(MemoryDirectory()) as store:
        store.save(BUFFERS[name](), step=1).wait(60)
        assert store.read().tobytes() == CONTENT


NOTHING = {
    "bytes": lambda: b"",
    "list": lambda: [],
    "tuple": lambda: (),
    "iterator": lambda: iter([]),
    "array": lambda: np.empty((0, 3)),
    "empty buffers": lambda: [b"", np.empty(0, "f8")],
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_payload_of_no_bytes_is_a_checkpoint_too(name: str) -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        store.save(NOTHING[name](), step=4, meta=b"said").wait(60)
    with Store.open(directory) as store:
        record, found = store.read_with_record()
        assert (record.step, record.meta, found.size) == (4, b"said", 0)


@settings(max_examples=20)
@given(sizes=st.lists(sizes, min_size=1, max_size=3).filter(lambda found: sum(found) <= ROOM), staging=sizes)
def test_buffers_may_be_changed_as_soon_as_save_returns(sizes: list[int], staging: int) -> None:
    """The copy is taken by then, however little of it has been written; the next save takes the changed bytes."""
    buffers = [payload_of(index, size) for index, size in enumerate(sizes)]
    directory = MemoryDirectory()
    with create(directory, staging_bytes=max(1, staging), keep=3) as store:
        expected = []
        for step in range(3):
            expected.insert(0, b"".join(buffer.tobytes() for buffer in buffers))
            store.save(buffers, step=step)
            for buffer in buffers:
                buffer[:] = ~buffer
        settle(store)
        assert [store.read(record).tobytes() for record in store.records()] == expected


def test_an_iterator_may_hand_out_the_same_memory_again_and_again() -> None:
    """Each piece is copied before the next one is asked for: a producer needs one buffer."""
    memory = np.empty(3000, np.uint8)

    def pieces() -> Iterator[Any]:
        for step in range(6):
            memory[:] = payload_of(step, 3000)
            yield memory

    with create(MemoryDirectory()) as store:
        store.save(pieces(), step=1).wait(60)
        assert store.read().tobytes() == b"".join(payload_of(step, 3000).tobytes() for step in range(6))


@settings(max_examples=30)
@given(size=sizes, extra=st.integers(0, 9000), offset=st.integers(0, 9))
def test_reading_into_given_memory_fills_its_front_and_leaves_the_rest(size: int, extra: int, offset: int) -> None:
    memory = np.full(size + extra + offset, 7, np.uint8)
    with create(MemoryDirectory()) as store:
        save(store, 1, size)
        found = store.read(into=memory[offset:])
    assert np.shares_memory(found, memory) or size == 0
    assert is_payload_of(1, memory[offset : offset + size])
    assert (memory[:offset] == 7).all()
    assert (memory[offset + size :] == 7).all()


@pytest.mark.parametrize("device", ["auto", "buffered"])
@pytest.mark.parametrize("offset", [0, 1, 4096])
def test_reading_from_files_into_memory_at_any_address(tmp_path: Path, device: str, offset: int) -> None:
    memory = np.full(30_000, 7, np.uint8)
    with create(tmp_path / "store", device=device) as store:
        save(store, 1, 9001)
        assert is_payload_of(1, store.read(into=memory[offset:]))
    assert is_payload_of(1, memory[offset : offset + 9001])
    assert (memory[:offset] == 7).all()
    assert (memory[offset + 9001 :] == 7).all()


def test_a_step_that_is_saved_again_is_a_newer_save_of_it() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        first = store.save(b"first", step=5).wait(60)
        second = store.save(b"second", step=5).wait(60)
        assert second.sequence > first.sequence
        assert [record.step for record in store.records()] == [5, 5]
    with Store.open(directory) as store:
        assert store.read(step=5).tobytes() == b"second"
        assert store.read(store.records()[1]).tobytes() == b"first"


def test_an_older_step_saved_later_is_the_newest() -> None:
    """Sequence, not step, orders saves: after going back to step 2 the newest checkpoint is step 2."""
    with create(MemoryDirectory()) as store:
        for step in (9, 10, 2):
            save(store, step)
        check_kept(store, [2, 10])
        assert is_payload_of(10, store.read(step=10))


def test_what_is_read_is_fresh_memory() -> None:
    with create(MemoryDirectory()) as store:
        save(store, 1)
        found = store.read()
        found[:] = 0
        assert is_payload_of(1, store.read())


def test_a_record_says_when_by_whom_and_what(tmp_path: Path) -> None:
    with create(tmp_path / "store") as store:
        ticket = store.save(payload_of(8), step=8, meta=b"epoch 2")
        record = ticket.wait(60)
        assert (record.step, record.meta, record.run.hex(), record.payload_bytes) == (8, b"epoch 2", store.run, 15_000)
        assert (ticket.step, ticket.sequence, ticket.outcome, ticket.durable, ticket.done) == (
            8, record.sequence, "published", True, True,
        )  # fmt: skip
        assert len(record.digests) == 4
        assert abs(record.saved_at - (tmp_path / "store").stat().st_ctime) < 60
