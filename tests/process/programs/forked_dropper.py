"""forked_dropper PATH: a child lets go of its parent's store, and its own memory must not go with it."""

from __future__ import annotations

import gc
import mmap
import os
import sys

import numpy as np

from lastgood.core import Store


def in_the_child(inherited: list[Store]) -> None:
    """Take memory as a data loader's worker would, drop what came with the fork, and go on using that memory."""
    length = inherited[0]._engine.arena.total_bytes  # type: ignore[union-attr]
    own = [np.frombuffer(mmap.mmap(-1, length), np.uint8) for _ in range(8)]
    for memory in own:
        memory[:] = 7
    inherited.clear()
    gc.collect()
    assert all((memory == 7).all() for memory in own)


def main() -> None:
    """One child."""
    store = Store.create(sys.argv[1], slot_bytes=2**22, device="buffered")
    store.save(np.zeros(2**22, np.uint8), step=1).wait()
    store.close()
    stores = [store]
    del store
    child = os.fork()
    if child == 0:
        in_the_child(stores)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status))


main()
