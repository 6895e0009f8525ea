"""The reading half of a store: how checkpoints are found, verified and handed out.

V1 verified         every payload that is handed out was checked against the digests of its record (`never-wrong`)
V2 beside-a-writer  a reader holds no lock, so a slot may be overwritten while it reads: a mismatch then means look again,
                    and counts as damage only when no writer is alive
V3 explained        when an older checkpoint is returned, `passed_over` says what was wrong with the newer ones

    opened: records read ── first read, or first save: newest payload verified ── live: the engine's cells decide
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .creation import close_all, open_slots, read_header
from .device import Device
from .directory import Directory
from .engine import Engine
from .errors import Damaged, NoStore, NothingUsable, StoreClosed, StoreError
from .layout import Layout, slot_name
from .reading import payload_memory, read_payload
from .ready import nothing_usable_message
from .record import Record
from .scan import Scan

_LOOKS_BESIDE_A_WRITER = 100
_LOOKS_AS_THE_WRITER = 3

Payload = NDArray[np.uint8]


@dataclass(frozen=True)
class SlotReport:
    """What one slot holds: "whole", "empty", "damaged", or "leftover" (older than what is kept; may be half overwritten)."""

    slot: int
    state: str
    detail: str
    record: Record | None


class Reader:
    """What can be asked of an open store without changing it."""

    def __init__(self, directory: Directory, layout: Layout, marked: bool, *, writable: bool) -> None:
        """Open the slot files and read their records. Not for callers: use `Store.open`."""
        directory.choose_device(slot_name(0), writable=writable)
        self._directory = directory
        self._layout = layout
        self._was_marked = marked
        self._writable = writable
        self._process = os.getpid()
        self._closed = False
        self._live: Engine | None = None
        self._passed_over: list[str] = []
        self._devices: list[Device | None] = open_slots(directory, layout, writable=writable)
        try:
            self._scan = self._look()
        except BaseException:
            close_all(self._devices)
            raise

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The directory."""
        return self._directory.path

    @property
    def slot_bytes(self) -> int:
        """Bytes of payload that a slot has room for."""
        return self._layout.slot_bytes

    @property
    def in_flight(self) -> int:
        """Saves that may be under way at once."""
        return self._layout.in_flight

    @property
    def keep(self) -> int:
        """Checkpoints kept."""
        return self._layout.keep

    @property
    def total_bytes(self) -> int:
        """Bytes reserved on the file system."""
        return self._layout.total_bytes

    @property
    def device(self) -> str:
        """The kind of device in use, and why."""
        return f"{self._directory.device_kind} ({self._directory.device_reason})"

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Why records or payloads were passed over by the newest look at the files; one line each."""
        return tuple(self._passed_over)

    # --- records -----------------------------------------------------------------------------------------------------

    def newest(self) -> Record | None:
        """The record of the newest checkpoint, None when there is none. After opening its payload is not verified yet."""
        records = self.records()
        return records[0] if records else None

    def records(self) -> list[Record]:
        """The records of the checkpoints that are kept, newest first."""
        self._check_open()
        if self._live is not None:
            return self._live.kept()
        if not self._writable:
            self._layout, self._was_marked = read_header(self._directory)  # the writer may have grown it
            self._scan = self._look()
        return self._scan.in_order()[: self.keep]

    def _look(self) -> Scan:
        scan = Scan(self._layout, self._devices, strict_io=self._writable)
        self._passed_over = scan.passed_over
        return scan

    # --- payloads ----------------------------------------------------------------------------------------------------

    def read(
        self,
        record: Record | None = None,
        *,
        step: int | None = None,
        into: Payload | None = None,
        strict: bool = False,
    ) -> Payload:
        """The payload of a checkpoint, every byte verified: of `record`, or the newest whole one (of `step`).

        When the newest is damaged the next older one is returned, and `passed_over` says why; `strict=True` raises
        Damaged instead. `into` is uint8 memory to fill; its front is returned (page-aligned memory saves a copy).
        Reading from a store is what makes later saves continue its run. Raises Damaged, NothingUsable, NoStore (nothing
        was ever saved here, or not that step).
        """
        return self.read_with_record(record, step=step, into=into, strict=strict)[1]

    def read_with_record(
        self,
        record: Record | None = None,
        *,
        step: int | None = None,
        into: Payload | None = None,
        strict: bool = False,
    ) -> tuple[Record, Payload]:
        """As `read`, and the record that was found whole."""
        self._check_open()
        if record is not None:
            return record, self._payload(record, into)
        if step is None and self._live is None and self._writable:
            return self._read_after_opening(into, strict)
        looks = 0
        while True:
            candidates = [each for each in self.records() if step is None or each.step == step]
            if not candidates:
                raise self._nothing(step)
            found, failures = self._first_whole(candidates, into)
            looks += 1
            if failures and self._may_have_moved(looks):
                continue
            self._passed_over.extend(failures)
            if found is None or (failures and strict):
                message = failures[0] if strict or step is not None else nothing_usable_message(self._passed_over)
                raise (Damaged if strict or step is not None else NothingUsable)(message)
            return found

    def _read_after_opening(self, into: Payload | None, strict: bool) -> tuple[Record, Payload]:
        """The first read of a writer runs the survey; the payload is read once."""
        found = self._scan.newest_whole(into)
        if found is None:
            raise self._nothing(None)
        if strict and self._passed_over:
            raise Damaged(self._passed_over[0])
        return found

    def _first_whole(
        self, candidates: list[Record], into: Payload | None
    ) -> tuple[tuple[Record, Payload] | None, list[str]]:
        failures: list[str] = []
        for candidate in candidates:
            try:
                return (candidate, self._payload(candidate, into)), failures
            except (Damaged, OSError) as reason:
                failures.append(str(reason))
        return None, failures

    def _may_have_moved(self, looks: int) -> bool:
        """Whether a mismatch may come from a writer that used the slot again meanwhile (V2)."""
        if self._live is not None:
            return looks < _LOOKS_AS_THE_WRITER
        if looks < _LOOKS_BESIDE_A_WRITER and self._directory.writer_alive():
            time.sleep(0.001 * looks)
            return True
        return False

    def _payload(self, record: Record, into: Payload | None) -> Payload:
        payload = payload_memory(record) if into is None else into[: record.payload_bytes]
        if payload.size < record.payload_bytes:
            raise StoreError(f"`into` has {payload.size} bytes, step {record.step} needs {record.payload_bytes}")
        device = self._devices[record.slot]
        if device is None:
            raise Damaged(f"step {record.step}: the file {slot_name(record.slot)} is missing")
        read_payload(device, record, payload)
        return payload

    def _nothing(self, step: int | None) -> StoreError:
        steps = sorted({record.step for record in self.records()})
        if step is not None and steps:
            return NoStore(f"no checkpoint of step {step} in {self.path}: it holds steps {steps}")
        if self.marked:
            return NothingUsable(nothing_usable_message(self._passed_over))
        return NoStore(f"nothing was ever saved into the store at {self.path}")

    @property
    def marked(self) -> bool:
        """Whether this store ever acknowledged a save: a store without one may start afresh."""
        return self._was_marked or read_header(self._directory)[1]

    def has_writer(self) -> bool:
        """Whether a writer is at work, in any process."""
        return self._directory.writer_alive()

    # --- all of it ---------------------------------------------------------------------------------------------------

    def verify(self) -> list[SlotReport]:
        """Read every byte of every slot and say what is in it."""
        self._check_open()
        scan = Scan(self._layout, self._devices, strict_io=False)
        kept = {record.slot for record in scan.in_order()[: self.keep]}
        reports = []
        for slot, record in enumerate(scan.records):
            reason = scan.reasons.get(slot)
            if reason is not None:
                reports.append(SlotReport(slot, "damaged", reason, None))
            elif record is None:
                reports.append(SlotReport(slot, "empty", "", None))
            else:
                reports.append(self._verify_payload(record, slot in kept))
        return reports

    def _verify_payload(self, record: Record, is_kept: bool) -> SlotReport:
        try:
            self._payload(record, None)
        except (Damaged, OSError) as reason:
            return SlotReport(record.slot, "damaged" if is_kept else "leftover", str(reason), record)
        return SlotReport(record.slot, "whole" if is_kept else "leftover", "", record)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store at {self.path} is closed: open it again")
        if os.getpid() != self._process:
            raise StoreClosed(f"the store at {self.path} belongs to process {self._process}: open it in this one")
