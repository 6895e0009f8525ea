"""The reading half of a store: how checkpoints are found, verified and handed out.

V1 verified         every payload that is handed out was checked against the digests of its record (`never-wrong`)
V2 beside-a-writer  a reader holds no lock, so a slot may be overwritten while it reads: a mismatch then means look again,
                    and counts as damage only when nothing has moved
V3 explained        when an older checkpoint is returned, `passed_over` says what was wrong with the newer ones

    opened: records read ── first read, or first save: newest payload verified ── saved into: the engine's cells decide
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .creation import close_all, open_missing, read_header
from .device import Device
from .directory import Directory
from .engine import Engine
from .errors import Damaged, NoStore, NothingUsable, StoreClosed, StoreError
from .incoming import whole_number
from .layout import HEADER, Header, slot_name
from .reading import fetch_payload, verified_chunks, verify_payload
from .ready import nothing_usable_message
from .record import Record
from .report import FileReport, report_on
from .scan import Scan

_LOOKS = 100

Payload = NDArray[np.uint8]


class Reader:
    """What can be asked of an open store without changing it."""

    def __init__(self, directory: Directory, header: Header, *, writable: bool) -> None:
        """Open the slot files and read their records. Not for callers: use `Store.open`."""
        directory.choose_device(HEADER, writable=writable)
        self._directory = directory
        self._writable = writable
        self._process = os.getpid()
        self._closed = False
        self._engine: Engine | None = None  # made by the first save
        self._devices: list[Device | None] = [None] * header.layout.slot_count
        try:
            open_missing(directory, self._devices, writable=writable)
            self._look(header)
        except BaseException:
            close_all(self._devices)
            raise

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
        return next(iter(self.records()), None)

    def records(self) -> list[Record]:
        """The records of the checkpoints that are kept, newest first."""
        self._check_open()
        pictures: list[Any] = []
        for _ in range(_LOOKS):
            records = self._seen()
            is_torn = self._scan.reasons and not self._writable  # it may be in the writing
            if self._is_settled(records, self._scan.picture() if is_torn else None, pictures):
                break
        return records

    def _seen(self) -> list[Record]:
        if self._engine is not None:
            return self._engine.kept()
        if not self._writable:
            open_missing(self._directory, self._devices, writable=False)
            self._look(self._header_now())
        return self._scan.in_order()[: self.keep]

    def _header_now(self) -> Header:
        """The header again: a writer may have grown the store. Raises StoreError where another one has taken its place."""
        header = read_header(self._directory)
        if header.layout.store != self._layout.store:
            raise StoreError(f"{self.path} was moved or replaced: another store is there now, open it again")
        return header

    def _look(self, header: Header) -> None:
        self._layout, self._was_marked = header.layout, header.marked
        try:
            self._scan = Scan(header.layout, self._devices, strict_io=self._writable)
        except StoreError as error:
            raise type(error)(f"{self.path}: {error}") from error
        self._passed_over = self._scan.passed_over
        self._passed_over.extend([header.damage] if header.damage else [])

    # --- payloads ----------------------------------------------------------------------------------------------------

    def read(
        self, record: Record | None = None, *, step: int | None = None, into: Any = None, strict: bool = False
    ) -> Payload:
        """The payload of a checkpoint, every byte verified: of `record`, or the newest whole one (of `step`).

        When the newest is damaged the next older one is returned, and `passed_over` says why; `strict=True` raises
        Damaged instead. `into` is uint8 memory to fill; its front is returned (page-aligned memory saves a copy).
        Reading from a store is what makes later saves continue its run. Raises Damaged, NothingUsable, NoStore (nothing
        was ever saved here, or not that step).
        """
        return self.read_with_record(record, step=step, into=into, strict=strict)[1]

    def read_with_record(
        self, record: Record | None = None, *, step: int | None = None, into: Any = None, strict: bool = False
    ) -> tuple[Record, Payload]:
        """As `read`, and the record that was found whole."""
        self._check_open()
        if record is None:
            found = self._find(None if step is None else whole_number("step", step), into, strict)
        else:
            found = record, self._payload(record, into)
        self._was_read(found[0])
        return found

    def _find(self, step: int | None, into: Any, strict: bool) -> tuple[Record, Payload]:
        """The newest whole checkpoint (of `step`) and its payload."""
        if step is None and self._engine is None and self._writable:
            try:  # the survey verifies the newest anyway: what it reads is the answer
                found = self._scan.newest_whole(into)
                if found is None:
                    raise self._nothing(None)
                if strict and self._passed_over:
                    raise Damaged(self._passed_over[0])
                return found
            except StoreError:
                if self._engine is None:
                    self._check_open()
                    raise  # else saves have begun meanwhile in another thread, and used the slot again
        pictures: list[Any] = []
        for _ in range(_LOOKS):
            kept = self.records()
            # Not only those to be kept: when the newest ones are not whole, older leftovers may be.
            usable = kept if self._engine is not None else self._scan.in_order()
            candidates = [each for each in usable if step is None or each.step == step]
            rejected = list(self._passed_over) if self._engine is None else []
            if not candidates:
                raise self._nothing(step)
            found, failures = self._first_whole(candidates, into)
            seen = self._scan.picture() if self._engine is None else kept
            if not self._is_settled(kept, seen if failures else None, pictures):
                continue
            self._passed_over = [*rejected, *failures]
            if strict and self._passed_over:
                raise Damaged(self._passed_over[0])
            if found is None:
                if step is not None:
                    raise Damaged(failures[0])
                raise self._nothing(None, was_published=self._engine is not None)
            return found
        raise StoreError(f"{self.path} is overwritten faster than it can be read: try again, or keep more")

    def chunks(self, record: Record) -> Iterator[tuple[int, Payload]]:
        """A checkpoint in pieces: each chunk's offset in the payload and its verified bytes, the next ones being read
        meanwhile. A piece lies in memory that is used again once the next is asked for.

        For payloads that have no room in memory twice. Raises Damaged in the middle of it, so pieces handed out before
        are of use only once it has come to its end; beside a writer, look at `newest` again then.
        """
        self._check_open()
        device = self._device_of(record)
        name = f"step {record.step} in slot {record.slot}"
        try:
            yield from verified_chunks(
                device, record.payload_offset, record.payload_bytes, record.chunk_bytes, record.digests, name
            )
        except (OSError, Damaged):
            self._check_open()  # it is no damage that another thread has closed the files
            raise
        self._was_read(record)

    def _was_read(self, record: Record) -> None:
        """A checkpoint was read whole; a writer goes on with its run."""

    def _first_whole(self, candidates: list[Record], into: Any) -> tuple[tuple[Record, Payload] | None, list[str]]:
        failures: list[str] = []
        for candidate in candidates:
            try:
                return (candidate, self._payload(candidate, into)), failures
            except (Damaged, OSError) as reason:
                failures.append(str(reason))
        return None, failures

    def _is_settled(self, kept: list[Record], picture: Any, pictures: list[Any]) -> bool:
        """Whether a mismatch cannot come from a writer that uses the slot again meanwhile (V2).

        `picture` is what was seen with it, None without one; `pictures` are those before. Two looks that agree saw damage: a
        slot is used again only once a newer record can be seen.
        """
        if picture is None or picture in pictures[-1:]:
            return True
        pictures.append(picture)
        return not self._has_moved(kept, len(pictures))

    def _has_moved(self, candidates: list[Record], looks: int) -> bool:
        """Whether a writer is at work, or was since these records were seen."""
        self._check_open()  # nor is it damage that another thread has closed the files
        if self._engine is None and self._directory.writer_alive():
            time.sleep(0.001 * looks)
            return True
        return self._seen() != candidates

    def _payload(self, record: Record, into: Any) -> Payload:
        return fetch_payload(self._device_of(record), record, into)

    def _device_of(self, record: Record) -> Device:
        if not isinstance(record, Record):
            raise TypeError(f"{record!r} is no record: give one of records(), or step= to `read`")
        if record.store != self._layout.store:
            raise StoreError(f"the record of step {record.step} belongs to another store than {self.path}")
        device = self._devices[record.slot]
        if device is None:
            raise Damaged(f"step {record.step}: the file {slot_name(record.slot)} is missing")
        return device

    def _nothing(self, step: int | None, *, was_published: bool = False) -> StoreError:
        steps = sorted({record.step for record in self.records()}) if step is not None else []
        if steps:
            return NoStore(f"no checkpoint of step {step} in {self.path}: it holds steps {steps}")
        # What the header said before the records were read, not what it says now: a first save may be on its way.
        if self._was_marked or was_published:
            return NothingUsable(nothing_usable_message(self._passed_over))
        return NoStore(f"nothing was ever saved into the store at {self.path}")

    @property
    def marked(self) -> bool:
        """Whether this store ever acknowledged a save: a store without one may start afresh."""
        return self._was_marked or self._header_now().marked

    def has_writer(self) -> bool:
        """Whether a writer is at work, in any process."""
        return self._directory.writer_alive()

    def verify(self) -> list[FileReport]:
        """Read every byte of every file and say what is in it."""
        self._check_open()
        pictures: list[Any] = []
        for _ in range(_LOOKS):
            header = self._header_now()
            scan = Scan(header.layout, self._devices, strict_io=False)
            kept = scan.in_order()[: header.layout.keep]
            reports = report_on(header, scan, kept, lambda record: verify_payload(self._device_of(record), record))
            is_damaged = any(report.state == "damaged" for report in reports[1:])
            if self._is_settled(kept, scan.picture() if is_damaged else None, pictures):
                break
        return reports

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store at {self.path} is closed: open it again")
        if os.getpid() != self._process:
            raise StoreClosed(f"the store at {self.path} belongs to process {self._process}: open it in this one")
