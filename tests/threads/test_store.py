"""A store used by many threads at once, for a long time: every save ends as it should, and nothing piles up."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from lastgood.core import Record, SaveFailed, Store, StoreClosed, Ticket
from lastgood.core.jit import JIT
from tests.process.payloads import assert_is_payload, payload_of
from tests.threads.accounting import assert_at_rest
from tests.threads.running import together

THREADS = 8
ROOM = 30_000
MEMORY = Path("/dev/shm")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: the threads then meet more often."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="lastgood-test-", dir=MEMORY))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("device", ["auto", "buffered"])
def test_eight_threads_save_at_once(place: Path, device: str) -> None:
    """`never-wrong`, `monotone`, `no-leak`: all tickets end, and what is newest is the newest that was published."""
    rounds = 40 if JIT else 10
    store = Store.create(place / "s", slot_bytes=ROOM, chunk_bytes=4096, in_flight=4, keep=3, device=device)
    watching = threading.Event()

    def save(thread: int) -> list[Ticket]:
        tickets = []
        for number in range(rounds):
            step = 1 + thread * rounds + number
            payload = payload_of(step, ROOM)
            tickets.append(store.save([payload[:100], payload[100:]], step=step))
            payload[:] = 0  # it was copied
            if number % 7 == 0:
                tickets[-1].wait(60)
        return tickets

    def watch() -> list[int]:
        """Beside the savers, through the same object: never a mix, never back."""
        seen = [0]
        while not watching.is_set():
            if store.newest() is not None:
                record, payload = store.read_with_record()
                assert_is_payload(payload, record.step, ROOM)
                assert record.sequence >= seen[-1], "monotone"
                seen.append(record.sequence)
            time.sleep(0)
        return seen

    def save_all() -> list[Ticket]:
        try:
            lists = together([lambda thread=thread: save(thread) for thread in range(THREADS)])  # type: ignore[misc]
        finally:
            watching.set()
        return [ticket for tickets in lists for ticket in tickets]

    tickets, seen = together([save_all, watch])
    records = [ticket.wait(60) for ticket in tickets]
    assert {ticket.outcome for ticket in tickets} <= {"published", "superseded"}
    assert sorted(ticket.sequence for ticket in tickets) == list(range(1, THREADS * rounds + 1))
    for ticket, record in zip(tickets, records, strict=True):
        assert record.sequence >= ticket.sequence
    published = [ticket.sequence for ticket in tickets if ticket.outcome == "published"]
    newest = store.newest()
    assert newest is not None
    assert newest.sequence == max(published)
    assert len(set(seen)) > 5
    assert_at_rest(store)
    by_sequence = {ticket.sequence: ticket.step for ticket in tickets}
    for record in store.records():
        assert record.step == by_sequence[record.sequence]
        assert_is_payload(store.read(record), record.step, ROOM)
    counted = store.statistics()
    assert (counted.saves, counted.published, counted.failed) == (len(tickets), len(published), 0)
    store.close()
    with Store.open(place / "s", device=device) as store:
        record, payload = store.read_with_record()
        assert record == newest
        assert_is_payload(payload, record.step, ROOM)


def test_the_first_reads_and_saves_may_come_from_many_threads(place: Path) -> None:
    """Opening looks at records only; whoever comes first does the rest, and the others wait or do not notice."""
    Store.create(place / "s", slot_bytes=ROOM, chunk_bytes=4096, in_flight=4, keep=2).close()

    def read(store: Store) -> Record:
        record, payload = store.read_with_record()
        assert_is_payload(payload, record.step, ROOM)
        return record

    for generation in range(1, 30):
        with Store.open(place / "s") as store:
            if generation > 1:
                store.continue_run()

            def save(thread: int, store: Store = store, generation: int = generation) -> Ticket:
                step = 10 * generation + thread
                return store.save(payload_of(step, ROOM), step=step)

            works = [lambda thread=thread: save(thread) for thread in range(4)]  # type: ignore[misc]
            if generation > 1:
                works += [lambda store=store: read(store)] * 4  # type: ignore[list-item, misc]
            results = together(works)
            for ticket in results[:4]:
                ticket.wait(60)
            assert_at_rest(store)


def test_closing_while_others_save(place: Path) -> None:
    """Whoever comes too late is told that the store is closed; whoever came in time has a ticket that ends."""
    for number in range(30):
        store = Store.create(place / f"s{number}", slot_bytes=4096, in_flight=2, keep=1)
        began = threading.Event()

        def save(store: Store = store, began: threading.Event = began) -> list[Ticket]:
            tickets: list[Ticket] = []
            while True:
                try:
                    tickets.append(store.save(b"x" * 4096, step=len(tickets)))
                except StoreClosed:
                    return tickets
                began.set()

        def close(store: Store = store, began: threading.Event = began) -> list[Ticket]:
            assert began.wait(60)
            store.close()
            return []

        for tickets in together([save, save, close, close]):
            for ticket in tickets:
                ticket.wait(30)
        Store.open(place / f"s{number}").close()


def test_waiting_from_many_threads(place: Path) -> None:
    """One ticket, many that wait for it: all get the same answer."""
    with Store.create(place / "s", slot_bytes=4096) as store:
        for step in range(20):
            ticket = store.save(b"x" * 4096, step=step)
            records = together([lambda ticket=ticket: ticket.wait(60)] * THREADS)  # type: ignore[misc]
            assert {record.step for record in records} == {step}


def test_failures_in_many_threads_are_each_told_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`loud`, `no-leak`: every third save fails at its device; each is told at its ticket and once by save or close."""
    from lastgood.core.files import BufferedFile

    store = Store.create(place / "s", slot_bytes=4096, in_flight=4, keep=2, device="buffered")
    write = BufferedFile.write

    def failing(device: BufferedFile, offset: int, data: np.ndarray) -> None:  # type: ignore[type-arg]
        if data[0] == 13:
            raise OSError(5, "Input/output error", device.path)
        write(device, offset, data)

    monkeypatch.setattr(BufferedFile, "write", failing)

    def save(thread: int) -> tuple[list[Ticket], int]:
        tickets, told = [], 0
        for number in range(60):
            step = 60 * thread + number
            try:
                tickets.append(store.save(np.full(4096, 13 if step % 3 == 0 else 1, np.uint8), step=step))
            except SaveFailed as failure:
                tickets.append(cast(Ticket, failure.ticket))
                told += 1 + _more(failure)
        return tickets, told

    results = together([lambda thread=thread: save(thread) for thread in range(THREADS)])  # type: ignore[misc]
    tickets = [ticket for each, _ in results for ticket in each]
    told = sum(count for _, count in results)
    reasons = []
    for ticket in tickets:
        try:
            ticket.wait(60)
            assert ticket.step % 3 != 0 or ticket.outcome == "superseded"  # overtaken before it came to write
        except SaveFailed as failure:
            reasons.append((ticket.step % 3, "Input/output error" in str(failure)))
    failed = len(reasons)
    assert set(reasons) == {(0, True)}
    assert failed == sum(ticket.outcome == "failed" for ticket in tickets)
    assert failed > 50
    assert_at_rest(store)
    try:
        store.close()
    except SaveFailed as failure:
        told += 1 + _more(failure)
    assert told == failed, f"{failed} saves failed, {told} were told of"


def _more(failure: SaveFailed) -> int:
    """How many more failures one message speaks of."""
    text = str(failure)
    return int(text.rpartition("(and ")[2].split()[0]) if "(and " in text else 0


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("device", ["auto", "buffered"])
def test_a_thousand_saves_leave_nothing_behind(place: Path, device: str) -> None:
    """`bounded`: descriptors, threads and resident memory are after 1,000 saves what they were after 100."""
    payload = payload_of(1, ROOM)
    with Store.create(place / "s", slot_bytes=ROOM, chunk_bytes=4096, device=device) as store:
        files = sorted((path.name, path.stat().st_blocks) for path in (place / "s").iterdir())
        for step in range(100):
            store.save(payload, step=step).wait()
            store.read()
        before = descriptors(), threading.active_count()
        memory = resident_bytes()
        for step in range(100, 1100 if JIT else 200):
            store.save(payload, step=step)
            if step % 10 == 0:
                store.read()
                store.records()
        assert (descriptors(), threading.active_count()) == before
        assert resident_bytes() - memory < 5 * 2**20
        assert sorted((path.name, path.stat().st_blocks) for path in (place / "s").iterdir()) == files


def test_opening_and_closing_leaves_nothing_behind(place: Path) -> None:
    Store.create(place / "s", slot_bytes=ROOM).close()
    counts = []
    for step in range(40):
        with Store.open(place / "s") as store:
            if step:
                store.read()
            store.save(b"x", step=step).wait()
        with Store.open(place / "s", read_only=True) as store:
            store.read()
        counts.append((descriptors(), threading.active_count(), resident_bytes()))
    assert counts[-1][:2] == counts[5][:2]
    assert counts[-1][2] - counts[5][2] < 5 * 2**20
