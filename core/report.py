"""What the files of a store hold, one report each: the answer of `verify`.

whole      the header, or a checkpoint that is kept: every byte read and right
empty      a slot with an empty record
leftover   a checkpoint older than those kept, perhaps half overwritten: of no use and no harm
damaged    anything else; after a power loss perhaps only a record torn in the writing, which nobody was promised
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .errors import Damaged
from .layout import HEADER, Header, slot_name
from .record import Record
from .scan import Scan


@dataclass(frozen=True)
class FileReport:
    """One file: its state (whole, empty, leftover, damaged) and why.

    `slot` is None for the header, `record` is None where there is no valid one.
    """

    file: str
    slot: int | None
    state: str
    detail: str
    record: Record | None


def report_on(header: Header, scan: Scan, kept: list[Record], verify: Callable[[Record], object]) -> list[FileReport]:
    """What the header and the slots hold, by a look at their records and by verifying every payload."""
    reports = [FileReport(HEADER, None, "damaged" if header.damage else "whole", header.damage, None)]
    for slot, record in enumerate(scan.records):
        state, detail = "empty", ""
        if slot in scan.reasons:
            state, detail = "damaged", scan.reasons[slot]
        elif record is not None:
            state = "whole" if record in kept else "leftover"
            try:
                verify(record)
            except (Damaged, OSError) as reason:
                state, detail = "damaged" if record in kept else "leftover", str(reason)
        reports.append(FileReport(slot_name(slot), slot, state, detail, record))
    return reports
