"""The shared words under contention: nothing counted is lost, nothing is seen that no order of the operations explains.

Kernels without the GIL, so the threads really meet. A plain increment or a plain store in place of the operation under
test must be caught by the same check; each check has such a twin here, or it would not show anything.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numpy.typing import NDArray

from lastgood.core.atomics import compare_swap, fetch_add, load
from lastgood.core.jit import JIT
from tests.threads.running import together

pytestmark = pytest.mark.skipif(not JIT, reason="threads meet in compiled code only; the twins hold a lock")

THREADS = 8
FAR = 64
"""Words between two shared ones, so that they lie in different cache lines."""

let_others_run = types.ExternalFunction("sched_yield", types.int32())


@njit(nogil=True)
def count_up(cells: Any, taken: Any, times: int) -> None:
    for _ in range(times):
        taken[fetch_add(cells, 0, 1)] += 1


@njit(nogil=True)
def count_up_plainly(cells: Any, taken: Any, times: int) -> None:
    for round_number in range(times):
        before = cells[0]
        if round_number % 64 == 0:
            let_others_run()
        cells[0] = before + 1
        taken[before] += 1


@njit(nogil=True)
def count_up_by_swapping(cells: Any, taken: Any, times: int) -> None:
    for _ in range(times):
        seen = load(cells, 0)
        while True:
            found = compare_swap(cells, 0, seen, seen + 1)
            if found == seen:
                break
            seen = found
        taken[seen] += 1


@njit(nogil=True)
def count_up_by_hoping(cells: Any, taken: Any, times: int) -> None:
    """Does not look whether it swapped."""
    for _ in range(times):
        seen = load(cells, 0)
        let_others_run()
        compare_swap(cells, 0, seen, seen + 1)
        taken[seen] += 1


def count(kernel: Callable[..., None], threads: int, times: int) -> tuple[int, NDArray[np.int8]]:
    """The counter in the end, and how often each of its values was the one found."""
    cells = np.zeros(FAR, np.int64)
    taken = np.zeros(threads * times, np.int8)
    kernel(cells, taken, 0)  # compiled before the threads start, or they would come out of the compiler one by one
    together([lambda: kernel(cells, taken, times)] * threads)
    return int(cells[0]), taken


@pytest.mark.parametrize("kernel", [count_up, count_up_by_swapping])
def test_counting_is_exact_under_contention(kernel: Callable[..., None]) -> None:
    """Forty-eight million operations: each value is found exactly once.

    In several runs, since on a busy machine the threads of one run may each get their turn alone.
    """
    times = 1_000_000
    for _ in range(6):
        total, taken = count(kernel, THREADS, times)
        assert total == THREADS * times
        assert np.all(taken == 1)


@pytest.mark.parametrize("kernel", [count_up_plainly, count_up_by_hoping])
def test_the_count_notices_an_operation_that_is_not_whole(kernel: Callable[..., None]) -> None:
    times = 20_000
    for _ in range(20):
        total, taken = count(kernel, THREADS, times)
        if total != THREADS * times and not np.all(taken == 1):
            return
    pytest.fail("lost updates went unnoticed")


@njit(nogil=True)
def push_all(heads: Any, following: Any, first: int, last: int) -> None:
    """Links numbers onto a chain: each one points at what was the head before it."""
    for number in range(first, last):
        head = load(heads, 0)
        while True:
            following[number] = head
            found = compare_swap(heads, 0, head, number)
            if found == head:
                break
            head = found


def test_a_chain_built_by_compare_and_swap_holds_every_link_once() -> None:
    """Eight million pushes onto one list; walking it meets every number."""
    times = 1_000_000
    heads = np.zeros(FAR, np.int64)
    following = np.zeros(THREADS * times + 1, np.int64)
    starts = [1 + thread * times for thread in range(THREADS)]
    push_all(heads, following, 0, 0)
    together([lambda start=start: push_all(heads, following, start, start + times) for start in starts])  # type: ignore[misc]
    assert count_links(heads, following) == THREADS * times


@njit
def count_links(heads: Any, following: Any) -> int:
    """How many different numbers the chain holds; it may be a ring by mistake."""
    met = np.zeros(following.size, np.bool_)
    count = 0
    link = heads[0]
    while link != 0 and not met[link]:
        met[link] = True
        count += 1
        link = following[link]
    return count


# --- litmus: two threads, two words, one outcome that no order of the four operations explains ------------------------


@njit(nogil=True)
def meet(cells: Any, round_number: int) -> None:
    """Both threads are here, and leave within nanoseconds of each other."""
    fetch_add(cells, 4 * FAR, 1)
    tries = 0
    while load(cells, 4 * FAR) < 2 * (round_number + 1):
        tries += 1
        if tries % 4096 == 0:
            let_others_run()


@njit(nogil=True)
def store_then_look(cells: Any, mine: int, other: int, rounds: int, plain: bool, seen: Any) -> None:
    """Round after round: raise my own word, then read the other's."""
    for round_number in range(rounds):
        meet(cells, round_number)
        if plain:
            cells[mine] = round_number + 1
            seen[round_number] = cells[other]
        else:
            compare_swap(cells, mine, round_number, round_number + 1)
            seen[round_number] = load(cells, other)


def missed_each_other(rounds: int, plain: bool) -> int:
    """In how many rounds neither thread saw the other's store."""
    cells = np.zeros(8 * FAR, np.int64)
    seen = [np.zeros(rounds, np.int64) for _ in range(2)]
    words = [(0, 2 * FAR), (2 * FAR, 0)]
    store_then_look(cells, 0, 0, 0, plain, seen[0])
    together(
        [
            lambda mine=mine, other=other, each=each: store_then_look(cells, mine, other, rounds, plain, each)  # type: ignore[misc]
            for (mine, other), each in zip(words, seen, strict=True)
        ]
    )
    raised = np.arange(1, rounds + 1)
    return int(np.count_nonzero((seen[0] < raised) & (seen[1] < raised)))


def test_store_buffering_is_never_seen() -> None:
    """Two savers that each store and then look: at least one sees the other, in every round."""
    assert missed_each_other(200_000, plain=False) == 0


def test_store_buffering_is_seen_with_plain_stores() -> None:
    """The litmus can fail: on these processors plain stores are overtaken by the loads that follow them."""
    for _ in range(20):
        if missed_each_other(50_000, plain=True) > 0:
            return
    pytest.skip("this machine never ran the two threads at once")


@njit(nogil=True)
def send(cells: Any, messages: Any, rounds: int) -> None:
    for round_number in range(1, rounds + 1):
        messages[round_number % messages.size] = round_number
        compare_swap(cells, 0, round_number - 1, round_number)


@njit(nogil=True)
def receive(cells: Any, messages: Any, rounds: int) -> int:
    """How often a message was announced that was not there yet."""
    stale = 0
    last = 0
    while last < rounds:
        announced = load(cells, 0)
        if announced == last:
            let_others_run()
        elif messages[announced % messages.size] < announced:
            stale += 1
        last = announced
    return stale


def send_too_soon(cells: NDArray[np.int64], messages: NDArray[np.int64], rounds: int) -> None:
    for round_number in range(1, rounds + 1):
        compare_swap(cells, 0, round_number - 1, round_number)
        messages[round_number % messages.size] = round_number


def stale_messages(sender: Callable[..., None], rounds: int) -> int:
    cells, messages = np.zeros(FAR, np.int64), np.zeros(1024 * FAR, np.int64)
    sender(cells, messages, 0)
    receive(cells, messages, 0)
    results = together([lambda: sender(cells, messages, rounds), lambda: receive(cells, messages, rounds)])
    return int(results[1])


def test_a_message_is_there_when_it_is_announced() -> None:
    """Payload first, word second: whoever reads the word reads the payload. This is how a tag is published."""
    assert stale_messages(send, 2_000_000) == 0


def test_a_message_that_is_announced_too_soon_is_noticed() -> None:
    assert stale_messages(njit(nogil=True)(send_too_soon), 2_000_000) > 0


@njit(nogil=True)
def raise_for_ever(cells: Any, times: int) -> None:
    for value in range(1, times + 1):
        compare_swap(cells, 0, value - 1, value)
    compare_swap(cells, FAR, 0, 1)


@njit(nogil=True)
def watch(cells: Any) -> int:
    """How often a word that only rises was seen to fall. A read that is done once and kept would never end this."""
    fallen = 0
    last = 0
    while load(cells, FAR) == 0:
        value = load(cells, 0)
        if value < last:
            fallen += 1
        last = value
    return fallen


def test_a_rising_word_is_never_seen_to_fall_and_is_read_anew_each_time() -> None:
    cells = np.zeros(2 * FAR, np.int64)
    raise_for_ever(cells, 0)
    watch(cells)
    cells[:] = 0
    results = together([lambda: raise_for_ever(cells, 2_000_000), *[lambda: watch(cells)] * 3])
    assert results[1:] == [0, 0, 0]


# --- what the processor is told --------------------------------------------------------------------------------------


def locked_instructions(kernel: Any, *arguments: Any) -> list[str]:
    """Names of the instructions with a lock prefix, of a copy compiled now: cached code cannot be inspected."""
    compiled = njit(nogil=True)(kernel.py_func)
    compiled(*arguments)
    text = "\n".join(compiled.inspect_asm().values())
    return [name for name in re.findall(r"\block\s+(\w+)", text) if name != "decq"]  # numba counts references with decq


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions of x86-64")
def test_the_instructions_on_x86_64() -> None:
    """One locked instruction each; a load is a plain move there, which the compiler may not move about."""
    cells = np.zeros(1, np.int64)
    assert locked_instructions(compare_swap, cells, 0, 0, 1) == ["cmpxchgq"]
    assert locked_instructions(fetch_add, cells, 0, 1) == ["xaddq"]
    assert locked_instructions(load, cells, 0) == []
