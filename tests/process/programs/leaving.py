"""A program that saves and leaves without closing: how is the first word, whether the disk fails the second."""

import errno
import os
import signal
import sys
import time

import numpy as np

from lastgood.core import Store
from lastgood.core.files import BufferedFile

PATH, HOW, DISK = sys.argv[1:]
persist = BufferedFile.persist
broken = False


def slow_persist(device: BufferedFile) -> None:
    """Long enough that the program has left its last line before anything is durable."""
    time.sleep(0.1)
    if broken and "slot" in device.path:
        raise OSError(errno.EIO, "Input/output error", device.path)
    persist(device)


def main() -> None:
    """One acknowledged save, then two that are under way when the program leaves."""
    global broken
    store = Store.create(PATH, slot_bytes=50_000, in_flight=3, keep=2, chunk_bytes=4096)
    store.save(np.full(50_000, 1, np.uint8), step=1).wait()
    BufferedFile.persist = slow_persist  # type: ignore[method-assign]
    broken = DISK == "broken"
    for step in (2, 3):
        store.save(np.full(50_000, step, np.uint8), step=step)
    print("left", flush=True)
    if HOW == "without-stderr":
        sys.stderr = None  # type: ignore[assignment]
    if HOW == "closed-stderr":
        sys.stderr.close()
    if HOW == "full-stderr":
        sys.stderr = open("/dev/full", "w")  # noqa: SIM115
    if HOW == "without-stdout":
        sys.stdout = None  # type: ignore[assignment]
    if HOW == "exit":
        sys.exit(3)
    if HOW == "raise":
        raise RuntimeError("a mistake of the user's")
    if HOW == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    if HOW == "os-exit":
        os._exit(0)
    if HOW == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if HOW == "close-in-finally":
        try:
            raise RuntimeError("a mistake of the user's")
        finally:
            store.close()
    if HOW == "with":
        with store:
            raise RuntimeError("a mistake of the user's")
    if HOW == "kept":
        globals()["store"] = store


main()
