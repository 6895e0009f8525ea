"""A state straight from its file into the memory of its tensors, verified on the way.

A payload is not read into one piece and then copied: its chunks are verified in a small buffer and go from there to where
the tensors will be, so reading a state needs its own memory and a few chunks. Fresh memory is made ready by a helper
thread meanwhile, since the kernel's clearing of it takes as long as the copy.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Iterable, Iterator

import numpy

from lastgood.core import Damaged, Record, Store, StoreError

from . import skeleton as tags
from .collector import without_collecting
from .decode import Decoded, build, decode, misfits_told
from .regions import Streamed, lengths_in, starts_of

POPULATE_WRITE = 23
"""Linux's name for "give these pages memory now"; where it is unknown nothing is lost but time."""

Pieces = Iterator[tuple[int, numpy.ndarray]]


def read_pieces(pieces: Pieces, total_bytes: int) -> Decoded:
    """Decode a payload that comes in verified pieces. Raises what they raise, NotAState or FormatTooNew."""
    header, front = tags.read_front(pieces, total_bytes)
    with misfits_told(), without_collecting():
        skeleton = tags.read_skeleton(front, header)
        lengths = lengths_in(skeleton)
        regions = Streamed(lengths, starts_of(lengths, header))
    make_ready(regions.large())
    regions.add(0, numpy.frombuffer(front, numpy.uint8))
    for offset, piece in pieces:
        regions.add(offset, piece)
    return build(skeleton, regions)


def make_ready(places: Iterable[tuple[int, int]]) -> None:
    """Have the kernel give memory to these (address, length) places, in order, while something else goes on."""
    page = mmap.PAGESIZE
    spans = [(-(-address // page) * page, (address + length) // page * page) for address, length in places]
    if not any(start < stop for start, stop in spans):
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def work() -> None:
        for start, stop in spans:
            if stop > start:
                advise(start, stop - start, POPULATE_WRITE)

    threading.Thread(target=work, name="lastgood-memory", daemon=True).start()


def read_state(store: Store, step: int | None = None) -> tuple[Record, Decoded]:
    """The newest whole state of an open store, or that of `step`, as `Store.read_with_record` finds it."""
    record = next((each for each in store.records() if step is None or each.step == step), None)
    try:
        if record is not None:
            return record, read_pieces(store.chunks(record), record.payload_bytes)
    except (Damaged, OSError):
        pass  # overwritten meanwhile, or damaged: the store knows how to look again, and what to fall back on
    except StoreError as problem:
        raise _placed(problem, store, record) from problem
    record, payload = store.read_with_record(step=step)
    try:
        return record, decode(payload)
    except StoreError as problem:
        raise _placed(problem, store, record) from problem


def _placed(problem: StoreError, store: Store, record: Record | None) -> StoreError:
    where = f"step {record.step} of {store.path}: " if record is not None else ""
    return type(problem)(f"{where}{problem}")
