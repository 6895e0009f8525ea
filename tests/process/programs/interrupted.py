"""Saves without a pause while a thread sends interrupts; counts those that arrive. Words: directory, how many."""

import os
import queue
import random
import signal
import sys
import threading
import time

import numpy as np

from lastgood.core import SaveFailed, Store
from tests.threads.accounting import assert_at_rest

PATH, COUNT = sys.argv[1], int(sys.argv[2])
ROOM = 20_000

store = Store.create(PATH, slot_bytes=ROOM, chunk_bytes=4096, in_flight=3, keep=2)
chance = random.Random(7)
sent = arrived = step = 0


def interrupt() -> None:
    """Once for each round, at a moment that nobody chose."""
    global sent
    while begun.get():
        time.sleep(0.0001 + 0.003 * chance.random())
        sent += 1
        os.kill(os.getpid(), signal.SIGINT)


begun: queue.Queue[bool] = queue.Queue()
sender = threading.Thread(target=interrupt)
sender.start()
tickets = []
while arrived < COUNT:
    payload = np.full(ROOM, (step + 1) % 251, np.uint8)
    try:
        begun.put(True)
        while True:
            step += 1
            payload[:] = step % 251
            try:
                tickets.append(store.save(payload, step=step))
            except SaveFailed as failure:
                assert isinstance(failure.__cause__, KeyboardInterrupt), failure
                tickets.append(failure.ticket)
            if step % 10 == 0:
                tickets[-1].wait()
    except KeyboardInterrupt:
        arrived += 1
begun.put(False)
sender.join()
assert sent == arrived, f"{sent - arrived} interrupts were swallowed"
assert_at_rest(store)
step += 1
try:
    ticket = store.save(np.full(ROOM, step % 251, np.uint8), step=step)
except SaveFailed as failure:
    ticket = failure.ticket
ticket.wait()
store.close()
print(step, arrived)
