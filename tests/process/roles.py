"""What the children of the nursery do: write and die, judge what the dead have left, read beside the living."""

from __future__ import annotations

import contextlib
import errno
import os
import signal

from lastgood.core import NoStore, Record, SaveFailed, Store, StoreError, Ticket, steps
from lastgood.core.flight import Flight
from lastgood.core.rules import BROKEN
from tests.process.ledger import Ledger
from tests.process.moments import Moments
from tests.process.payloads import PAGE, assert_is_payload, payload_of
from tests.threads.accounting import assert_at_rest

ROOM = 10_000
IN_FLIGHT = 3
KEEP = 2
FAILING_STEP = 4


def create(path: str, device: str) -> Store:
    """A small store: payloads of two or three chunks."""
    return Store.create(path, slot_bytes=ROOM, chunk_bytes=PAGE, in_flight=IN_FLIGHT, keep=KEEP, device=device)


def save(store: Store, step: int) -> Ticket:
    """One save, whatever befell an earlier one."""
    try:
        return store.save(payload_of(step, ROOM), step=step)
    except SaveFailed as failure:
        assert failure.ticket is not None
        return failure.ticket


def can_be_direct(path: str) -> bool:
    """Whether O_DIRECT works here."""
    try:
        create(path, "direct").close()
    except StoreError:
        return False
    return True


# --- writing ---------------------------------------------------------------------------------------------------------


def scripted(path: str, device: str, ledger: str, last: int, torn: bool) -> list[int]:
    """Create, save alone and together, lose a record to the disk, use its slot again, close, come back, save on.

    Returns the number of moments, and which of them are writes.
    """
    _fail_the_record_of(FAILING_STEP)
    moments = Moments(last, torn)
    moments.install()
    Ledger(ledger).note_acknowledgements()
    store = create(path, device)
    save(store, 1).wait()
    for ticket in [save(store, step) for step in (2, 3, FAILING_STEP)]:
        with contextlib.suppress(SaveFailed):
            ticket.wait()
    for ticket in [save(store, step) for step in (5, 6, 7)]:
        ticket.wait()
    store.close()
    with Store.open(path, device=device) as store:
        assert store.read_with_record()[0].step == 7
        for ticket in [save(store, step) for step in (8, 9)]:
            ticket.wait()
    return [moments.count, *moments.writes]


def _fail_the_record_of(step: int) -> None:
    """The record of this training step is written, and its persist fails."""
    perform = Flight._perform

    def failing(flight: Flight, asked: int) -> None:
        if asked == steps.PERSIST_RECORD and flight.ticket.step == step:
            flight._stop(BROKEN, OSError(errno.EIO, "the disk is gone"))
        else:
            perform(flight, asked)

    Flight._perform = failing  # type: ignore[method-assign]


def continuous(path: str, device: str, ledger: str, keep: int | None = None) -> None:
    """Save on from the newest checkpoint for ever, several saves in flight; `keep` shares the slots anew."""
    Ledger(ledger).note_acknowledgements()
    try:
        store = Store.open(path, device=device, keep=keep)
    except NoStore:
        store = create(path, device)
    found = look(store)
    step = found.step if found is not None else 0
    while True:
        step += 1
        save(store, step)


# --- judging ---------------------------------------------------------------------------------------------------------


def look(store: Store) -> Record | None:
    """The newest checkpoint that is found, right to the last byte; None when nothing was ever saved."""
    try:
        record, payload = store.read_with_record()
    except NoStore:
        assert not store.marked
        return None
    assert_is_payload(payload, record.step, ROOM)
    return record


def judge(path: str, device: str, use: bool = True) -> list[int]:
    """In a fresh process: sequence and step of what is found; with `use`, the store must also be as good as new."""
    try:
        with Store.open(path, read_only=True, device=device) as reader:
            seen = look(reader)
    except NoStore:
        create(path, device).close()
        seen = None
    with Store.open(path, device=device) as store:
        found = look(store)
        assert found == seen, "a reader and a writer find the same checkpoint"
        if use:
            _assert_usable(store, found)
    return [found.sequence, found.step] if found is not None else [0, 0]


def _assert_usable(store: Store, found: Record | None) -> None:
    """`monotone` and `no-leak`: every slot takes new saves, their sequences go on above what was found."""
    first = 1000
    count = 2 * (IN_FLIGHT + KEEP)
    tickets = [save(store, first + number) for number in range(count)]
    for ticket in tickets:
        ticket.wait(60)
    sequences = [found.sequence if found is not None else 0, *(ticket.sequence for ticket in tickets)]
    assert sequences == sorted(set(sequences)), f"monotone: {sequences}"
    assert_at_rest(store)
    newest = store.newest()
    assert newest is not None
    assert newest.step == first + count - 1
    assert look(store) == newest
    assert len(store.records()) == store.keep


# --- reading beside a writer -----------------------------------------------------------------------------------------


def read_on(path: str, device: str, ledger: str, count: int) -> int:
    """Read again and again; each time at least what was acknowledged before. Returns how many different steps."""
    board = Ledger(ledger)
    sequence = 0
    different = set()
    store = Store.open(path, read_only=True, device=device)
    for number in range(count):
        if number % 50 == 49:
            store.close()
            store = Store.open(path, read_only=True, device=device)
        floor = board.newest_step()
        record, payload = store.read_with_record()
        assert_is_payload(payload, record.step, ROOM)
        assert record.step >= floor, f"newest-survives: read step {record.step}, {floor} was acknowledged before"
        assert record.sequence >= sequence, f"monotone: sequence {record.sequence} was read after {sequence}"
        sequence = record.sequence
        different.add(record.step)
    store.close()
    return len(different)


# --- holding the lock ------------------------------------------------------------------------------------------------


def hold(path: str, device: str, orphan: str) -> None:
    """Open for writing and stay; a forked child stays too, and says so in the file `orphan`."""
    Store.open(path, device=device)
    if os.fork() == 0:
        with open(f"{orphan}.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(f"{orphan}.new", orphan)
    signal.pause()


def try_to_write(path: str, device: str) -> str:
    """Open for writing: empty when it worked, else what was said."""
    try:
        Store.open(path, device=device).close()
    except StoreError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return ""
