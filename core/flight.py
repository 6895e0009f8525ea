"""One save under way: the driver of the save program. Checked by crash and fault tests; the program itself by `crashsim`.

    caller's thread:  begin ── push ── push ── ... ── seal ──> returns; the buffers are copied
    writer threads:            write ── write ── ... ── write ── (last one) persist, record, persist, publish

F1 copied-at-push   `push` returns when the bytes are in staging memory, digested in the same pass; the caller may change
                    its own memory then
F2 joined-first     the program goes on after WRITE_PAYLOAD only when no write of this save is outstanding
F3 first-error      the first failure is the one reported; later steps of the save are not tried
F4 one-at-a-time    the program is resumed by one thread at a time: first the caller, then whoever brings the count of
                    outstanding writes to zero
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import steps
from .atomics import compare_swap, fetch_add, load
from .cells import KEPT, MY_SEQUENCE, MY_SLOT, MY_TAG, OUTCOME, ROOT, STATUS, new_mine
from .digest import copy_digest
from .errors import StoreClosed
from .layout import check_fits
from .record import Record
from .rules import BROKEN, DONE, FAILED, OVERTAKEN, PENDING, REFUSED, align_up, chunk_offset, is_overtaken, outcome_of
from .save import save
from .statistics import BLOCKED_NS, WRITTEN
from .ticket import Ticket

if TYPE_CHECKING:
    from .engine import Engine


class Flight:
    """Drives one save of `engine` from its first step to its last."""

    def __init__(self, engine: Engine, ticket: Ticket, meta: bytes) -> None:
        """Prepare; nothing is acquired yet."""
        self.engine = engine
        self.ticket = ticket
        self.error: BaseException | None = None
        self.has_written = False
        self.is_told = False
        self.is_pushed_by_hand = False
        self.is_sealed = False
        self._meta = meta
        self._started_ns = 0
        self._status = DONE
        self._digests: list[int] = []
        self._buffer = -1
        self._filled = 0
        self.payload_bytes = 0
        self._mine = new_mine()
        self._outstanding = np.ones(1, np.int64)  # one for the caller, until it seals
        self.layout = layout = engine.layout
        self._program = save(engine.cells, self._mine, engine.words, layout.keep, int(layout.persists == 1))

    @property
    def tag(self) -> int:
        """Sequence and slot."""
        return int(self._mine[MY_TAG])

    @property
    def is_open(self) -> bool:
        """Whether more payload is of any use."""
        return self._status == DONE and not self.ticket.done

    # --- the caller's thread -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Take a sequence and a slot."""
        self._started_ns = time.time_ns()
        self._drive()

    def push(self, data: NDArray[np.uint8], check: Callable[[], None]) -> None:
        """Copy bytes into staging and send full chunks to the writers (F1). Waits for staging memory; `check` as there."""
        check_fits(self.payload_bytes + data.size, self.layout)
        offset = 0
        while offset < data.size and self.is_open:
            if self._buffer < 0:
                began = time.perf_counter_ns()
                self._buffer = self.engine.arena.acquire(self.ticket.sequence, check)
                self.engine.counters.add(BLOCKED_NS, time.perf_counter_ns() - began)
                self._filled = 0
                self._digests.append(0)
            buffer = self.engine.arena.buffer(self._buffer)[: self.layout.chunk_bytes]
            count = min(data.size - offset, buffer.size - self._filled)
            piece = buffer[self._filled : self._filled + count]
            self._digests[-1] = copy_digest(data[offset : offset + count], piece, self._digests[-1])
            self._filled += count
            self.payload_bytes += count
            offset += count
            if self._filled == buffer.size:
                self._send()
                check()

    def seal(self) -> None:
        """The payload is complete. Harmless a second time."""
        if self.is_sealed or self.ticket.done:
            return
        self.is_sealed = True
        if self._buffer >= 0:
            self._send()
        if fetch_add(self._outstanding, 0, -1) == 1 and not self.ticket.done:
            self.engine.writers.submit(self.ticket.sequence, self._drive)

    def give_up(self, error: BaseException, *, is_told: bool) -> None:
        """The payload will not be completed; `is_told` when the producer knows, by raising that very exception."""
        self._stop(BROKEN, error)
        self.is_told = is_told
        with suppress(StoreClosed):  # then `close` ends it
            self.seal()

    def leave(self, error: BaseException) -> int:
        """The store is being closed and nobody finishes this one: its pushes come to nothing; returns how it ends."""
        self._stop(BROKEN, error)
        return outcome_of(self._status)

    def refuse(self) -> None:
        """Give way to a younger save (policy `replace`); whatever is queued comes back at once. Not when all was written.

        Counted among the outstanding writes meanwhile, so that the program does not go on to the record.
        """
        count = load(self._outstanding, 0)
        while count > 0 and (found := compare_swap(self._outstanding, 0, count, count + 1)) != count:
            count = found
        if count == 0:
            self.has_written = True
            return
        self._stop(REFUSED, None)
        for work in self.engine.writers.take_back(self.ticket.sequence):
            work()
        if fetch_add(self._outstanding, 0, -1) == 1:
            self._drive()

    def _send(self) -> None:
        index, buffer, filled = len(self._digests) - 1, self._buffer, self._filled
        self._buffer = -1
        if self._status != DONE:
            self.engine.arena.release(buffer)
            return
        fetch_add(self._outstanding, 0, 1)
        self.engine.writers.submit(self.ticket.sequence, lambda: self._write_chunk(index, buffer, filled))

    # --- the writer threads ------------------------------------------------------------------------------------------

    def _write_chunk(self, index: int, buffer: int, filled: int) -> None:
        layout = self.layout
        try:
            if self._status == DONE and is_overtaken(self._oldest_kept(), self.tag):
                self._stop(OVERTAKEN, None)
            if self._status == DONE:
                self.has_written = True
                padded = self.engine.arena.buffer(buffer)[: align_up(filled)]
                padded[filled:] = 0
                offset = chunk_offset(layout.area_bytes, layout.chunk_bytes, index)
                self.engine.devices[self._slot].write(offset, padded)
                self.engine.counters.add(WRITTEN, padded.size)
        except BaseException as error:  # whatever it was, the chunk may not be there
            self._stop(BROKEN, error)
        finally:
            self.engine.arena.release(buffer)
            if fetch_add(self._outstanding, 0, -1) == 1:  # F2: this was the last one
                self._drive()

    def _oldest_kept(self) -> int:
        keep = self.layout.keep
        return load(self.engine.cells, ROOT if keep == 1 else KEPT + keep - 2)

    # --- the program -------------------------------------------------------------------------------------------------

    @property
    def _slot(self) -> int:
        return int(self._mine[MY_SLOT])

    def _stop(self, status: int, error: BaseException | None) -> None:
        if self._status == DONE:  # F3
            self.error = error
            self._status = status

    def _drive(self) -> None:
        """Resume the program until it asks for the payload or ends (F4)."""
        self._mine[STATUS] = self._status
        try:
            for step in self._program:
                if step == steps.STEP:
                    continue
                if step == steps.WRITE_PAYLOAD:
                    return
                self._perform(step)
                self._mine[STATUS] = self._status
        except BaseException as mistake:  # an assertion of ours: the ticket must not hang on it
            self.error = mistake
            self._mine[OUTCOME] = FAILED
        assert self._mine[OUTCOME] != PENDING
        self.ticket.sequence = int(self._mine[MY_SEQUENCE])
        self.engine.finished(self, int(self._mine[OUTCOME]))

    def _perform(self, step: int) -> None:
        engine = self.engine
        try:
            if step == steps.WAIT:
                time.sleep(0)
            elif step == steps.ACQUIRED:
                self.ticket.sequence = int(self._mine[MY_SEQUENCE])
                engine.prepare_slot(self._slot)
            elif step == steps.WRITE_RECORD:
                engine.write_record(self._record())
            elif step == steps.ACKNOWLEDGE:
                record = engine.records[self._slot]
                assert record is not None
                self.ticket.acknowledge(record)
            else:
                engine.perform(step, self._slot)
        except BaseException as error:  # the program releases or quarantines the slot; dropping it here would leak one
            self._stop(BROKEN, error)

    def _record(self) -> Record:
        layout = self.layout
        return Record(
            sequence=self.ticket.sequence,
            slot=self._slot,
            step=self.ticket.step,
            store=layout.store,
            run=self.engine.run,
            payload_bytes=self.payload_bytes,
            chunk_bytes=layout.chunk_bytes,
            meta=self._meta,
            digests=tuple(self._digests),
            saved_at_ns=self._started_ns,
            payload_offset=layout.area_bytes,
        )
