"""Litmus tests: what the core assumes of its three shared operations, tried by real threads, machine code and this processor.

    counters            nobody's addition is lost, and no two are told the same number
    swap chains         a swap succeeds for one of those who saw the same
    message passing     who sees the flag sees what was written before it
    store buffering     of two who each announce themselves and then look, one sees the other

A violation would be seen as a wrong sum or a wrong pair. That none was seen proves nothing, and least of all on another
processor; a broken operation in the place of one of these is noticed at once, which its twin shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from lastgood.core import atomics
from lastgood.core.jit import rule

THREADS, ROUNDS = 2, 100_000
add, swap, read = atomics.fetch_add, atomics.compare_swap, atomics.load


class Violation(AssertionError):
    """Something was seen that sequentially consistent operations do not allow."""


@rule
def tell(data: Any, flags: Any, index: int) -> None:
    """Write a message, then raise its flag."""
    data[index] = index + 1
    add(flags, index, 1)


@rule
def announce_and_look(cells: Any, mine: int, other: int) -> int:
    """Announce oneself, then look for the other."""
    add(cells, mine, 1)
    return read(cells, other)


@rule
def wait_for_all(arrived: Any) -> None:
    """Begin together: a thread that begins late meets nobody."""
    plain_add(arrived, 0, 1)
    while plain_read(arrived, 0) < THREADS:
        pass


plain_add, plain_read = atomics.fetch_add, atomics.load


def at_once(program: Callable[..., None], *arguments: tuple[Any, ...]) -> None:
    """Compile the program, then run it in one thread for each set of arguments, after a cell for `wait_for_all`."""
    compiled = numba.njit(nogil=True)(program)
    arrived = np.zeros(1, np.int64)
    compiled.compile(numba.typeof((arrived, *arguments[0])).types)
    threads = [threading.Thread(target=compiled, args=(arrived, *each)) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def counters_lose_nothing() -> int:
    """Threads that add to one cell lose no addition, and no two of them are told the same number."""

    def count(arrived: Any, cells: Any, told: Any) -> None:
        wait_for_all(arrived)
        for number in range(told.size):
            told[number] = add(cells, 0, 1)

    cells, told = np.zeros(1, np.int64), np.zeros((THREADS, ROUNDS), np.int64)
    at_once(count, *((cells, row) for row in told))
    if cells[0] != told.size or np.unique(told).size != told.size:
        raise Violation(f"{told.size} additions made {cells[0]}, and {np.unique(told).size} numbers were told")
    return told.size


def swaps_succeed_once() -> int:
    """Of threads that swap what they all saw, one succeeds: a chain of swaps takes every value once."""

    def climb(arrived: Any, cells: Any, won: Any) -> None:
        wait_for_all(arrived)
        number = 0
        while number < won.size:
            seen = read(cells, 0)
            if swap(cells, 0, seen, seen + 1) == seen:
                won[number] = seen
                number += 1

    cells, won = np.zeros(1, np.int64), np.zeros((THREADS, ROUNDS), np.int64)
    at_once(climb, *((cells, row) for row in won))
    if cells[0] != won.size or np.unique(won).size != won.size:
        raise Violation(f"{won.size} swaps made {cells[0]}, and {np.unique(won).size} values were swapped")
    return won.size


def messages_arrive_whole() -> int:
    """Whoever sees a flag sees what was written before the flag was raised."""

    def pass_messages(arrived: Any, is_writer: int, data: Any, flags: Any, got: Any) -> None:
        wait_for_all(arrived)
        for index in range(data.size):
            if is_writer == 1:
                tell(data, flags, index)
            else:
                while read(flags, index) == 0:
                    pass
                got[index] = data[index]

    data, flags, got = (np.zeros(ROUNDS, np.int64) for _ in range(3))
    at_once(pass_messages, (1, data, flags, got), (0, data, flags, got))
    if np.any(got != np.arange(1, ROUNDS + 1)):
        raise Violation(f"{np.count_nonzero(got != np.arange(1, ROUNDS + 1))} flags were seen before their messages")
    return ROUNDS


def one_sees_the_other() -> int:
    """Of two threads that each announce themselves and then look, at least one sees the other."""

    def meet(arrived: Any, me: int, cells: Any, begun: Any, saw: Any) -> None:
        wait_for_all(arrived)
        for number in range(saw.shape[1]):
            add(begun, me, 1)
            patience = 1000
            while read(begun, 1 - me) <= number and patience > 0:
                patience -= 1
            saw[me, number] = announce_and_look(cells, 2 * number + me, 2 * number + 1 - me)

    cells, begun, saw = np.zeros(2 * ROUNDS, np.int64), np.zeros(2, np.int64), np.zeros((2, ROUNDS), np.int64)
    at_once(meet, *((me, cells, begun, saw) for me in range(2)))
    missed = int(np.count_nonzero(saw.sum(axis=0) == 0))
    if missed:
        raise Violation(f"in {missed} of {ROUNDS} meetings neither saw the other")
    return ROUNDS
