"""What a store's files hold: the driver of the `survey` program. Writes nothing, so readers use it beside a writer.

    Scan(...)            reads the record areas only: the newest *candidate* is known
    newest_whole(into)   verifies payloads, newest first, until one is whole; the payload read is the caller's

C1 nothing-silent   whatever is passed over is in `passed_over`, one line with the reason (R2 explained)
C2 may-be-newer     a record that cannot be read (EIO) might be newer than all others: a writer must refuse (`strict_io`),
                    and so must one whose newer payloads are `unreadable`: what cannot be read now is not yet lost
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import steps
from .cells import MY_SLOT, MY_TAG, STATUS, new_mine
from .device import Device, aligned_buffer
from .errors import Damaged, StoreError
from .interrupt import Shield
from .layout import Layout, slot_name
from .reading import fetch_payload, verify_payload
from .record import Record, RecordRejected, decode
from .recover import CANDIDATE, REJECTED, survey
from .rules import BROKEN, DONE, NO_TAG, PAGE_BYTES, slot_of, tag_of

Found = TypeVar("Found")


class Scan:
    """One look at all slots of a store."""

    def __init__(self, layout: Layout, devices: Sequence[Device | None], *, strict_io: bool) -> None:
        """Read every record area. A missing slot file is None in `devices`."""
        self.tags = np.zeros(layout.slot_count, np.int64)  # NO_TAG
        self.verdict = np.zeros(layout.slot_count, np.int64)  # EMPTY
        self.records: list[Record | None] = [None] * layout.slot_count
        self.passed_over: list[str] = []
        self.reasons: dict[int, str] = {}
        self.unreadable: list[str] = []
        self._layout = layout
        self._devices = devices
        self._strict_io = strict_io
        self._mine = new_mine()
        self._program = survey(self._mine, self.tags, self.verdict, layout.slot_count)
        self._area = aligned_buffer(layout.area_bytes)
        self._one_at_a_time = threading.Lock()
        while (step := next(self._program)) == steps.READ_RECORD:
            self._read_record(int(self._mine[MY_SLOT]))
        self._finished = step == steps.STEP

    def in_order(self) -> list[Record]:
        """Usable records, newest first, the leftovers beyond `keep` too."""
        usable = [
            record for slot, record in enumerate(self.records) if record is not None and self.verdict[slot] != REJECTED
        ]
        return sorted(usable, key=lambda record: -record.sequence)

    def newest_whole(self, into: Any = None) -> tuple[Record, NDArray[np.uint8]] | None:
        """The newest whole checkpoint and its payload (read into the front of `into` where given), or None.

        The first call runs the survey to its end, and the payload that verification has read is the one returned.
        """

        def read(device: Device, record: Record) -> NDArray[np.uint8]:
            return fetch_payload(device, record, into)

        payload = self.settle(read)
        tag = int(self._mine[MY_TAG])
        if tag == NO_TAG:
            return None
        record = self.records[slot_of(tag)]
        assert record is not None
        if payload is None:
            payload = self._tried(record, read)
        if payload is None:
            raise Damaged(self.passed_over[-1])
        return record, payload

    def settle(self, read: Callable[[Device, Record], Found]) -> Found | None:
        """Run the survey to its end, if that was not done yet; what `read` has returned of the last payload, or None."""
        found: Found | None = None
        with self._one_at_a_time:  # several threads may read, or one read while another saves for the first time
            while not self._finished:
                record = self.records[int(self._mine[MY_SLOT])]
                assert record is not None
                found = self._tried(record, read)
                self._mine[STATUS] = DONE if found is not None else BROKEN
                with Shield():  # an exception inside the program would end it
                    self._finished = next(self._program) == steps.STEP
        return found

    def picture(self) -> tuple[bytes, tuple[int, ...]]:
        """What was seen: two looks with the same picture saw one state, since every save has a sequence of its own."""
        return self.tags.tobytes(), tuple(sorted(self.reasons))

    def is_whole(self, slot: int) -> bool:
        """Read and verify the payload of one slot; the reason is in `passed_over` when it is not whole.

        Raises StoreError when it cannot be read, as against read and found wrong: it is not yet lost.
        """
        record = self.records[slot]
        unreadable = len(self.unreadable)
        whole = record is not None and self._tried(record, verify_payload) is not None
        if len(self.unreadable) > unreadable:
            raise StoreError(cannot_give_up(self.unreadable[-1]))
        return whole

    def _tried(self, record: Record, read: Callable[[Device, Record], Found]) -> Found | None:
        device = self._devices[record.slot]
        assert device is not None
        try:
            return read(device, record)
        except (Damaged, OSError) as error:
            self.passed_over.append(str(error))
            if isinstance(error, OSError):
                self.unreadable.append(str(error))
            return None

    def _read_record(self, slot: int) -> None:
        device = self._devices[slot]
        try:
            if device is None:
                raise RecordRejected("the file is missing")
            self._read_area(device)
            record = decode(self._area, self._layout.store, slot)
            if record is not None:
                if record.payload_offset + record.payload_bytes > self._layout.file_bytes:
                    raise RecordRejected("its digest is right, but its payload ends beyond its slot")
                self.records[slot] = record
                self.tags[slot] = tag_of(record.sequence, slot)
                self.verdict[slot] = CANDIDATE
        except RecordRejected as reason:
            self.reasons[slot] = str(reason)
        except OSError as error:
            if self._strict_io:
                raise StoreError(
                    f"{slot_name(slot)} cannot be read ({error.strerror}) and may hold the newest checkpoint:"
                    " repair the device, or open read-only to see what else is there"
                ) from error
            self.reasons[slot] = f"cannot be read: {error.strerror}"
        if slot in self.reasons:
            self.verdict[slot] = REJECTED
            self.passed_over.append(f"{slot_name(slot)}: {self.reasons[slot]}")

    def _read_area(self, device: Device) -> None:
        """Read a record area, or as much of it as a file has that was made before the store grew."""
        there = min(self._area.size, device.size() // PAGE_BYTES * PAGE_BYTES)
        if there == 0:
            raise RecordRejected(f"the file is {device.size()} bytes long")
        self._area[there:] = 0
        device.read(0, self._area[:there])


def cannot_give_up(reason: str) -> str:
    """One line for a checkpoint that a writer would empty although it is perhaps only out of reach."""
    return f"{reason}: repair the device, or open read-only; a save would give that checkpoint up"
