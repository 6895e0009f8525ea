"""Leaves with a save under way that takes a second, and interrupts itself while the exit waits for it."""

import os
import signal
import sys
import threading
import time

from lastgood.core import Store
from lastgood.core.files import BufferedFile

persist = BufferedFile.persist


def slow_persist(device: BufferedFile) -> None:
    """Long enough for the interrupt to come first."""
    time.sleep(1)
    persist(device)


store = Store.create(sys.argv[1], slot_bytes=100)
store.save(b"one", step=1).wait()
print("1 acknowledged", flush=True)
BufferedFile.persist = slow_persist  # type: ignore[method-assign]
store.save(b"two", step=2)
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
timer.daemon = True
timer.start()
