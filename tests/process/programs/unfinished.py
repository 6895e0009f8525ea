"""A program that ends between the beginning and the finish of a save. Words: directory, how it ends."""

import os
import signal
import sys
import time

from lastgood.core import Store

PATH, HOW = sys.argv[1:]


def main() -> None:
    """The payload of step 2 is half there."""
    saving = store.begin(step=2)
    saving.push(b"tw")
    if HOW == "end":
        globals()["saving"] = saving
    if HOW == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    if HOW == "raise":
        raise RuntimeError("a mistake of the user's")
    if HOW == "close":
        try:
            raise RuntimeError("a mistake of the user's")
        finally:
            store.close()


store = Store.create(PATH, slot_bytes=100)
store.save(b"one", step=1).wait()
main()
