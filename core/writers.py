"""The writer threads: pieces of work in order of age, oldest save first.

W1 oldest-first   a thread that becomes free takes the piece with the smallest (sequence, number), so an older save never
                  waits for a younger one's chunks. The total bandwidth is that of fair sharing and the newest durable
                  checkpoint is younger at every moment
W2 never-dies     a piece of work reports its own failure; one that raises is a mistake of ours, kept and re-raised by
                  `close`, and its thread goes on

Threads sleep until there is work, which needs a lock; it is held for a heap operation, never across input or output.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable

from .errors import StoreClosed


class Writers:
    """A fixed number of threads working off one queue."""

    def __init__(self, count: int, name: str) -> None:
        """Start `count` threads."""
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._closing = False
        self._mistake: BaseException | None = None
        self._changed = threading.Condition(threading.Lock())
        self._threads = [
            threading.Thread(target=self._work, name=f"lastgood writer {index} of {name}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, sequence: int, work: Callable[[], None]) -> None:
        """Queue a piece of work for the save with this sequence. Raises StoreClosed once `close` has begun."""
        with self._changed:
            if self._closing:
                raise StoreClosed("the store was closed meanwhile: open it again")
            self._number += 1
            heapq.heappush(self._queue, (sequence, self._number, work))
            self._changed.notify()

    def take_back(self, sequence: int) -> list[Callable[[], None]]:
        """Remove and return what is still queued for one save."""
        with self._changed:
            taken = [piece for piece in self._queue if piece[0] == sequence]
            self._queue = [piece for piece in self._queue if piece[0] != sequence]
            heapq.heapify(self._queue)
        return [work for _, _, work in sorted(taken, key=lambda piece: piece[1])]

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                _, _, work = heapq.heappop(self._queue)
            try:
                work()
            except BaseException as mistake:  # W2: kept for close()
                self._mistake = self._mistake or mistake
            del work

    def close(self) -> None:
        """Finish what is queued and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        if self._mistake is not None:
            raise self._mistake
