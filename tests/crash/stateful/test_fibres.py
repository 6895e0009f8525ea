"""Threads that run one at a time: the driver decides, waiting is exact, and whoever is killed is gone."""

from __future__ import annotations

import threading
from typing import Any

from lastgood.crashsim.stateful import Killed, Schedule, StandingTime, Threads
from lastgood.crashsim.stateful.fibres import ENDED, READY, Fibre


def run(schedule: Schedule, choose: Any = lambda ready: ready[0]) -> None:
    while ready := schedule.ready():
        schedule.resume(choose(ready))


def counting(schedule: Schedule, log: list[str], name: str, steps: int) -> Fibre:
    def work() -> str:
        for step in range(steps):
            schedule.pause(step)
            log.append(f"{name}{step}")
        return name

    return schedule.start(name, work)


def test_the_driver_decides_who_goes_next() -> None:
    for order in ("aabb", "abab", "bbaa"):
        schedule = Schedule()
        log: list[str] = []
        fibres = {name: counting(schedule, log, name, 2) for name in "ab"}
        for fibre in fibres.values():
            schedule.resume(fibre)  # to its first pause
            assert fibre.step == 0
        for name in order:
            schedule.resume(fibres[name])
        counts = {"a": 0, "b": 0}
        for name, line in zip(order, log, strict=True):
            assert line == f"{name}{counts[name]}"
            counts[name] += 1
        assert [fibre.result for fibre in fibres.values()] == ["a", "b"]
        assert schedule.ready() == []


def test_an_answer_reaches_the_pause_and_an_error_the_driver() -> None:
    schedule = Schedule()

    def work() -> None:
        raise ValueError(schedule.pause("what now"))

    fibre = schedule.start("one", work)
    schedule.resume(fibre)
    schedule.resume(fibre, "this")
    assert fibre.state == ENDED
    assert isinstance(fibre.error, ValueError)
    assert str(fibre.error) == "this"
    assert schedule.pause("outside of every fibre") is None


def test_who_waits_is_not_ready() -> None:
    schedule = Schedule()
    threads = Threads(schedule)
    lock, event, log = threads.Lock(), threads.Event(), []

    def holder() -> None:
        with lock:
            schedule.pause("inside")
        event.set()

    def waiter() -> None:
        with lock:
            log.append("lock")
        event.wait()
        log.append("event")

    first, second = schedule.start("holder", holder), schedule.start("waiter", waiter)
    schedule.resume(first)
    schedule.resume(second)
    assert lock.locked()
    assert schedule.ready() == [first]
    assert not lock.acquire(blocking=False)
    run(schedule)
    assert log == ["lock", "event"]
    assert event.is_set()


def test_a_condition_gives_its_lock_away_and_takes_it_back() -> None:
    schedule = Schedule()
    threads = Threads(schedule)
    changed, queue, taken = threads.Condition(), [], []

    def taker() -> None:
        with changed:
            assert changed.wait_for(lambda: queue)
            taken.append(queue.pop())

    def giver() -> None:
        for number in range(2):
            with changed:
                queue.append(number)
                changed.notify()
            schedule.pause("between")

    takers = [schedule.start(f"taker {number}", taker) for number in range(2)]
    for each in takers:
        schedule.resume(each)
    assert schedule.ready() == []
    schedule.start("giver", giver)
    run(schedule, lambda ready: ready[-1])
    assert sorted(taken) == [0, 1]


def test_a_limit_ends_a_wait_only_when_nobody_can_go_on() -> None:
    schedule = Schedule()
    changed = Threads(schedule).Condition()
    log: list[str] = []

    def patient() -> None:
        with changed:
            log.append("woken" if changed.wait(0.1) else "limit")

    waiting = schedule.start("patient", patient)
    schedule.resume(waiting)
    busy = counting(schedule, log, "b", 2)
    assert schedule.ready() == [busy]
    run(schedule)
    assert log == ["b0", "b1", "limit"]


def test_threads_are_fibres_that_can_be_joined_and_time_stands() -> None:
    schedule = Schedule()
    threads, time = Threads(schedule), StandingTime(schedule)
    log: list[str] = []

    def work(name: str) -> None:
        before = time.perf_counter()
        time.sleep(1000)
        assert time.perf_counter() > before
        log.append(name)

    def main() -> None:
        child = threads.Thread(target=work, args=("child",), name="child")
        child.start()
        assert child.is_alive()
        child.join()
        assert not child.is_alive()
        log.append("main")

    schedule.start("main", main)
    run(schedule)
    assert log == ["child", "main"]
    assert threads.current_thread is threading.current_thread


def test_the_killed_are_gone_whatever_they_do() -> None:
    """One swallows it and asks for more; one waits for what never comes; one has not begun."""
    schedule = Schedule()
    threads = Threads(schedule)
    lock, log = threads.Lock(), []

    def stubborn() -> None:
        with lock:
            for _ in range(3):
                try:
                    schedule.pause("working")
                except Killed:
                    log.append("killed")
        with lock:
            log.append("never")

    fibres = [schedule.start(name, work) for name, work in (("stubborn", stubborn), ("waiting", threads.Event().wait))]
    for fibre in fibres:
        schedule.resume(fibre)
    assert fibres[0].state == READY
    fibres.append(schedule.start("fresh", lambda: log.append("never")))
    schedule.kill()
    assert log == ["killed"] * 3
    assert [type(fibre.error) for fibre in fibres] == [Killed] * 3
    assert all(not fibre._thread.is_alive() or fibre._thread.join(10) is None for fibre in fibres)
    with lock:  # what destructors do long afterwards
        pass
