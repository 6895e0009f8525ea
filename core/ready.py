"""Making an opened store ready for savers: the driver of the `make_ready` program.

It runs once, before the first slot is handed out, and only after the newest payload was verified. If any of its steps
fails, the OSError is the caller's, no slot was handed out, and it may be tried again with another engine: nothing kept was
harmed (promise `no-harm`), because it writes only what is there already, and empties only what was passed over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import steps
from .cells import MARKED, MY_SLOT, STATUS, new_mine
from .engine import Engine
from .errors import NothingUsable, StoreError
from .reading import rewrite_payload, verify_payload
from .recover import CANDIDATE, REJECTED, WHOLE, make_ready
from .rules import BROKEN, DONE, MARK_ABSENT, MARK_DURABLE
from .scan import Scan, cannot_give_up


def make_engine_ready(engine: Engine, scan: Scan, *, marked: bool, kept: int) -> None:
    """Fill a new engine's cells from what `scan` found, in a store that has kept `kept` checkpoints until now.

    Raises OSError, or NothingUsable for a store that lost everything; the engine is then of no use.
    """
    scan.settle(verify_payload)
    if marked and WHOLE not in scan.verdict:
        raise NothingUsable(nothing_usable_message(scan.passed_over))
    if scan.unreadable:
        raise StoreError(cannot_give_up(scan.unreadable[0]))
    layout = engine.layout
    mine = new_mine()
    verdict = scan.verdict.copy()  # a failed attempt must not change what the scan knows
    _reject_half_overwritten(scan, verdict, kept, layout.keep)
    engine.cells[MARKED] = MARK_DURABLE if marked else MARK_ABSENT
    program = make_ready(
        engine.cells, mine, scan.tags, verdict, layout.slot_count, layout.keep, int(layout.persists == 1)
    )
    for step in program:
        mine[STATUS] = _perform(engine, scan, step, int(mine[MY_SLOT]))


def _reject_half_overwritten(scan: Scan, verdict: NDArray[np.int64], kept: int, keep: int) -> None:
    """Only the newest `kept` records stand for whole payloads; older ones are leftovers, whose slots were free.

    One of them is looked at when more are to be kept than before, or when a newer one turned out to be damaged.
    """
    newest_first = sorted((each for each in scan.records if each is not None), key=lambda record: -record.sequence)
    found = 0
    for record in newest_first:
        if found < keep and verdict[record.slot] == CANDIDATE and record not in newest_first[:kept]:
            verdict[record.slot] = WHOLE if scan.is_whole(record.slot) else REJECTED
        found += verdict[record.slot] != REJECTED


def _perform(engine: Engine, scan: Scan, step: int, slot: int) -> int:
    if step == steps.VERIFY_PAYLOAD:
        return DONE if scan.is_whole(slot) else BROKEN
    if step in (steps.REWRITE_RECORD, steps.REWRITE_PAYLOAD):
        record = scan.records[slot]
        assert record is not None
        if step == steps.REWRITE_RECORD:
            engine.write_record(record)
        else:
            rewrite_payload(engine.devices[slot], record)
        return DONE
    if step == steps.WRITE_EMPTY_RECORD:
        engine.prepare_slot(slot)
    engine.perform(step, slot)
    return DONE


def nothing_usable_message(passed_over: list[str]) -> str:
    """One line for a store that acknowledged saves and holds no whole checkpoint."""
    reasons = "; ".join(passed_over[:3]) or "all record areas are empty"
    return (
        f"checkpoints were acknowledged in this store and none is whole now ({reasons}): restore its files from a copy"
    )
