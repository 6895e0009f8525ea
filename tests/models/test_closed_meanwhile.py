"""Somebody reads a checkpoint while another thread closes the store: the reader hears that it is closed, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lastgood.models as lm
from lastgood.core import Store, StoreClosed, reading
from lastgood.models.encode import encode
from lastgood.models.exports import copy_out
from lastgood.models.peeking import peek_store
from lastgood.models.reading import read_state

READERS: dict[str, Callable[[Store, Path], Any]] = {
    "load": lambda store, out: read_state(store),
    "look": lambda store, out: peek_store(store),
    "copy": lambda store, out: copy_out(store, store.records()[0], str(out)),
}


@pytest.fixture(params=[True, False], ids=["reader", "writer"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A state of very many small chunks, its skeleton many of them, so that there is time to close in the middle."""
    encoded = encode({f"key {number}": number for number in range(20_000)})
    path = tmp_path / "store"
    with Store.create(path, slot_bytes=encoded.total_bytes, chunk_bytes=4096) as made:
        made.save(encoded.to_bytes(), step=1).wait()
    with Store.open(path, read_only=request.param) as opened:
        yield opened


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("told", ["by the core", "by the system"])
def test_a_reader_hears_that_the_store_is_closed(
    name: str, told: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was `[Errno 9] Bad file descriptor: slot-0000`; and of a store that is whole, that none in it is usable."""
    plain = store.chunks

    def fails(*_: object) -> None:
        raise OSError(9, "Bad file descriptor", "slot-0000")

    def closed_after_the_first(record: Any) -> Iterator[Any]:
        pieces = plain(record)
        yield next(pieces)
        store.close()
        if told == "by the system":
            monkeypatch.setattr(reading, "_fetch_chunk", fails)
        yield from pieces

    monkeypatch.setattr(store, "chunks", closed_after_the_first)
    with pytest.raises(StoreClosed) as problem:
        READERS[name](store, tmp_path / "out.lastgood")
    monkeypatch.undo()
    assert "is closed: open it again" in str(problem.value)
    assert "\n" not in str(problem.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"], "no half of a copy is left"
    assert lm.load(tmp_path / "store")["key 7"] == 7
