"""Threads that run one at a time, each until its next step, in whatever order a driver likes; and that can be killed.

    schedule = Schedule()
    fibre = schedule.start("save 1", work)     # it stands before its first step
    schedule.resume(fibre)                     # runs to its next `pause`, to where it waits for others, or to its end

A fibre is a real thread, but exactly one runs at any moment: the driver, or the fibre it has resumed. So a run is
decided by the driver's choices alone and can be repeated. Code under test that uses threads, locks or sleep is given
others in place of the modules `threading`, `queue` and `time` (`threads`).

T1 baton          between two steps nothing else runs; what waits for another fibre is not ready until that one woke it
T2 time stands    a wait with a limit ends by the limit only when no fibre is ready: nobody is woken early
T3 killed         after `kill` every fibre gets `Killed` at its pause, and again at whatever it asks for next, to its end
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

READY = "ready"
WAITING = "waiting"
ENDED = "ended"

_here = threading.local()


def baton() -> threading.Lock:
    """A lock that one thread gives to another: the giver releases it, the taker acquires it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Killed(BaseException):
    """The process that this thread belongs to is gone."""


class Fibre:
    """One thread of a schedule."""

    def __init__(self, schedule: Schedule, name: str, work: Callable[[], Any]) -> None:
        """Not for callers: use `Schedule.start`."""
        self.name = name
        self.state = READY
        self.step: object = "begin"
        self.result: Any = None
        self.error: BaseException | None = None
        self.waits_for: object = None
        self.has_limit = False
        self.answer: Any = None
        self.when_ended: Callable[[Fibre], None] = ignore
        self._schedule = schedule
        self._work = work
        self._go = baton()
        self._thread = threading.Thread(target=self._run, name=f"fibre {name}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        """Name and whereabouts."""
        return f"Fibre({self.name}: {self.state}, {self.step})"

    def _run(self) -> None:
        _here.fibre = self
        self._go.acquire()
        try:
            if self._schedule.is_dead:
                raise Killed
            self.result = self._work()
        except BaseException as error:  # the driver looks at it
            self.error = error
        self.state = ENDED
        self._work = _nothing  # with all that it holds
        self._schedule.back.release()

    def run_on(self) -> None:
        """In the driver: hand over the baton, and get it back."""
        self._go.release()
        self._schedule.back.acquire()

    def stand(self) -> None:
        """In the fibre: give the baton back, and wait for it (T3)."""
        self._schedule.back.release()
        self._go.acquire()
        if self._schedule.is_dead:
            raise Killed


def ignore(fibre: Fibre) -> None:
    """Nobody asks how it ended."""


def _nothing() -> None:
    """What an ended fibre still has to do."""


class Schedule:
    """The fibres of one process, and their driver."""

    def __init__(self) -> None:
        """None yet."""
        self.fibres: list[Fibre] = []
        self.is_dead = False
        self.back = baton()

    # --- the driver --------------------------------------------------------------------------------------------------

    def start(self, name: str, work: Callable[[], Any]) -> Fibre:
        """A new fibre, ready. Also for the code under test, by way of `threading.Thread`."""
        fibre = Fibre(self, name, work)
        self.fibres.append(fibre)
        return fibre

    def ready(self) -> list[Fibre]:
        """Who can go on, oldest first; when that is nobody, those whose waiting has a limit (T2)."""
        self.fibres = [fibre for fibre in self.fibres if fibre.state != ENDED]
        ready = [fibre for fibre in self.fibres if fibre.state == READY]
        return ready or [fibre for fibre in self.fibres if fibre.has_limit]

    def resume(self, fibre: Fibre, answer: Any = None) -> None:
        """Let it make the step it stands before; `answer` is what its `pause` returns."""
        assert self.current() is None, "only the driver resumes"
        assert fibre.state != ENDED
        fibre.answer = answer
        fibre.state, fibre.has_limit = READY, False
        fibre.run_on()

    def kill(self) -> None:
        """End every fibre, wherever it stands (T3)."""
        self.is_dead = True
        for fibre in self.fibres:
            while fibre.state != ENDED:
                fibre.run_on()
        self.fibres = []

    # --- the fibres --------------------------------------------------------------------------------------------------

    def current(self) -> Fibre | None:
        """The fibre that asks; None in the driver, and in threads of somebody else."""
        fibre: Fibre | None = getattr(_here, "fibre", None)
        return fibre if fibre is not None and fibre._schedule is self else None

    def pause(self, step: object) -> Any:
        """Stand before a step until the driver lets it happen; returns what the driver says. No pause in the driver."""
        fibre = self.current()
        if fibre is None:
            return None
        if self.is_dead:
            raise Killed
        fibre.step = step
        fibre.stand()
        return fibre.answer

    def wait_for(self, what: object, *, has_limit: bool = False) -> bool:
        """Not ready until `wake(what)`; False when the limit ended it."""
        fibre = self.current()
        if fibre is None:
            assert self.is_dead, "the driver itself would wait for ever"
            return False
        if self.is_dead:
            raise Killed
        fibre.state, fibre.waits_for, fibre.has_limit = WAITING, what, has_limit
        fibre.step = "wait"
        fibre.stand()
        woken = fibre.waits_for is None
        fibre.waits_for = None
        return woken

    def wake(self, what: object, count: int = -1) -> None:
        """Make those ready that wait for `what`, the first ones or all of them."""
        for fibre in self.fibres:
            if fibre.state == WAITING and fibre.waits_for is what and count != 0:
                fibre.state, fibre.waits_for, fibre.has_limit = READY, None, False
                count -= 1
