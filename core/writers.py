"""The writer threads: pieces of work in order of age, oldest save first.

W1 oldest-first   a thread that becomes free takes the piece with the smallest (sequence, number), so an older save never
                  waits for a younger one's chunks. The total bandwidth is that of fair sharing and the newest durable
                  checkpoint is younger at every moment
W2 never-dies     a piece of work reports its own failure; one that raises is a mistake of ours, kept and re-raised by
                  `close`, and its thread goes on
W3 no-lock-late   a destructor may run at any point of any thread, also where that thread holds a lock of ours: what it has
                  to do is left to a writer (`leave_to_one`)

Threads sleep until there is a signal, one for each piece of work; a lock is held for a heap operation, never across input
or output.
"""

from __future__ import annotations

import errno
import heapq
import queue
import threading
from collections import deque
from collections.abc import Callable

from .errors import StoreClosed


class Writers:
    """A fixed number of threads working off one queue."""

    def __init__(self, count: int, name: str) -> None:
        """Start `count` threads. Raises OSError where the system refuses that many."""
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._left: deque[Callable[[], None]] = deque()
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._number = 0
        self._closing = False
        self._mistake: BaseException | None = None
        self._one_at_a_time = threading.Lock()
        self._threads: list[threading.Thread] = []
        try:
            for index in range(count):
                label = f"lastgood writer {index} of {name}"
                thread = threading.Thread(target=self._work, name=label, daemon=True)
                thread.start()
                self._threads.append(thread)
        except RuntimeError as error:
            self.close()
            raise OSError(errno.EAGAIN, f"no threads for writers={count}: give fewer, or allow more threads") from error

    def submit(self, sequence: int, work: Callable[[], None]) -> None:
        """Queue a piece of work for the save with this sequence. Raises StoreClosed once `close` has begun."""
        with self._one_at_a_time:
            if self._closing:
                raise StoreClosed("the store was closed meanwhile: open it again")
            self._number += 1
            heapq.heappush(self._queue, (sequence, self._number, work))
        self._signals.put(None)

    def leave_to_one(self, work: Callable[[], None]) -> None:
        """For destructors (W3): a thread does this as soon as it is free, or nobody once `close` has begun."""
        self._left.append(work)
        self._signals.put(None)

    def take_back(self, sequence: int) -> list[Callable[[], None]]:
        """Remove and return what is still queued for one save."""
        with self._one_at_a_time:
            taken = [piece for piece in self._queue if piece[0] == sequence]
            self._queue = [piece for piece in self._queue if piece[0] != sequence]
            heapq.heapify(self._queue)
        return [work for _, _, work in sorted(taken, key=lambda piece: piece[1])]

    def _work(self) -> None:
        while self._next_done():
            self._signals.get()

    def _next_done(self) -> bool:
        """Do one piece of work, if there is one; False when there will be none any more."""
        with self._one_at_a_time:
            if self._left:
                work = self._left.popleft()
            elif self._queue:
                _, _, work = heapq.heappop(self._queue)
            else:
                return not self._closing
        try:
            work()
        except BaseException as mistake:  # W2: kept for close()
            self._mistake = self._mistake or mistake
        return True

    def close(self) -> None:
        """Finish what is queued and end the threads."""
        with self._one_at_a_time:
            self._closing = True
        for _ in self._threads:
            self._signals.put(None)
        for thread in self._threads:
            thread.join()
        if self._mistake is not None:
            raise self._mistake
