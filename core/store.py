"""The store: the public face of the persistence core.

    create / open ──> save ... save ──> close          one writer, held by a lock
              └─────> newest, records, read, verify    any number of readers beside it, `read_only=True`

The promises that hold here, and where each is kept:

newest-survives   save program S1, S2; recovery R1, R3          no-leak    save program S5, S6; engine E1
never-wrong       save program S1; digests on every read        loud       ticket; `save` and `close` tell of failures
monotone          save program S3; recovery R5                  no-harm    S4, S6; recovery R3
no-reuse          save program S4                               bounded    arena A1; all files reserved at creation
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from . import at_exit
from .cells import SEQUENCE
from .creation import close_all, create_store, make_missing, open_for_writing, read_header, received
from .directory import Directory, Lock
from .engine import Engine
from .errors import OtherRun, StoreError, WrongGeometry
from .flight import Flight
from .incoming import as_meta, as_pieces, whole_number
from .interrupt import Shield
from .layout import Header, Layout, check_fits
from .options import Options
from .reader import Reader
from .ready import make_engine_ready
from .record import Record
from .rules import SEQUENCE_LIMIT
from .saving import Saving
from .statistics import Statistics
from .ticket import Ticket


class Store(Reader):
    """A directory of checkpoints. Make one with `Store.create` or `Store.open`; use it in one process."""

    def __init__(self, directory: Directory, header: Header, lock: Lock | None, options: Options) -> None:
        """Not for callers: use `create` or `open`."""
        self._lock = lock
        self._options = options
        self._run = uuid.uuid4().bytes
        self._may_save = options.new_run
        self._once = threading.Lock()  # only for the first save: who makes the store ready
        self._wanted = options.shares(header.layout)
        super().__init__(directory, header, writable=lock is not None)
        if lock is not None:
            at_exit.watch(self)

    # --- making and opening ------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | Directory,
        *,
        slot_bytes: int,
        in_flight: int = 4,
        keep: int = 2,
        chunk_bytes: int = 4 * 2**20,
        meta_bytes: int = 1024,
        persists: int = 2,
        staging_bytes: int | None = None,
        writers: int = 3,
        overload: str = "block",
        device: str = "auto",
    ) -> Store:
        """Make a store with room for `in_flight + keep` checkpoints of up to `slot_bytes` each, and open it.

        All sizes are in bytes. Every byte it will ever take is reserved now (`total_bytes`), and staging memory is
        `staging_bytes`, by default one checkpoint. `overload` says what a save does when nothing is free: "block"
        waits, "skip" refuses it, "replace" refuses the youngest one that has not begun to write. `persists=1` persists
        payload and record together: one wait less per save, and recovery relies on the payload digests.

        Raises StoreExists, NotAStore, StoreInUse, WrongGeometry, or OSError (ENOSPC names the bytes needed).
        """
        options = Options(staging_bytes, writers, overload, new_run=True)
        sizes = (slot_bytes, chunk_bytes, meta_bytes, in_flight, keep, persists)
        layout = Layout(uuid.uuid4().bytes, *sizes, time.time_ns()).checked()
        directory = path if isinstance(path, Directory) else Directory(path, device)
        return create_store(directory, layout, lambda header, lock: cls(directory, header, lock, options))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | Directory,
        *,
        read_only: bool = False,
        new_run: bool = False,
        in_flight: int | None = None,
        keep: int | None = None,
        staging_bytes: int | None = None,
        writers: int = 3,
        overload: str = "block",
        device: str = "auto",
    ) -> Store:
        """Open the store at `path`, for writing or `read_only` (no lock, nothing written, also beside a writer).

        `in_flight` and `keep` share the slots that there are in another way from the first save on, and after reopening:
        give either, the other gets the rest.

        A save into a store that holds checkpoints continues their run, so one of them must be read first, or
        `new_run=True` given. Only records are read here; the newest payload is verified by the first read, or before
        the first slot is handed out.

        Raises NoStore, NotAStore, StoreInUse (naming the holder), WrongGeometry, Damaged, FormatTooNew, or OSError.
        """
        options = Options(staging_bytes, writers, overload, new_run, in_flight, keep)
        directory = path if isinstance(path, Directory) else Directory(path, device)
        header = read_header(directory)
        if read_only:
            return received(lambda undo: cls(directory, header, None, options))
        return open_for_writing(directory, lambda header, lock: cls(directory, header, lock, options))

    def __repr__(self) -> str:
        return f"Store({self.path!r}, slot_bytes={self.slot_bytes}, in_flight={self.in_flight}, keep={self.keep})"

    @property
    def staging_bytes(self) -> int:
        """Bytes of staging memory that saves use; 0 when read-only."""
        return self._options.buffer_count(self._layout) * self._layout.chunk_bytes if self._writable else 0

    @property
    def run(self) -> str:
        """The run id that saves are made under, in hexadecimal; empty when read-only."""
        return self._run.hex() if self._writable else ""

    def statistics(self) -> Statistics:
        """What this object has done so far."""
        return self._engine.counters.snapshot() if self._engine is not None else Statistics(0, 0, 0, 0, 0, 0.0)

    def continue_run(self) -> None:
        """Let saves go on with the run of the newest checkpoint without reading it."""
        record = self.newest()
        if record is not None:
            self._was_read(record)

    def _was_read(self, record: Record) -> None:
        if self._writable and not self._may_save:
            self._run, self._may_save = record.run, True

    # --- saving ------------------------------------------------------------------------------------------------------

    def save(self, buffers: Any, *, step: int, meta: bytes = b"", total_bytes: int | None = None) -> Ticket:
        """Start saving a checkpoint; returns its ticket once the buffers are copied, so they may change then (not before:
        what was written would be refused when it is read).

        `buffers` is one or many bytes-like objects or C-contiguous numpy arrays, saved one after the other. An iterator
        is consumed before this returns, while earlier parts are being written already; `total_bytes` says beforehand how
        much it will bring, where that is known. `step` is the training step; saving a step again is simply a newer save
        of it. `meta` is a few bytes kept in the record.

        Raises TypeError or StoreError for what cannot be saved, before anything is written; SaveFailed when an *earlier*
        save failed since the last call: this save was started all the same, its ticket is the exception's `ticket`.
        """
        pieces, total = as_pieces(buffers)
        with Shield() as shield:
            flight = self._begin(step, meta, total if total is not None else total_bytes, shield)
            if not flight.ticket.done:
                try:
                    for piece in pieces if total is not None else shield.lowered_for(pieces):
                        flight.push(piece, shield.check)
                        del piece
                    flight.seal()
                except BaseException as error:
                    shield.up()
                    flight.give_up(error, is_told=True)
                    raise
            flight.engine.tell_of_failures(flight.ticket)
        return flight.ticket

    def begin(self, *, step: int, meta: bytes = b"", total_bytes: int | None = None) -> Saving:
        """Begin a save whose payload will be pushed, by this thread or another; see `save` for the arguments.

        Its place in the order of saves is taken now. One thread that pushes into several by turns needs `staging_bytes`
        of a chunk for each: memory that only it can give back it would wait for without end. Raises as `save` does.
        """
        with Shield() as shield:
            flight = self._begin(step, meta, total_bytes, shield)
            flight.is_pushed_by_hand = True
            return Saving(flight)

    def _begin(self, step: int, meta: bytes, total: int | None, shield: Shield) -> Flight:
        """A flight that has its place and its slot; one that has ended when the overload policy refused it."""
        step = whole_number("step", step)
        content = as_meta(meta, self._layout.meta_bytes)
        total = whole_number("total_bytes", total or 0)
        self._check_writable()
        check_fits(total, self._layout)
        if not -(2**63) <= step < 2**63:
            raise StoreError(f"step={step}: give a step that fits into 64 bits")
        engine = self._started()
        if engine.cells[SEQUENCE] > SEQUENCE_LIMIT - 2**20:
            raise StoreError(f"{self.path} has used up its sequences: create a new store")
        flight = engine.admit(step, content, total, shield.check)
        if not flight.ticket.done:
            flight.begin()
        return flight

    def _started(self) -> Engine:
        """The engine; made, and the store made ready for savers, when it is first asked for."""
        with self._once:
            self._check_open()  # again: another thread may have closed it
            if not self._may_save and self._scan.in_order():
                raise OtherRun(
                    f"{self.path} holds checkpoints of another run: restore from it first, or give new_run=True"
                )
            if self._engine is None:
                self._engine = self._ready_engine()
                self._may_save = True
        return self._engine

    def _ready_engine(self) -> Engine:
        if self._scan.unreadable:  # a second look may do better: it was perhaps the network, or memory
            self._look(self._header_now())
        devices = make_missing(self._directory, self._layout, self._devices)
        self._directory.persist()  # as R3: a name may be in the cache only, of a creation that was killed
        engine = Engine(self._wanted, self._run, self._directory, devices, self._options)
        try:
            make_engine_ready(engine, self._scan, marked=self._was_marked, kept=self.keep)
            if self._wanted != self._layout:  # readers count on what is kept, so not before it is ready
                self._relay(engine, self._wanted)
        except BaseException:
            engine.close()
            raise
        return engine

    def _check_writable(self) -> None:
        self._check_open()
        if not self._writable:
            raise StoreError(f"{self.path} was opened read-only: open it without read_only to save or grow")

    def grow(self, slot_bytes: int) -> None:
        """Give every slot room for payloads of `slot_bytes`, now and after reopening.

        Waits for the saves in flight, also those that were begun by hand and are to be finished. Kept checkpoints are not
        touched; a slot file is extended when it is next acquired, and that save fails, loudly, when the room has gone by
        then. Raises WrongGeometry for a smaller size, OSError where there is no room now: the store is as before.
        """
        self._check_writable()
        engine = self._started()
        with Shield() as shield, engine.quiet(shield.check):  # one at a time: another may have grown it meanwhile
            layout = replace(self._layout, slot_bytes=slot_bytes).checked()
            if layout.slot_bytes < self.slot_bytes:
                raise WrongGeometry(f"{self.path} has slots of {self.slot_bytes:,} bytes: a store only grows")
            self._directory.require_room(layout.total_bytes - self.total_bytes, layout.file_bytes)
            self._relay(engine, layout)

    def _relay(self, engine: Engine, layout: Layout) -> None:
        """Go on with other sizes: a new header, durably; `engine` is quiet."""
        engine.relay(layout, marked=self.marked)
        self._layout = layout

    def close(self) -> None:
        """Wait for the saves in flight and give everything back. Harmless when closed already, and in a forked child.

        Raises SaveFailed when a save failed that `save` has not told of. While another exception is being handled that
        one stays in front: the failure is added to it as a note.
        """
        if self._closed or os.getpid() != self._process:
            return
        handled = sys.exc_info()[1]
        with Shield() as shield:
            if self._engine is not None:
                self._engine.wind_down(shield.check)  # interrupted here, the store stays open, locked, watched at exit
            with self._once:
                if self._engine is not None:  # made meanwhile, by a first save in another thread
                    self._engine.wind_down(shield.check)
                self._give_back()
            if self._engine is not None:
                self._engine.tell_at_close(handled)

    def _give_back(self) -> None:
        if self._closed:  # by another thread meanwhile
            return
        self._closed = True
        at_exit.forget(self)
        with ExitStack() as last:  # from below, each whatever became of the one before
            if self._lock is not None:
                last.callback(self._lock.release)
            last.callback(close_all, self._devices)
            if self._engine is not None:
                last.callback(self._engine.close)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close; the block's own exception stays in front."""
        self.close()
