"""A checkpoint read in pieces, for payloads that have no room in memory twice: every piece verified before it is seen."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from lastgood.core import Damaged, Store, StoreClosed, StoreError
from lastgood.core.memory import MemoryDirectory
from tests.store.small import create, payload_of, save


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8192, 20_000])
@pytest.mark.parametrize("device", ["buffered", "auto"])
def test_the_pieces_are_the_payload_in_order(tmp_path: Path, size: int, device: str) -> None:
    with create(tmp_path / "store", device=device) as store:
        record = save(store, 3, size)
        found = np.zeros(size, np.uint8)
        end = 0
        for offset, piece in store.chunks(record):
            assert offset == end
            end = offset + piece.size
            found[offset:end] = piece
        assert end == size
        assert found.tobytes() == payload_of(3, size).tobytes()


def test_a_damaged_chunk_is_never_handed_out() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        record = save(store, 3)
    directory.files[f"slot-{record.slot:04d}"].content[record.payload_offset + 8192 + 77] ^= 4
    with Store.open(directory, read_only=True) as store:
        seen = []
        with pytest.raises(Damaged, match=r"step 3 .*: chunk 2 of 4 is damaged"):
            seen.extend(offset for offset, _ in store.chunks(record))
        assert seen == [0, 4096]


def test_a_file_that_ends_early_is_damaged(tmp_path: Path) -> None:
    with create(tmp_path / "store") as store:
        record = save(store, 3)
    file = tmp_path / "store" / f"slot-{record.slot:04d}"
    with file.open("r+b") as stream:
        stream.truncate(record.payload_offset + 4096)
    with Store.open(tmp_path / "store", read_only=True) as store, pytest.raises(Damaged, match="step 3"):
        list(store.chunks(record))


def test_reading_that_is_given_up_leaves_no_thread() -> None:
    with create(MemoryDirectory()) as store:
        record = save(store, 3)
        before = threading.active_count()
        pieces = store.chunks(record)
        next(pieces)
        assert before < threading.active_count() <= before + 2, "the next chunks are being read meanwhile"
        pieces.close()
        assert threading.active_count() == before


def test_saves_continue_the_run_of_what_was_read_to_its_end() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        run = save(store, 3).run
    with Store.open(directory) as store:
        record = store.newest()
        assert record is not None
        pieces = store.chunks(record)
        next(pieces)
        pieces.close()
        with pytest.raises(StoreError, match="another run"):
            store.save(payload_of(4), step=4)
        list(store.chunks(record))
        assert save(store, 4).run == run


def test_a_record_of_another_store_is_refused() -> None:
    with create(MemoryDirectory()) as store, create(MemoryDirectory()) as other:
        record = save(other, 3)
        with pytest.raises(StoreError, match="belongs to another store"):
            next(store.chunks(record))


def test_what_is_no_record_is_refused_in_one_line() -> None:
    """As in `store.chunks(store.newest())` of a store without a checkpoint."""
    with (
        create(MemoryDirectory()) as store,
        pytest.raises(TypeError, match=r"None is no record: give one of records\(\)"),
    ):
        next(store.chunks(store.newest()))  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["auto", "buffered", "mapped"])
def test_a_store_that_is_closed_meanwhile_says_so(tmp_path: Path, device: str) -> None:
    """It was a bad file descriptor, or damage."""
    with create(tmp_path / "store", device=device, slot_bytes=100_000) as store:
        save(store, 1, 100_000)
        pieces = store.chunks(store.records()[0])
        next(pieces)
        store.close()
        with pytest.raises(StoreClosed, match="is closed: open it again"):
            list(pieces)
