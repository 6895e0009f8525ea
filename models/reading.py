"""A state straight from its file into the memory of its tensors, verified on the way.

A payload is not read into one piece and then copied: its chunks are verified in a small buffer and go from there to where
the tensors will be, so reading a state needs its own memory and two chunks. Fresh memory is made ready by a helper
thread meanwhile, since the kernel's clearing of it takes as long as the copy.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Iterable

import numpy

from lastgood.core import Damaged, Record, Store, StoreError

from . import skeleton as tags
from .decode import Decoded, build, decode, misfits_told, read_skeleton
from .regions import Streamed, lengths_in, starts_of
from .source import Source, source_of

POPULATE_WRITE = 23
"""Linux's name for "give these pages memory now"; where it is unknown nothing is lost but time."""


def read_source(source: Source) -> Decoded:
    """Read and decode a payload. Raises Damaged, NotAState, FormatTooNew or OSError."""
    head, regions, skeleton = bytearray(), None, None
    header = None
    for offset, piece in source.chunks():
        if regions is None:
            head += piece.data
            header = header or tags.read_header(memoryview(head), source.total_bytes)
            if len(head) < header.regions_start:
                continue
            with misfits_told():
                skeleton = read_skeleton(head[tags.ALIGNMENT : tags.ALIGNMENT + header.skeleton_bytes])
                lengths = lengths_in(skeleton)
                regions = Streamed(lengths, starts_of(lengths, header))
            make_ready(regions.large())
            regions.add(0, numpy.frombuffer(head, numpy.uint8))
        else:
            regions.add(offset, piece)
    if regions is None or skeleton is None:
        tags.read_header(memoryview(head), source.total_bytes)
        raise Damaged(f"step {source.step}: {source.path} ends within its skeleton")
    return build(skeleton, regions)


def make_ready(places: Iterable[tuple[int, int]]) -> None:
    """Have the kernel give memory to these (address, length) places, in order, while something else goes on."""
    page = mmap.PAGESIZE
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    spans = [(-(-address // page) * page, (address + length) // page * page) for address, length in places]

    def work() -> None:
        for start, stop in spans:
            if stop > start:
                advise(start, stop - start, POPULATE_WRITE)

    threading.Thread(target=work, name="lastgood-memory", daemon=True).start()


def read_state(store: Store, step: int | None = None) -> tuple[Record, Decoded]:
    """The newest whole state of an open store, or that of `step`, as `Store.read_with_record` finds it."""
    for record in store.records():
        source = source_of(store, record) if step is None or record.step == step else None
        if source is None:
            continue
        try:
            return record, read_source(source)
        except (Damaged, OSError):
            break  # overwritten meanwhile, or damaged: the store knows how to look again, and what to fall back on
        except StoreError as problem:
            raise type(problem)(f"step {record.step} of {store.path}: {problem}") from problem
    record, payload = store.read_with_record(step=step)
    try:
        return record, decode(payload)
    except StoreError as problem:
        raise type(problem)(f"step {record.step} of {store.path}: {problem}") from problem
