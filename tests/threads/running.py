"""Several threads that start together, and whose first mistake is the test's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 300.0


def together(works: list[Callable[[], Any]]) -> list[Any]:
    """Run each in a thread of its own, all released at one instant; their results in order."""
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
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        if mistakes:
            raise mistakes[0]
        assert not thread.is_alive(), "a thread hangs"
    return results
