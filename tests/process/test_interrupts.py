"""Ctrl-C at any instant of a save, a wait, an opening or a close: the interrupt arrives, and nothing is lost by it."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lastgood.core import SaveFailed, Store, Ticket, at_exit
from lastgood.core.files import BufferedFile, DirectFile
from lastgood.core.jit import JIT
from tests.process.interrupts import Interrupt, every_instant
from tests.process.nursery import Nursery
from tests.process.payloads import assert_is_payload, payload_of
from tests.threads.accounting import assert_at_rest

ROOM = 10_000


@pytest.fixture(autouse=True)
def collect_first() -> None:
    gc.collect()
    gc.freeze()  # the collections below are of what these tests make


@pytest.fixture
def store(swift: Path) -> Iterator[Store]:
    store = Store.create(swift / "store", slot_bytes=ROOM, chunk_bytes=4096, in_flight=2, keep=2)
    save(store, 1).wait()
    yield store
    at_exit.forget(store)  # one that has lost a place would be waited for till the end of time
    if not store._engine._flights:  # type: ignore[union-attr]
        store.close()


def save(store: Store, step: int) -> Ticket:
    """A save whatever befell an earlier one; its payload in two pieces, as an iterator."""
    payload = payload_of(step, ROOM)
    try:
        return store.save(iter([payload[:5000], payload[5000:]]), step=step)
    except SaveFailed as failure:
        assert failure.ticket is not None
        return failure.ticket


def pushed(store: Store, step: int) -> Ticket:
    """The same, pushed by hand."""
    payload = payload_of(step, ROOM)
    try:
        with store.begin(step=step) as saving:
            saving.push(payload[:5000])
            saving.push(payload[5000:])
    except SaveFailed as failure:
        assert failure.ticket is not None
    return saving.ticket


def held_by_this_process() -> tuple[int, int]:
    """Descriptors and threads. Whatever nobody refers to is collected first."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def assert_well(store: Store, step: int) -> None:
    """`no-leak`, `never-wrong`, and every slot still takes a save."""
    assert_at_rest(store)
    record, payload = store.read_with_record()
    assert_is_payload(payload, record.step, ROOM)
    for _ in range(store.in_flight + store.keep):
        assert save(store, step).wait(30).step == step


@pytest.mark.parametrize("way", [save, pushed])
def test_an_interrupt_at_every_instant_of_a_save(store: Store, way: Callable[[Store, int], Ticket]) -> None:
    """It is not swallowed, and leaves no place in flight, no slot and no staging memory behind.

    Not by a destructor either: Python prints what leaves one, and goes on as if no key had been pressed.
    """

    def trial(last: int) -> bool:
        with Interrupt(last) as interrupt:
            try:
                way(store, 10 + last)
            except KeyboardInterrupt:
                assert interrupt.came
            else:
                assert not interrupt.came, f"the interrupt at {interrupt.place} was swallowed"
        try:
            assert_well(store, 10 + last)
        except AssertionError as mistake:
            mistake.add_note(f"interrupted at instant {last}: {interrupt.place}")
            raise
        return interrupt.came

    assert every_instant(trial, all_of_the_first=10**9 if JIT else 100) > 50


def test_an_interrupt_at_every_instant_of_a_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The save goes on, and may be waited for again."""
    go_on = threading.Event()
    persist = BufferedFile.persist

    def held_persist(device: BufferedFile) -> None:
        go_on.wait(30)
        persist(device)

    monkeypatch.setattr(BufferedFile, "persist", held_persist)

    def trial(last: int) -> bool:
        go_on.clear()
        ticket = save(store, 10 + last)
        with Interrupt(last) as interrupt:
            try:
                ticket.wait(0.001)
            except KeyboardInterrupt:
                assert interrupt.came
            except TimeoutError:
                assert not interrupt.came
        go_on.set()
        assert ticket.wait(30).step == 10 + last
        assert_well(store, 10 + last)
        return interrupt.came

    assert every_instant(trial) >= 1


def test_an_interrupt_at_every_instant_of_a_close(swift: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While saves are in flight the lock stays, so that no second writer comes in; closing again ends it all."""
    persist = BufferedFile.persist
    go_on = threading.Event()

    def held_persist(device: BufferedFile) -> None:
        go_on.wait(30)
        persist(device)

    monkeypatch.setattr(BufferedFile, "persist", held_persist)

    def trial(last: int) -> bool:
        path = swift / f"store-{last}"
        before = held_by_this_process()
        go_on.set()
        store = Store.create(path, slot_bytes=100, in_flight=2, keep=1)
        store.save(b"o", step=0).wait()
        go_on.clear()
        ticket = store.save(b"x", step=1)
        timer = threading.Timer(0.02, go_on.set)
        timer.start()
        with Interrupt(last) as interrupt:
            try:
                store.close()
            except KeyboardInterrupt:
                assert interrupt.came
        if not ticket.done:
            assert store._directory.writer_alive(), f"{interrupt.place}: the lock is gone, a save is in flight"
        timer.join()
        store.close()
        assert ticket.wait(30).step == 1, interrupt.place
        assert held_by_this_process() == before, f"interrupted at {interrupt.place}"
        try:
            Store.open(path).close()
        except Exception as refusal:
            raise AssertionError(f"interrupted at {interrupt.place}: {refusal}") from refusal
        return interrupt.came

    assert every_instant(trial) > 10


@pytest.mark.parametrize("what", ["open", "create"])
def test_an_interrupt_at_every_instant_of_an_opening(swift: Path, what: str) -> None:
    """Neither the lock nor a descriptor is left behind with nobody to close it: the same call, made again, works."""
    Store.create(swift / "old", slot_bytes=100, in_flight=1, keep=1).close()

    def attempt(last: int) -> Store:
        if what == "open":
            return Store.open(swift / "old")
        return Store.create(swift / f"new-{last}", slot_bytes=100, in_flight=1, keep=1)

    def trial(last: int) -> bool:
        before = held_by_this_process()
        opened = None
        with Interrupt(last) as interrupt:
            try:
                opened = attempt(last)
            except KeyboardInterrupt:
                assert interrupt.came
        if opened is not None:
            opened.close()
        assert held_by_this_process() == before, f"interrupted at {interrupt.place}"
        try:
            if what == "create" and (swift / f"new-{last}" / "header").exists():
                Store.open(swift / f"new-{last}").close()  # it had been completed
            else:
                attempt(last).close()
        except Exception as refusal:
            raise AssertionError(f"interrupted at {interrupt.place}: {refusal}") from refusal
        return interrupt.came

    assert every_instant(trial, all_of_the_first=200) > 50


@pytest.mark.parametrize("what", ["place", "staging", "wait", "close"])
def test_an_interrupt_gets_out_of_every_wait_for_a_disk_that_stands_still(
    swift: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Putting a signal off must not mean waiting for the disk: not for a place, staging memory, a ticket or the end."""
    in_flight = 1 if what == "place" else 3
    store = Store.create(
        swift / "store", slot_bytes=3 * 4096, chunk_bytes=4096, in_flight=in_flight, keep=1, staging_bytes=1
    )
    save(store, 1).wait()
    go_on = threading.Event()
    waits = {"persist": BufferedFile.persist, "write": BufferedFile.write}

    def held(name: str) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            go_on.wait(60)
            waits[name](*arguments)  # type: ignore[arg-type]

        return call

    for name in waits if what == "staging" else ["persist"]:
        monkeypatch.setattr(BufferedFile, name, held(name))
        monkeypatch.setattr(DirectFile, name, held(name))
    ticket = save(store, 2)  # its two chunks fill the staging memory
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            {"place": lambda: save(store, 3), "staging": lambda: save(store, 3), "close": store.close}.get(
                what, lambda: ticket.wait()
            )()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, handler)
        waited_seconds = time.monotonic() - began
        go_on.set()
    assert waited_seconds < 50, "it came only when the disk had answered"
    assert ticket.wait(30).step == 2
    assert_well(store, 4)
    store.close()


def test_a_real_interrupt_while_saving(nursery: Nursery, swift: Path) -> None:
    """Signals by the hundred: each one arrives, the store goes on, and the newest is found."""
    child = nursery.program("interrupted", swift / "store", 100)
    assert child.wait(240) == 0, child.stderr
    steps, arrived = map(int, child.stdout.split())
    assert arrived >= 100
    with Store.open(swift / "store", read_only=True) as store:
        record, payload = store.read_with_record()
    assert record.step == steps
    assert np.all(payload == steps % 251)


def test_an_impatient_end(nursery: Nursery, swift: Path) -> None:
    """Ctrl-C while an exit waits for the saves in flight: it may end, not with status 0, and nothing acknowledged is lost."""
    child = nursery.program("impatient", swift / "store")
    assert child.wait(60) != 0
    assert child.stdout == "1 acknowledged\n"
    with Store.open(swift / "store") as store:
        assert store.read_with_record()[0].step in (1, 2)
        store.save(b"after", step=3).wait()
