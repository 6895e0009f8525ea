"""What gives the bytes may fail in the middle: the save fails, nothing else does (`no-harm`, `no-leak`, `loud`)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest

from lastgood.core import Store, WrongGeometry
from lastgood.core.memory import MemoryDirectory
from tests.store.small import SMALL, check_kept, check_no_leak, create, payload_of, save
from tests.store.watched import Operation, WatchedMemory


class Boom(Exception):
    """What the producer raises."""


def fails_after(count: int) -> Iterator[Any]:
    """So many whole pieces, then an exception."""
    for index in range(count):
        yield payload_of(index, 3000)
    raise Boom("the producer failed")


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("overload", ["block", "skip", "replace"])
def test_an_iterator_that_raises_fails_its_own_save_only(count: int, overload: str) -> None:
    directory = MemoryDirectory()
    with create(directory, overload=overload) as store:
        save(store, 1)
        save(store, 2)
        with pytest.raises(Boom):
            store.save(fails_after(count), step=3)
        check_no_leak(store)
        check_kept(store, [2, 1])
        assert store.statistics().failed == 1
        for step in range(4, 10):  # more than there are slots: none was lost
            save(store, step)
        check_kept(store, [9, 8])
    with Store.open(directory, read_only=True) as store:
        check_kept(store, [9, 8])


def test_the_producers_own_exception_is_told_once() -> None:
    """The caller has it from `save`; the next save and `close` have nothing to add."""
    store = create(MemoryDirectory())
    with pytest.raises(Boom):
        store.save(fails_after(2), step=1)
    save(store, 2)
    with pytest.raises(Boom):
        store.save(fails_after(0), step=3)
    store.close()


def test_an_iterator_that_never_ends_is_stopped_where_the_slot_does() -> None:
    given = []

    def endless() -> Iterator[bytes]:
        while True:
            given.append(1000)
            yield bytes(1000)

    with create(MemoryDirectory()) as store:
        save(store, 1)
        with pytest.raises(WrongGeometry, match=r"21,000 bytes .* 20,000"):
            store.save(endless(), step=2)
        assert sum(given) == SMALL["slot_bytes"] + 1000
        check_kept(store, [1])
        check_no_leak(store)


def test_an_iterator_that_yields_something_without_bytes() -> None:
    with create(MemoryDirectory()) as store:
        save(store, 1)
        with pytest.raises(TypeError, match="cannot save a int"):
            store.save(iter([b"good", 5]), step=2)
        check_kept(store, [1])
        check_no_leak(store)


def test_an_interrupt_in_a_producer_gives_everything_back() -> None:
    """Ctrl-C in the middle of a save: `BaseException`, not `Exception`."""

    def interrupted() -> Iterator[Any]:
        yield payload_of(2, 9000)
        raise KeyboardInterrupt

    with create(MemoryDirectory()) as store:
        save(store, 1)
        with pytest.raises(KeyboardInterrupt):
            store.save(interrupted(), step=2)
        check_no_leak(store)
        check_kept(store, [1])


def test_a_producer_may_read_the_store_that_it_is_saved_into() -> None:
    """Copying the newest checkpoint forward under another step, piece by piece."""
    with create(MemoryDirectory()) as store:
        save(store, 1)

        def pieces() -> Iterator[Any]:
            for start in range(0, 15_000, 5000):
                yield store.read()[start : start + 5000]

        store.save(pieces(), step=2).wait(60)
        assert store.read().tobytes() == payload_of(1).tobytes()
        check_no_leak(store)


def test_a_failure_while_the_block_raises_leaves_the_blocks_exception_in_front(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """An exception of the training loop is not replaced by that of a save; the save's is added to it."""
    directory = WatchedMemory()

    def fail(operation: Operation) -> None:
        if operation.is_payload:
            raise OSError(errno.EIO, "planted", operation.file)

    with pytest.raises(Boom) as caught, create(directory) as store:  # noqa: PT012
        save(store, 1)
        directory.watch = fail
        store.save(payload_of(2), step=2)
        raise Boom
    told = " ".join(getattr(caught.value, "__notes__", []))
    assert "step 2 did not become durable: [Errno 5] planted: 'slot-0001'" in told
    assert "step 2 did not become durable" in capfd.readouterr().err


def test_a_producer_may_change_the_size_of_its_one_buffer() -> None:
    """Its bytes were copied before it is asked for more; what still looked at them made resizing a BufferError."""

    def grows() -> Iterator[bytearray]:
        buffer = bytearray(b"a" * 3000)
        yield buffer
        buffer += b"b" * 2000
        yield buffer
        buffer.clear()
        yield buffer

    with create(MemoryDirectory()) as store:
        store.save(grows(), step=1).wait()
        assert bytes(store.read()) == b"a" * 6000 + b"b" * 2000
