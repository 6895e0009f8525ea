"""Forks while a save is under way; the child waits for its ticket."""

import os
import signal
import sys
import threading

from lastgood.core import Store, StoreClosed
from lastgood.core.files import BufferedFile

go_on = threading.Event()
persist = BufferedFile.persist


def held_persist(device: BufferedFile) -> None:
    """The save is under way until the child has been heard."""
    go_on.wait(60)
    persist(device)


store = Store.create(sys.argv[1], slot_bytes=100)
store.save(b"o", step=0).wait()
BufferedFile.persist = held_persist  # type: ignore[method-assign]
ticket = store.save(b"x", step=1)
child = os.fork()
if child == 0:
    signal.alarm(30)
    try:
        ticket.wait()
    except StoreClosed as refusal:
        print("StoreClosed", refusal, flush=True)
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(child, 0)
go_on.set()
assert ticket.wait().step == 1
store.close()
sys.exit(os.waitstatus_to_exitcode(status) != 0)
