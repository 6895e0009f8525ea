"""The system gives no more threads, no more memory, no answer about a file: told in one line, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from lastgood.core import Store
from tests.store.small import check_kept, check_no_leak, create, save


def left_open() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


@pytest.mark.parametrize("started", [0, 1, 2])
def test_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: int) -> None:
    """Each attempt to save had left a descriptor, and the threads that did start."""
    start = threading.Thread.start
    with create(tmp_path / "store") as store:
        before = left_open()
        for _ in range(3):
            left = [None] * started

            def refuses(thread: threading.Thread) -> None:
                if not left:  # noqa: B023
                    raise RuntimeError("can't start new thread")
                left.pop()  # noqa: B023
                start(thread)

            monkeypatch.setattr(threading.Thread, "start", refuses)
            with pytest.raises(OSError, match=r"no threads for writers=3: give fewer, or allow more threads") as caught:
                store.save(b"x", step=1)
            assert (caught.value.errno, caught.value.filename) == (errno.EAGAIN, str(tmp_path / "store"))
            assert left_open() == before
        monkeypatch.undo()
        save(store, 2)
        check_kept(store, [2])
        check_no_leak(store)


def test_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(tmp_path / "store") as store:
        before = left_open()

        def no_memory(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr(np, "zeros", no_memory)
        for _ in range(3):
            with pytest.raises(MemoryError):
                store.save(b"x", step=1)
            assert left_open() == before
        monkeypatch.undo()
        save(store, 2)
        check_kept(store, [2])


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO])
def test_an_answer_about_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with create(tmp_path / "store", device="buffered") as store:
        save(store, 1)
    before = left_open()
    for failing in range(4):
        left = [None] * failing
        fstat = os.fstat

        def fails(descriptor: int) -> os.stat_result:
            if os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2].startswith("slot-"):
                if not left:  # noqa: B023
                    raise OSError(number, os.strerror(number))
                left.pop()  # noqa: B023
            return fstat(descriptor)  # noqa: B023

        monkeypatch.setattr(os, "fstat", fails)
        with pytest.raises(OSError, match="slot-000") as caught:
            Store.open(tmp_path / "store", device="buffered")
        assert caught.value.errno == number
        monkeypatch.undo()
        assert left_open() == before
    with Store.open(tmp_path / "store", device="buffered") as store:
        check_kept(store, [1])
