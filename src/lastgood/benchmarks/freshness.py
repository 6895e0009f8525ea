"""How old the newest durable checkpoint is when saves come faster than the device takes them.

The age counts from the moment a save returned, the last at which the training state still was what it saved. A caller saves
back to back, which is saturation; the mean age over the run is compared for 1 and 4 in flight, and for 4 in flight with the
writers' time shared fairly among the saves instead of oldest first.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lastgood.core import Store
from lastgood.core.writers import Writers

WRITERS = 3


class FairWriters(Writers):
    """The same threads, taking chunks round robin over the saves in flight."""

    def __init__(self, count: int, name: str) -> None:
        """Start `count` threads."""
        self._submitted: Counter[int] = Counter()
        super().__init__(count, name)

    def submit(self, sequence: int, work: Callable[[], None]) -> None:
        """Queue work by how much of its save was queued before, whatever the save's age."""
        self._submitted[sequence] += 1
        super().submit(self._submitted[sequence], work)


def mean_age(
    directory: str, source: NDArray[np.uint8], in_flight: int, staging: int, seconds: float, *, fair: bool
) -> float:
    """Mean age, in seconds, of the newest durable checkpoint under back-to-back saves, with so much staging memory."""
    path = os.path.join(directory, f"fresh-{in_flight}-{staging}-{fair}")
    returned: dict[int, float] = {}
    with Store.create(
        path, slot_bytes=source.size, in_flight=in_flight, keep=1, staging_bytes=staging, writers=WRITERS
    ) as store:
        engine = store._started()
        if fair:
            engine.writers.close()
            engine.writers = FairWriters(WRITERS, "fair")
        for step in range(in_flight + 1):
            store.save(source, step=step).wait()
            returned[step] = time.perf_counter()
        done = threading.Event()
        ages: list[float] = []

        def watch() -> None:
            while not done.wait(0.002):
                record = store.newest()
                if record is not None and record.step in returned:
                    ages.append(max(0.0, time.perf_counter() - returned[record.step]))

        watcher = threading.Thread(target=watch)
        step, began = in_flight + 1, time.perf_counter()
        watcher.start()
        while time.perf_counter() - began < seconds:
            store.save(source, step=step)
            returned[step] = time.perf_counter()
            step += 1
        done.set()
        watcher.join()
    shutil.rmtree(path)
    return float(np.mean(ages))
