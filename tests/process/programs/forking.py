"""A writer that saves without a pause while it forks children, each of which tries to lay hands on the store.

Words: the store's directory, and how many children. Every tenth leaves through the interpreter's exit.
"""

import os
import signal
import sys
import threading
import time

import numpy as np

from lastgood.core import Store, StoreClosed, Ticket
from lastgood.core.files import BufferedFile

PATH, COUNT = sys.argv[1], int(sys.argv[2])
ROOM = 20_000
PATIENCE_SECONDS = 30

store = Store.create(PATH, slot_bytes=ROOM, chunk_bytes=4096, in_flight=3, keep=2)
parent = os.getpid()
tickets: list[Ticket] = []
leaving = threading.Event()


def save_without_a_pause() -> None:
    """Until told to leave."""
    step = 0
    while not leaving.is_set():
        step += 1
        tickets.append(store.save(np.full(ROOM, step % 251, np.uint8), step=step))
        time.sleep(0)


def refuse_descriptors(*_: object) -> None:
    raise AssertionError("a child touches the files of its parent's store")


def be_a_child(ticket: Ticket) -> None:
    """Every call is refused with the reason; none hangs, and no file is written, persisted or closed."""
    signal.alarm(PATIENCE_SECONDS)
    for name in ("write", "persist", "read", "close"):
        setattr(BufferedFile, name, refuse_descriptors)
    attempts = {
        "save": lambda: store.save(b"mine", step=1),
        "read": store.read,
        "newest": store.newest,
        "records": store.records,
        "verify": store.verify,
        "wait": ticket.wait,
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except StoreClosed as refusal:
            assert str(parent) in str(refusal), refusal
            assert len(str(refusal).splitlines()) == 1
        else:
            assert name == "wait", f"{name} worked in a child"  # it had ended well before the fork
    store.close()
    store.close()
    signal.alarm(0)


def wait_for(child: int) -> None:
    """Status 0 in good time."""
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0, f"a child ended with {os.waitstatus_to_exitcode(status)}"
            return
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("a child hangs")


saver = threading.Thread(target=save_without_a_pause)
saver.start()
while len(tickets) < 5:
    time.sleep(0.001)
try:
    for number in range(COUNT):
        pid = os.fork()
        if pid == 0:
            be_a_child(tickets[-1])
            if number % 10 == 0:
                sys.exit(0)
            os._exit(0)
        if number % 4:  # some children overlap
            wait_for(pid)
        else:
            last = pid
        if number % 4 == 1:
            wait_for(last)
finally:
    leaving.set()
saver.join()
for ticket in tickets:
    assert ticket.wait(60).sequence >= ticket.sequence
record, payload = store.read_with_record()
assert record.step == len(tickets), (record.step, len(tickets))
assert np.all(payload == record.step % 251)
assert len(tickets) > COUNT // 10, "hardly anything was saved meanwhile"
store.close()
print(len(tickets))
