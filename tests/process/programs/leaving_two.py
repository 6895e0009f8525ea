"""A program that leaves with two stores open; whichever is closed first has a file that cannot be closed."""

import sys
import time

from lastgood.core import Store
from lastgood.core.files import BufferedFile

persist, close = BufferedFile.persist, BufferedFile.close
surprises = ["a surprise"]


def slow_persist(device: BufferedFile) -> None:
    """The saves are under way when the program ends."""
    time.sleep(0.2)
    persist(device)


def surprising_close(device: BufferedFile) -> None:
    """Once, with an error that is not an OSError."""
    close(device)
    if surprises and "slot" in device.path:
        raise RuntimeError(surprises.pop())


stores = [Store.create(path, slot_bytes=100) for path in sys.argv[1:]]
BufferedFile.persist = slow_persist  # type: ignore[method-assign]
BufferedFile.close = surprising_close  # type: ignore[method-assign]
for store in stores:
    store.save(b"one", step=1)
