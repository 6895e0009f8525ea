"""Several threads that start together, and whose first mistake is the test's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 300.0


def together(works: list[Callable[[], Any]]) -> list[Any]:
    """Run each in a thread of its own, all released at one instant; their results in order."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # interpreted threads, too, change places in the middle of things
    start = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)
    mistakes: list[BaseException] = []

    def run(index: int, work: Callable[[], Any]) -> None:
        try:
            start.wait(PATIENCE_SECONDS)
            results[index] = work()
        except BaseException as mistake:
            mistakes.append(mistake)

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
            if mistakes:
                raise mistakes[0]
            assert not thread.is_alive(), "a thread hangs"
    finally:
        sys.setswitchinterval(interval)
    return results
