"""What code under test is given in place of the modules `threading`, `queue` and `time`: the same names, over fibres."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from .fibres import ENDED, Fibre, Killed, Schedule


class Lock:
    """As `threading.Lock`."""

    def __init__(self, schedule: Schedule) -> None:
        """Free."""
        self._schedule = schedule
        self._is_held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Wait for it."""
        if self._schedule.is_dead:
            if self._schedule.current() is not None:
                raise Killed
            return True  # a destructor, long after
        while self._is_held:
            if not blocking:
                return False
            self._schedule.wait_for(self)
        self._is_held = True
        return True

    def release(self) -> None:
        """Let the next one have it."""
        self._is_held = False
        self._schedule.wake(self)

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._is_held

    def __enter__(self) -> bool:
        """Acquire."""
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        """Release."""
        self.release()


class Condition:
    """As `threading.Condition`."""

    def __init__(self, schedule: Schedule, lock: Lock | None = None) -> None:
        """Around a lock."""
        self._schedule = schedule
        self._lock = lock or Lock(schedule)
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def wait(self, timeout: float | None = None) -> bool:
        """Give the lock away until notified."""
        self.release()
        try:
            return self._schedule.wait_for(self, has_limit=timeout is not None)
        finally:
            self.acquire()

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until it holds, or the limit ends it."""
        while not (holds := predicate()) and self.wait(timeout):
            pass
        return holds or predicate()

    def notify(self, n: int = 1) -> None:
        """Wake the first ones."""
        self._schedule.wake(self, n)

    def notify_all(self) -> None:
        """Wake all."""
        self._schedule.wake(self)

    def __enter__(self) -> bool:
        """Acquire."""
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        """Release."""
        self.release()


class Event:
    """As `threading.Event`."""

    def __init__(self, schedule: Schedule) -> None:
        """Not set."""
        self._schedule = schedule
        self._is_set = False

    def set(self) -> None:
        """From now on nobody waits."""
        self._is_set = True
        self._schedule.wake(self)

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set."""
        if not self._is_set:
            self._schedule.wait_for(self, has_limit=timeout is not None)
        return self._is_set


class SimpleQueue:
    """As `queue.SimpleQueue`."""

    def __init__(self, schedule: Schedule) -> None:
        """Empty."""
        self._schedule = schedule
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        """For whoever asks next."""
        self._items.append(item)
        self._schedule.wake(self, 1)

    def get(self) -> Any:
        """Wait until there is one."""
        while not self._items:
            self._schedule.wait_for(self)
        return self._items.popleft()


class Threads:
    """What a store sees in place of the modules `threading` and `queue`."""

    def __init__(self, schedule: Schedule) -> None:
        """Of one schedule."""
        self._schedule = schedule

    def __getattr__(self, name: str) -> Any:
        """Everything else is the module's own."""
        return getattr(threading, name)

    def Lock(self) -> Lock:
        """See `threading.Lock`."""
        return Lock(self._schedule)

    def Condition(self, lock: Any = None) -> Condition:
        """See `threading.Condition`."""
        return Condition(self._schedule, lock)

    def Event(self) -> Event:
        """See `threading.Event`."""
        return Event(self._schedule)

    def SimpleQueue(self) -> SimpleQueue:
        """See `queue.SimpleQueue`."""
        return SimpleQueue(self._schedule)

    def Thread(self, target: Callable[..., Any], name: str = "", args: Any = (), daemon: bool = True) -> Started:
        """See `threading.Thread`."""
        return Started(self._schedule, name, lambda: target(*args))


class Started:
    """As `threading.Thread`: a fibre once it is started."""

    def __init__(self, schedule: Schedule, name: str, work: Callable[[], Any]) -> None:
        """Not started yet."""
        self._schedule = schedule
        self._work = work
        self._fibre: Fibre | None = None
        self.name = name

    def start(self) -> None:
        """Ready from now on."""
        self._fibre = self._schedule.start(self.name, self._ending)

    def _ending(self) -> Any:
        try:
            return self._work()
        finally:
            self._schedule.wake(self)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        while self.is_alive() and not self._schedule.is_dead:
            self._schedule.wait_for(self)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._fibre is not None and self._fibre.state != ENDED


class StandingTime:
    """What a store sees in place of the module `time`: a clock that ticks when it is looked at."""

    def __init__(self, schedule: Schedule) -> None:
        """At the beginning."""
        self._schedule = schedule
        self._ticks = 0

    def sleep(self, seconds: float) -> None:
        """Let others go first."""
        self._schedule.pause("sleep")

    def time_ns(self) -> int:
        """Later each time."""
        self._ticks += 1
        return self._ticks

    def perf_counter(self) -> float:
        """Later each time."""
        return self.time_ns() / 1e9

    time = monotonic = perf_counter
    perf_counter_ns = monotonic_ns = time_ns
