"""What a device raises need not be an OSError: no memory, a closed file, an interrupt. The save fails all the same.

The story: a chunk's write raised ValueError, nobody noticed, and the save was acknowledged with a hole in it.
"""

from __future__ import annotations

from typing import Any

import pytest

from lastgood.core import SaveFailed, Store
from tests.store.small import check_kept, check_no_leak, create, payload_of, save
from tests.store.watched import Operation, WatchedMemory, nothing

KINDS = [
    ValueError("write to closed file"),
    MemoryError("no memory"),
    KeyboardInterrupt(),
    SystemExit(3),
    EOFError("short"),
]
MOMENTS = {
    "first chunk": lambda operation: operation.kind == "write" and operation.offset == 4096,
    "last chunk": lambda operation: operation.kind == "write" and operation.offset == 16384,
    "persist": lambda operation: operation.kind == "persist",
    "record": lambda operation: operation.kind == "write" and operation.offset == 0,
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("error", KINDS, ids=lambda error: type(error).__name__)
def test_the_save_fails_and_nothing_else_does(error: BaseException, moment: str) -> None:
    directory = WatchedMemory()

    def fail(operation: Operation) -> None:
        if MOMENTS[moment](operation):
            raise error

    with create(directory) as store:
        save(store, 1)
        save(store, 2)
        directory.watch = fail
        with pytest.raises(SaveFailed, match="step 3") as caught:
            _wait(store, 3)
        assert caught.value.__cause__ is error
        directory.watch = nothing
        check_no_leak(store)
        check_kept(store, [2, 1])
        with pytest.raises(SaveFailed, match="step 3") as told:
            store.save(payload_of(4), step=4)
        assert told.value.ticket.wait(60).step == 4
        for step in range(5, 10):
            save(store, step)
        check_no_leak(store)
        check_kept(store, [9, 8])
    with Store.open(directory, read_only=True) as store:
        check_kept(store, [9, 8])


def _wait(store: Store, step: int) -> Any:
    return store.save(payload_of(step, 20_000), step=step).wait(60)


def test_a_store_whose_writer_met_the_unexpected_can_be_closed() -> None:
    directory = WatchedMemory()

    def fail(operation: Operation) -> None:
        if operation.is_payload and operation.kind == "write":
            raise ValueError("write to closed file")

    store = create(directory)
    save(store, 1)
    directory.watch = fail
    store.save(payload_of(2), step=2)
    with pytest.raises(SaveFailed, match=r"step 2 .*write to closed file"):
        store.close()
    store.close()
    with Store.open(directory) as store:
        check_kept(store, [1])
