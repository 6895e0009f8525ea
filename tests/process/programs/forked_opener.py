"""Forks while another thread is in the middle of taking a writer's lock; the child opens a store of its own."""

import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from lastgood.core import Store

PARENTS, CHILDS = sys.argv[1:]
with Store.create(f"{PARENTS}-before", slot_bytes=100) as store:  # numpy and numba import more when first used
    store.save(b"a warm start", step=1).wait()
inside = threading.Event()
real = {name: getattr(fcntl, name) for name in ("lockf", "fcntl", "flock")}


def slow(name: str) -> Callable[..., object]:
    """The system call that takes a lock, in the middle of which the other thread forks, or waits to."""

    def call(*arguments: object) -> object:
        inside.set()
        time.sleep(1)
        return real[name](*arguments)

    return call


for name in real:
    setattr(fcntl, name, slow(name))
opener = threading.Thread(target=lambda: Store.create(PARENTS, slot_bytes=100).close())
opener.start()
assert inside.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(60)
    for name, function in real.items():
        setattr(fcntl, name, function)
    with Store.create(CHILDS, slot_bytes=100) as store:
        store.save(b"a child's own", step=1).wait()
    os._exit(0)
_, status = os.waitpid(child, 0)
opener.join()
sys.exit(os.waitstatus_to_exitcode(status) != 0)
