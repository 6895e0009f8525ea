"""A kind of device that this file system cannot give: told in one line, or replaced by one that it can, never half used."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lastgood.core import Store, StoreError
from tests.faults.refusing import system
from tests.store.small import check_kept, create, save


class NoDirectSystem:
    """The module `os` on a file system that refuses O_DIRECT: at open, or only when it is read or written."""

    def __init__(self, when: str) -> None:
        self.when = when
        self.direct: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, *rest: Any) -> int:
        is_direct = bool(flags & os.O_DIRECT)
        if is_direct and self.when == "open":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        descriptor = os.open(path, flags, *rest)
        self.direct.discard(descriptor)
        if is_direct:
            self.direct.add(descriptor)
        return descriptor

    def preadv(self, descriptor: int, *rest: Any) -> int:
        self._refuse(descriptor)
        return os.preadv(descriptor, *rest)

    def pwrite(self, descriptor: int, *rest: Any) -> int:
        self._refuse(descriptor)
        return os.pwrite(descriptor, *rest)

    def _refuse(self, descriptor: int) -> None:
        if descriptor in self.direct:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.mark.parametrize("when", ["open", "use"])
def test_without_direct_io_the_page_cache_is_used_and_the_reason_is_known(tmp_path: Path, when: str) -> None:
    with system(NoDirectSystem(when)):
        with create(tmp_path / "store", device="auto") as store:
            assert store.device.startswith("buffered (O_DIRECT refused here: Invalid argument")
            save(store, 1)
            save(store, 2)
        with Store.open(tmp_path / "store") as store:
            store.read()
            save(store, 3)
            check_kept(store, [3, 2])


@pytest.mark.parametrize("when", ["open", "use"])
def test_direct_io_that_was_asked_for_and_is_not_there(tmp_path: Path, when: str) -> None:
    with system(NoDirectSystem(when)):
        with pytest.raises(StoreError, match="refuses O_DIRECT") as caught:
            create(tmp_path / "new" / "store", device="direct")
        assert str(tmp_path / "new" / "store") in str(caught.value)
        assert "\n" not in str(caught.value)
        assert os.listdir(tmp_path) == []
        create(tmp_path / "store", device="buffered").close()
        with pytest.raises(StoreError, match="refuses O_DIRECT"):
            Store.open(tmp_path / "store", device="direct")
        Store.open(tmp_path / "store").close()


def test_persistent_memory_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not on persistent memory") as caught:
        create(tmp_path / "new" / "store", device="pmem")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []
    create(tmp_path / "store").close()
    with pytest.raises(StoreError, match="not on persistent memory"):
        Store.open(tmp_path / "store", device="pmem")
    with Store.open(tmp_path / "store") as store:
        save(store, 1)
