"""What cannot be is refused: one line that names the path or the value, before anything was written (`no-harm`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastgood.core import (
    Damaged,
    FormatTooNew,
    NoStore,
    NotAStore,
    Store,
    StoreClosed,
    StoreError,
    StoreExists,
    StoreInUse,
    WrongGeometry,
)
from lastgood.core.memory import MemoryDirectory
from tests.store.small import SMALL, check_kept, check_no_leak, create, files_of, payload_of, save, whereabouts


def refusal(call: Callable[[], Any], kind: type[BaseException], *names: object) -> None:
    """The call raises exactly this, in one line that has every name in it."""
    with pytest.raises(kind) as caught:
        call()
    assert caught.type is kind
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 500
    for name in names:
        assert str(name) in message, message


# --- where the store is, or should be ---------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [True, False])
class TestNoStoreThere:
    def open(self, path: Path, read_only: bool) -> Callable[[], Store]:
        return lambda: Store.open(path, read_only=read_only)

    def test_missing(self, tmp_path: Path, read_only: bool) -> None:
        refusal(self.open(tmp_path / "none", read_only), NoStore, tmp_path / "none", "does not exist")
        assert os.listdir(tmp_path) == []

    def test_empty_directory(self, tmp_path: Path, read_only: bool) -> None:
        refusal(self.open(tmp_path, read_only), NoStore, tmp_path, "empty")
        assert os.listdir(tmp_path) == []

    def test_other_files(self, tmp_path: Path, read_only: bool) -> None:
        (tmp_path / "notes.txt").write_text("mine")
        refusal(self.open(tmp_path, read_only), NotAStore, tmp_path, "header")
        assert os.listdir(tmp_path) == ["notes.txt"]

    def test_a_file(self, tmp_path: Path, read_only: bool) -> None:
        (tmp_path / "file").write_bytes(b"mine")
        refusal(self.open(tmp_path / "file", read_only), NotAStore, tmp_path / "file", "is a file")
        refusal(self.open(tmp_path / "file" / "sub", read_only), NoStore, tmp_path / "file" / "sub")
        assert (tmp_path / "file").read_bytes() == b"mine"

    def test_a_creation_that_was_never_completed(self, tmp_path: Path, read_only: bool) -> None:
        create(tmp_path / "store").close()
        (tmp_path / "store" / "header").unlink()
        refusal(self.open(tmp_path / "store", read_only), NoStore, tmp_path / "store", "never completed")

    @pytest.mark.parametrize(
        "content", [b"", b"LAST", b"LASTGOOD", b"LASTGOOD\1\0", b"#!/bin/sh\n" * 2000, bytes(12288)]
    )
    def test_a_header_of_other_bytes(self, tmp_path: Path, read_only: bool, content: bytes) -> None:
        (tmp_path / "header").write_bytes(content)
        kind = Damaged if content.startswith(b"LASTGOOD") else NotAStore
        refusal(self.open(tmp_path, read_only), kind, tmp_path)
        assert (tmp_path / "header").read_bytes() == content

    @pytest.mark.skipif(
        os.geteuid() != 0, reason="only root may read everything, so only there the header must be a directory"
    )
    def test_a_header_that_is_a_directory(self, tmp_path: Path, read_only: bool) -> None:
        (tmp_path / "header").mkdir()
        refusal(self.open(tmp_path, read_only), IsADirectoryError, tmp_path / "header")


def test_creating_where_something_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    refusal(lambda: create(tmp_path / "file"), NotAStore, tmp_path / "file", "is a file")
    refusal(lambda: create(tmp_path / "file" / "a" / "b"), NotAStore, tmp_path / "file", "is a file")
    refusal(lambda: create(tmp_path), NotAStore, tmp_path, "holds other files", "file")
    assert sorted(os.listdir(tmp_path)) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_creating_over_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with create(path) as store:
        save(store, 1)
    before = files_of(path)
    refusal(lambda: create(path), StoreExists, path, "open it")
    refusal(lambda: create(path, slot_bytes=1, keep=1), StoreExists, path)
    assert files_of(path) == before
    with Store.open(path, read_only=True) as store:
        check_kept(store, [1])


def test_creating_over_what_an_interrupted_creation_left(tmp_path: Path) -> None:
    path = tmp_path / "store"
    create(path, in_flight=4, keep=4).close()
    (path / "header").rename(path / "header.new")
    with create(path) as store:
        save(store, 1)
        assert sorted(os.listdir(path)) == ["header", "lock", "slot-0000", "slot-0001", "slot-0002", "slot-0003"]


@pytest.mark.parametrize("second", ["open", "create"])
def test_a_second_writer(tmp_path: Path, second: str) -> None:
    path = tmp_path / "store"
    with create(path) as store:
        save(store, 1)
        if second == "open":
            refusal(lambda: Store.open(path), StoreInUse, path, os.getpid(), "close it first")
        else:
            refusal(lambda: create(path), StoreExists, path)
        with Store.open(path, read_only=True) as reader:
            check_kept(reader, [1])
        save(store, 2)
    Store.open(path).close()


def test_a_second_creator_beside_one_that_has_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "store"
    create(path).close()
    with Store.open(path):
        (path / "header").rename(path / "aside")
        (path / "aside").rename(path / "header.new")
        names = sorted(os.listdir(path))
        refusal(lambda: create(path), StoreInUse, path)
        assert sorted(os.listdir(path)) == names, "what the first one has made is not ours to remove"


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("slot_bytes", 0, WrongGeometry), ("slot_bytes", -1, WrongGeometry), ("slot_bytes", 2**62, WrongGeometry),
        ("slot_bytes", 1e9, TypeError), ("slot_bytes", "5", TypeError), ("slot_bytes", None, TypeError),
        ("slot_bytes", True, TypeError), ("keep", False, TypeError),
        ("chunk_bytes", 0, WrongGeometry), ("chunk_bytes", 4095, WrongGeometry), ("chunk_bytes", 6000, WrongGeometry),
        ("chunk_bytes", 2**31, WrongGeometry), ("chunk_bytes", 4096.0, TypeError),
        ("in_flight", 0, WrongGeometry), ("in_flight", 65, WrongGeometry), ("in_flight", 1.5, TypeError),
        ("keep", 0, WrongGeometry), ("keep", 17, WrongGeometry), ("keep", None, TypeError),
        ("meta_bytes", -1, WrongGeometry), ("meta_bytes", 2**20 + 1, WrongGeometry), ("meta_bytes", "", TypeError),
        ("persists", 0, WrongGeometry), ("persists", 3, WrongGeometry),
        ("staging_bytes", 0, StoreError), ("staging_bytes", -5, StoreError), ("staging_bytes", 1.5, TypeError),
        ("writers", 0, StoreError), ("writers", 65, StoreError), ("writers", 2.0, TypeError),
        ("overload", "panic", StoreError), ("overload", None, StoreError),
        ("device", "floppy", StoreError), ("device", None, StoreError),
    ],
)  # fmt: skip
def test_sizes_and_words_that_make_no_sense(tmp_path: Path, name: str, value: Any, kind: type[Exception]) -> None:
    refusal(lambda: Store.create(tmp_path / "store", **{**SMALL, name: value}), kind, f"{name}={value!r}")
    assert os.listdir(tmp_path) == []
    if name in ("staging_bytes", "writers", "overload", "device"):
        create(tmp_path / "store").close()
        refusal(lambda: Store.open(tmp_path / "store", **{name: value}), kind, f"{name}={value!r}")
        Store.open(tmp_path / "store").close()  # the refused opening left no lock


def test_a_size_that_is_too_large_is_not_called_too_small(tmp_path: Path) -> None:
    refusal(
        lambda: Store.create(tmp_path, slot_bytes=2**62), WrongGeometry, "at most 70,368,744,177,664", "chunk_bytes"
    )
    Store.create(MemoryDirectory(), slot_bytes=1, chunk_bytes=2**30).close()


def test_staging_memory_that_cannot_be_had(tmp_path: Path) -> None:
    """Found out by the first save, which says which number is to blame; the store is as it was."""
    with create(tmp_path / "store", staging_bytes=2**60) as store:
        for _ in range(2):
            refusal(lambda: store.save(b"x", step=1), OSError, "staging_bytes", tmp_path / "store")
    with Store.open(tmp_path / "store") as store:
        save(store, 1)


def test_whole_numbers_of_other_types_are_fine() -> None:
    directory = MemoryDirectory()
    with create(directory, slot_bytes=np.int64(20_000), keep=np.uint8(2), chunk_bytes=np.int32(4096)) as store:
        assert store.save(b"x", step=np.int16(5)).wait(60).step == 5
        assert type(store.newest().step) is int
    with Store.open(directory, read_only=True) as store:
        assert (store.slot_bytes, store.keep, store.newest().step) == (20_000, 2, 5)


@pytest.mark.parametrize("path", [None, 5, 2.5])
def test_a_path_that_is_none(path: Any) -> None:
    refusal(lambda: create(path), TypeError, type(path).__name__)
    refusal(lambda: Store.open(path), TypeError, type(path).__name__)


# --- what is to be saved ----------------------------------------------------------------------------------------------


class NoBuffer:
    """Nothing that has bytes."""


BAD_BUFFERS = {
    "text": ("hello", TypeError, "str"),
    "number": (5, TypeError, "int"),
    "nothing": (None, TypeError, "NoneType"),
    "an object": (NoBuffer(), TypeError, "NoBuffer"),
    "a dict": ({"a": b"1"}, TypeError, "dict"),
    "a set": ({b"1", b"2"}, TypeError, "set"),
    "a list of text": ([b"x", "y"], TypeError, "str"),
    "objects": (np.array([{}, None]), TypeError, "object"),
    "records with objects": (np.zeros(2, [("a", "O")]), TypeError, "Python objects"),
    "every second item": (np.zeros(10)[::2], TypeError, "C-contiguous"),
    "Fortran order": (np.zeros((3, 4), order="F"), TypeError, "C-contiguous"),
    "a strided view": (memoryview(bytes(10))[::2], TypeError, "contiguous"),
    "a masked array": (np.ma.array([1, 2], mask=[0, 1]), TypeError, "mask"),
    "too many bytes": (bytes(20_001), WrongGeometry, "20,001"),
    "too many bytes in all": ([bytes(15_000), bytes(15_000)], WrongGeometry, "30,000"),
}


@pytest.mark.parametrize("name", BAD_BUFFERS)
def test_buffers_that_cannot_be_saved(name: str) -> None:
    """Refused before a slot or a sequence is taken: not a failed save, so nothing is told of it later either."""
    buffers, kind, word = BAD_BUFFERS[name]
    with create(MemoryDirectory()) as store:
        save(store, 1)
        places = whereabouts(store)
        refusal(lambda: store.save(buffers, step=2), kind, word)
        assert whereabouts(store) == places
        assert store.statistics().saves == 1
        assert save(store, 3).sequence == 2
        check_kept(store, [3, 1])
        check_no_leak(store)


@pytest.mark.parametrize(
    ("step", "kind"),
    [(1.5, TypeError), (None, TypeError), ("7", TypeError), (np.float32(3), TypeError),
     (2**63, StoreError), (-(2**63) - 1, StoreError)],
)  # fmt: skip
def test_steps_that_are_none(step: Any, kind: type[Exception]) -> None:
    with create(MemoryDirectory()) as store:
        refusal(lambda: store.save(b"x", step=step), kind, f"step={step!r}")
        assert store.statistics().saves == 0
        check_kept(store, [])
        save(store, 1)
        check_no_leak(store)


@pytest.mark.parametrize(
    ("meta", "kind", "word"),
    [("text", TypeError, "meta=str"), (5, TypeError, "meta=int"), (None, TypeError, "meta=NoneType"),
     (bytes(1025), ValueError, "1025"), (np.zeros(129), ValueError, "1032")],
    ids=["text", "number", "none", "long", "long array"],
)  # fmt: skip
def test_meta_that_does_not_fit(meta: Any, kind: type[Exception], word: str) -> None:
    with create(MemoryDirectory()) as store:
        save(store, 1)
        refusal(lambda: store.save(b"x", step=2, meta=meta), kind, word)
        save(store, 3)
        check_kept(store, [3, 1])
        check_no_leak(store)


def test_meta_may_be_as_long_as_there_is_room() -> None:
    for room in (0, 1, 1024, 4096, 100_000):
        with create(MemoryDirectory(), meta_bytes=room) as store:
            meta = payload_of(1, room).tobytes()
            store.save(payload_of(1, 20_000), step=1, meta=bytearray(meta)).wait(60)
            assert store.newest().meta == meta
            assert store.read().tobytes() == payload_of(1, 20_000).tobytes()


# --- what is to be read -----------------------------------------------------------------------------------------------


BAD_TARGETS = {
    "too small": (lambda: np.empty(14_999, np.uint8), ValueError, "15,000"),
    "every second byte": (lambda: np.empty(40_000, np.uint8)[::2], TypeError, "contiguous"),
    "read-only": (lambda: bytes(20_000), TypeError, "writable"),
    "no memory": (lambda: "into", TypeError, "str"),
}


@pytest.mark.parametrize("when", ["live", "reopened", "read-only"])
@pytest.mark.parametrize("name", BAD_TARGETS)
def test_memory_that_cannot_be_read_into(name: str, when: str) -> None:
    make, kind, word = BAD_TARGETS[name]
    directory = MemoryDirectory()
    store = create(directory)
    save(store, 1)
    if when != "live":
        store.close()
        store = Store.open(directory, read_only=when == "read-only")
    with store:
        refusal(lambda: store.read(into=make()), kind, word)
        check_kept(store, [1])
        assert store.passed_over == ()
        assert store.read(into=bytearray(15_000)).tobytes() == payload_of(1).tobytes()
        assert store.read(into=np.empty(2500, np.float64)).tobytes() == payload_of(1).tobytes()


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with create(path) as store:
        for strict in (False, True):
            refusal(lambda strict=strict: store.read(strict=strict), NoStore, path, "nothing was ever saved")
            refusal(lambda strict=strict: store.read(step=3, strict=strict), NoStore, path, "nothing was ever saved")
        assert store.newest() is None
        assert store.records() == []
        save(store, 1)
        refusal(lambda: store.read(step=3), NoStore, path, "step 3", "[1]")


def test_a_record_of_another_store(tmp_path: Path) -> None:
    with create(tmp_path / "one") as one, create(tmp_path / "two", in_flight=9) as two:
        save(one, 1)
        for step in range(1, 9):
            record = save(two, step)
        refusal(lambda: one.read(record), StoreError, tmp_path / "one", "another store")


# --- what may not be done any more, or here ---------------------------------------------------------------------------


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = create(path)
    save(store, 1)
    store.close()
    store.close()
    calls: list[Callable[[], Any]] = [
        store.newest, store.records, store.read, store.verify, store.continue_run,
        lambda: store.save(b"x", step=2), lambda: store.grow(30_000),
    ]  # fmt: skip
    for call in calls:
        refusal(call, StoreClosed, path, "closed")


def test_a_read_only_store_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store"
    create(path).close()
    before = files_of(path)
    with Store.open(path, read_only=True) as store:
        refusal(lambda: store.save(b"x", step=1), StoreError, path, "read-only")
        refusal(lambda: store.grow(10**6), StoreError, path, "read-only")
    assert files_of(path) == before


def test_a_store_does_not_shrink(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with create(path) as store:
        refusal(lambda: store.grow(19_999), WrongGeometry, path, "20,000")
        refusal(lambda: store.grow(3e4), TypeError, "slot_bytes=30000.0")
        assert store.slot_bytes == 20_000


# --- a later version --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_a_later_format_is_left_alone(tmp_path: Path, read_only: bool) -> None:
    """Both versions are named, and not a byte is changed, whatever else the later format has in its header."""
    path = tmp_path / "store"
    with create(path) as store:
        save(store, 1)
    image = bytearray((path / "header").read_bytes())
    for page in range(0, len(image), 4096):
        if image[page : page + 8] == b"LASTGOOD":
            image[page + 8 : page + 12] = (7).to_bytes(4, "little")
            image[page + 12 : page + 100] = os.urandom(88)
    (path / "header").write_bytes(image)
    before = files_of(path)
    refusal(lambda: Store.open(path, read_only=read_only), FormatTooNew, path, "format 7", "up to 1")
    refusal(lambda: create(path), StoreExists, path)
    assert files_of(path) == before
