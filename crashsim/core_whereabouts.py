"""Where the slots of an open store are, by its cells, and what lies in its files."""

from __future__ import annotations

from typing import Any

import numpy as np

from lastgood.core.cells import FREE, KEPT, QUARANTINED, ROOT
from lastgood.core.layout import slot_name
from lastgood.core.record import Record, RecordRejected, decode
from lastgood.core.rules import NO_TAG, SLOTS_PER_WORD, slot_of
from lastgood.core.store import Store

from .stateful.disk import Disk


def whereabouts(store: Store) -> tuple[set[int], set[int], set[int]]:
    """The slots that are free, quarantined and kept."""
    engine: Any = store._engine
    cells = engine.cells.tolist()

    def members(first: int) -> set[int]:
        return {
            word * SLOTS_PER_WORD + bit
            for word in range(engine.words)
            for bit in range(SLOTS_PER_WORD)
            if cells[first + word] >> bit & 1
        }

    return members(FREE), members(QUARANTINED), {slot_of(tag) for tag in kept_tags(store)}


def kept_tags(store: Store) -> list[int]:
    """The tags in the root and the kept cells."""
    engine: Any = store._engine
    cells = (ROOT, *range(KEPT, KEPT + store.keep - 1))
    return [tag for tag in (int(engine.cells[cell]) for cell in cells) if tag != NO_TAG]


def kept_records(store: Store) -> list[Record]:
    """Their records."""
    engine: Any = store._engine
    records = [engine.records[slot_of(tag)] for tag in kept_tags(store)]
    return [record for record in records if record is not None]


def step_in(disk: Disk, name: str) -> int | None:
    """The step of the record in a slot file, None where there is no valid one."""
    content = bytes(disk.open(name).read(0, 4096))
    store, slot = content[16:32], int(name.removeprefix("slot-"))
    if name != slot_name(slot) or len(content) < 4096:
        return None
    try:
        record = decode(np.frombuffer(content, np.uint8), store, slot)
    except RecordRejected:
        return None
    return record.step if record is not None else None
