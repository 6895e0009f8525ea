"""The system may take or give fewer bytes than it was asked for: the rest is asked for again, and nothing is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastgood.core import SaveFailed, Store
from tests.faults.refusing import system
from tests.store.small import check_kept, check_no_leak, create, is_payload_of, payload_of, save


class ShortSystem:
    """The module `os`, whose pwrite and preadv move at most so many bytes a call."""

    def __init__(self, limit: Callable[[int], int]) -> None:
        self.limit = limit
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        self.calls += 1
        return os.pwrite(descriptor, data[: self.limit(len(data))], offset)

    def preadv(self, descriptor: int, buffers: list[Any], offset: int) -> int:
        self.calls += 1
        return os.preadv(descriptor, [buffers[0][: self.limit(len(buffers[0]))]], offset)


def one(length: int) -> int:
    return 1


def half(length: int) -> int:
    return max(1, length // 2)


def all_but_one(length: int) -> int:
    return max(1, length - 1)


def a_sector(length: int) -> int:
    return min(length, 512)


def a_page(length: int) -> int:
    return min(length, 4096)


@pytest.mark.parametrize("limit", [one, half, all_but_one, a_sector], ids=lambda limit: limit.__name__)
def test_short_transfers_through_the_page_cache(tmp_path: Path, limit: Callable[[int], int]) -> None:
    small = {"slot_bytes": 5000, "in_flight": 1, "keep": 1}
    replacement = ShortSystem(limit)
    with system(replacement):
        with create(tmp_path / "store", device="buffered", **small) as store:
            for step in (1, 2, 3):
                save(store, step, 5000)
            check_kept(store, [3])
            check_no_leak(store)
        with Store.open(tmp_path / "store", device="buffered", read_only=True) as store:
            assert is_payload_of(3, store.read())
    assert replacement.calls > 3 * 5
    with Store.open(tmp_path / "store", read_only=True) as store:
        check_kept(store, [3])


@pytest.mark.parametrize("limit", [a_page, a_sector], ids=lambda limit: limit.__name__)
def test_short_transfers_past_the_page_cache(tmp_path: Path, limit: Callable[[int], int]) -> None:
    """O_DIRECT stops at whole sectors; a file system that wants whole pages may refuse the rest, but never loses it."""
    with create(tmp_path / "store", chunk_bytes=16384) as store:
        if not store.device.startswith("direct"):
            pytest.skip(store.device)
    with system(ShortSystem(limit)), Store.open(tmp_path / "store", device="direct") as store:
        try:
            for step in (1, 2, 3):
                save(store, step)
        except SaveFailed as error:
            if limit is not a_sector or error.__cause__.errno != errno.EINVAL:
                raise
            pytest.skip("this file system wants more than sectors of 512 bytes")
        check_kept(store, [3, 2])
        check_no_leak(store)
    with Store.open(tmp_path / "store", read_only=True) as store:
        check_kept(store, [3, 2])


def test_a_device_that_takes_nothing_is_a_failure_not_a_loop(tmp_path: Path) -> None:
    with create(tmp_path / "store", device="buffered") as store:
        save(store, 1)
        with system(ShortSystem(lambda length: 0)), pytest.raises(SaveFailed, match=r"took no bytes: .*slot-000"):
            store.save(payload_of(2), step=2).wait(60)
        check_no_leak(store)
        check_kept(store, [1])
        with pytest.raises(SaveFailed):
            store.save(b"", step=3)


def test_a_device_that_gives_nothing_is_damage_not_a_loop(tmp_path: Path) -> None:
    with create(tmp_path / "store", device="buffered") as store:
        save(store, 1)
    with Store.open(tmp_path / "store", device="buffered", read_only=True) as store:
        with (
            system(ShortSystem(lambda length: 0)),
            pytest.raises(Exception, match=r"ends at byte|bytes early") as caught,
        ):
            store.read()
        assert "\n" not in str(caught.value)
        assert is_payload_of(1, store.read())
