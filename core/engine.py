"""What the saves of one open store share: cells, slot files, staging memory, writer threads, admission.

E1 admitted-first   at most `in_flight` saves hold a permit, and a permit is given back only after the save's slot is, so
                    a save that was admitted always finds a slot (promise `no-reuse` needs no waiting inside the program)
E2 told-once        every failed save waits in `failures` until the next save, or close, has told of it (promise `loud`)

Admission, like waiting for staging memory, puts the caller to sleep until the device has caught up; that, and the list of
who is in flight, is what its lock is for. From begin to publish a save program takes no lock of ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from . import steps
from .arena import Arena
from .at_exit import tell
from .atomics import load
from .cells import KEPT, ROOT, new_cells
from .device import Device, aligned_buffer
from .directory import Directory
from .errors import SaveFailed, StoreClosed
from .files import naming
from .flight import Flight
from .interrupt import WAKE_SECONDS
from .layout import HEADER, MARK_OFFSET, Layout, encode_header, encode_mark
from .options import Options
from .record import Record, encode, encode_empty
from .rules import FAILED, NO_TAG, PAGE_BYTES, SKIPPED, sequence_of, slot_of, words_for
from .statistics import BLOCKED_NS, Counters
from .ticket import Ticket
from .writers import Writers


class Engine:
    """The moving parts behind a writable store."""

    def __init__(
        self, layout: Layout, run: bytes, directory: Directory, devices: list[Device], options: Options
    ) -> None:
        """Over the open slot files, which stay the caller's; nothing is written yet. `run` is what records will say."""
        self.layout = layout
        self.run = run
        self.cells = new_cells()
        self.words = words_for(layout.slot_count)
        self.records: list[Record | None] = [None] * layout.slot_count
        self.counters = Counters()
        self._options = options
        self._directory = directory
        self.devices = devices
        self._areas = [aligned_buffer(layout.area_bytes) for _ in devices]
        self._roomy: set[int] = set()
        self._flights: list[Flight] = []
        self.failures: list[Ticket] = []
        self._is_closing = False
        self._is_quiet = False
        self._landed = threading.Condition(threading.Lock())
        self.arena = self._staging_memory(layout)
        self._header = directory.open(HEADER)
        try:
            with naming(directory.path):
                self.writers = Writers(options.writers, layout.store.hex()[:8])
        except BaseException:
            self._header.close()
            raise

    def _staging_memory(self, layout: Layout) -> Arena:
        with naming(self._directory.path):
            return self._options.arena(layout)

    # --- a save's way in and out -------------------------------------------------------------------------------------

    def admit(self, step: int, meta: bytes, payload_bytes: int, check: Callable[[], None]) -> Flight:
        """A flight that holds a permit, waiting as the overload policy says; one that has ended when the policy refuses it.

        `check` is called now and then while waiting, where an exception loses nothing.
        """
        began = time.perf_counter_ns()
        flight = Flight(self, Ticket(step, self.newest), meta)
        with self._landed:
            while self._is_full(payload_bytes):
                if self._is_closing:
                    raise StoreClosed("the store was closed while this save waited: open it again")
                if self._options.overload == "block":
                    self._landed.wait(WAKE_SECONDS)
                elif self._options.overload == "skip" or not self._make_room():
                    self.counters.add(SKIPPED)
                    flight.ticket.conclude(SKIPPED, None)
                    return flight
                check()
            self._flights.append(flight)
        self.counters.add(BLOCKED_NS, time.perf_counter_ns() - began)
        return flight

    def _make_room(self) -> bool:
        """Let the youngest save that has a slot and has not begun to write give way; False when there is none.

        Holds the lock. One that is still on its way to a slot may be emptying it, and must come to its end first.
        """
        gives_way = [
            other for other in self._flights if other.is_open and other.ticket.sequence and not other.has_written
        ]
        leaving = [other for other in self._flights if not other.is_open]
        if leaving:
            self._landed.wait(WAKE_SECONDS)  # one is on its way out already: no second one need go
        elif gives_way:
            self._landed.release()  # its way out goes through `finished`
            gives_way[-1].refuse()
            self._landed.acquire()
        return bool(gives_way or leaving)

    def _is_full(self, payload_bytes: int) -> bool:
        if self._is_closing or self._is_quiet or len(self._flights) == self.layout.in_flight:
            return True
        return self._options.overload != "block" and self.arena.free_bytes < min(payload_bytes, self.arena.total_bytes)

    def finished(self, flight: Flight, outcome: int) -> None:
        """A flight has ended: its slot is back or published, so its permit may go to the next (E1)."""
        self.counters.add(outcome)
        with self._landed:
            if outcome == FAILED and not flight.is_told:
                self.failures.append(flight.ticket)
            self._flights.remove(flight)
            flight.ticket.conclude(outcome, flight.error)
            self._landed.notify_all()

    def tell_of_failures(self, ticket: Ticket | None) -> None:
        """Raise SaveFailed for the failures nobody was told of yet (E2); `ticket` is that of the save just started, whose
        own failure, should it have ended already, is left for the next to be told."""
        with self._landed:
            failures = [each for each in self.failures if each is not ticket]
            self.failures = [each for each in self.failures if each is ticket]
        if failures:
            failures.sort(key=lambda failed: failed.sequence)  # the first cause first, whichever save ended first
            error = failures[0].failure()
            if len(failures) > 1:
                error.args = (f"{error} (and {len(failures) - 1} more saves failed)",)
            error.ticket = ticket
            raise error

    def tell_at_close(self, handled: BaseException | None) -> None:
        """The same at the end of all; while `handled` is being handled that one stays in front, with a note."""
        try:
            self.tell_of_failures(None)
        except SaveFailed as failure:
            if handled is None:
                raise
            handled.add_note(f"lastgood: {failure}")
            tell(failure)

    def wind_down(self, check: Callable[[], None]) -> None:
        """Admit no more saves, wait until none is in flight and nobody is in `quiet`. When `check` raises, admit again.

        Saves that were begun by hand and not finished are not waited for: who should finish them is perhaps closing.
        """
        with self._landed:
            self._is_closing = True
            self._landed.notify_all()
            try:
                while self._is_quiet or len(self._flights) > len(self._left()):
                    self._landed.wait(WAKE_SECONDS)
                    check()
            except BaseException:
                self._is_closing = False
                raise

    def _left(self) -> list[Flight]:
        return [flight for flight in self._flights if flight.is_pushed_by_hand and not flight.is_sealed]

    @contextmanager
    def quiet(self, check: Callable[[], None]) -> Iterator[None]:
        """No save is in flight and none is admitted inside; `check` as in `admit`. Raises StoreClosed."""
        with self._landed:
            while self._flights or self._is_quiet or self._is_closing:
                if self._is_closing:
                    raise StoreClosed("the store was closed meanwhile: open it again")
                self._landed.wait(WAKE_SECONDS)
                check()
            self._is_quiet = True
        try:
            yield
        finally:
            with self._landed:
                self._is_quiet = False
                self._landed.notify_all()

    def relay(self, layout: Layout, *, marked: bool) -> None:
        """Go on with other sizes, before the first save or inside `quiet`. Slot files grow when they are acquired.

        Memory comes first: once the new header is there nothing may fail any more.
        """
        assert layout.slot_count == len(self.devices)
        assert layout.slot_bytes >= self.layout.slot_bytes
        arena = self.arena if layout.chunk_bytes == self.layout.chunk_bytes else self._staging_memory(layout)
        areas = [aligned_buffer(layout.area_bytes) for _ in self.devices]
        try:
            self._directory.publish(HEADER, encode_header(layout, marked=marked).tobytes())
        finally:  # whichever is there now, also one whose name is not durable yet: that one is to be marked
            header = self._directory.open(HEADER)
            self._header.close()
            self._header = header
        self.arena, self._areas, self.layout = arena, areas, layout

    def newest(self) -> Record | None:
        """The newest published record."""
        return next(iter(self.kept()), None)

    def kept(self) -> list[Record]:
        """The records that the cells name, newest first; cells that move while they are read are read again."""
        while True:
            cells = (ROOT, *range(KEPT, KEPT + self.layout.keep - 1))
            tags = [load(self.cells, cell) for cell in cells]
            records = [self.records[slot_of(tag)] for tag in tags if tag != NO_TAG]
            still = [load(self.cells, cell) for cell in cells]
            kept = {record.sequence: record for record in records if record is not None}
            if tags == still and all(sequence_of(tag) in kept for tag in tags if tag != NO_TAG):
                return [kept[sequence] for sequence in sorted(kept, reverse=True)]

    # --- what the flights' programs ask for --------------------------------------------------------------------------

    def perform(self, step: int, slot: int) -> None:
        """What saving and recovery ask for alike."""
        page = self._areas[slot][:PAGE_BYTES]
        if step in (steps.PERSIST_PAYLOAD, steps.PERSIST_RECORD, steps.PERSIST_EMPTY_RECORD):
            self.devices[slot].persist()
        elif step == steps.WRITE_EMPTY_RECORD:
            page[:] = encode_empty(self.layout.store, slot)
            self.devices[slot].write(0, page)
            self.records[slot] = None
        elif step == steps.WRITE_MARK:
            page[:] = encode_mark(self.layout)
            self._header.write(MARK_OFFSET, page)
        elif step == steps.PERSIST_MARK:
            self._header.persist()

    def prepare_slot(self, slot: int) -> None:
        """Give an acquired slot its full room: it may be short after growth, and a copied one full of holes (SIGBUS)."""
        self._header.size()  # it was removed: nothing could be opened again
        device = self.devices[slot]
        if slot not in self._roomy or device.size() < self.layout.file_bytes:
            device.allocate(self.layout.file_bytes)  # durable with what is written next (D3)
            self._roomy.add(slot)

    def write_record(self, record: Record) -> None:
        """Write a slot's record area and remember the record. In a store that has grown, the area may be a smaller one."""
        area = self._areas[record.slot][: record.payload_offset]
        image = encode(record)
        area[: image.size] = image
        area[image.size :] = 0
        self.devices[record.slot].write(0, area)
        self.records[record.slot] = record

    def close(self) -> None:
        """End the threads, which finish what is queued, and close the header."""
        reason = StoreClosed("the store was closed before it was finished")
        try:
            for flight in self._left():
                flight.leave(reason)
            self.writers.close()
            for flight in list(self._flights):  # left unfinished, or finished when the writers took nothing any more
                self.finished(flight, flight.leave(reason))
        finally:
            self._header.close()
