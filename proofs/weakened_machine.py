"""The twins of claims that are tried on a machine: operations that are not indivisible, code that is another's, and so on."""

from __future__ import annotations

from typing import Any

import numba

from lastgood.core import atomics, flight, rules, steps
from lastgood.core.jit import rule

from . import weakened

# --- operations on shared words --------------------------------------------------------------------------------------

look = atomics.load
PAUSE = 10_000
"""Looks at a cell while somebody else may come in between."""


@rule
def split_add(shared: Any, index: int, amount: int) -> int:
    """Adding in two halves, with time for somebody else in between."""
    before = look(shared, index)
    for _ in range(PAUSE):
        look(shared, index)
    shared[index] = before + amount
    return before


@rule
def split_swap(shared: Any, index: int, seen: int, wanted: int) -> int:
    """Comparing first, and swapping a while later."""
    found = look(shared, index)
    for _ in range(PAUSE):
        look(shared, index)
    if found == seen:
        shared[index] = wanted
    return found


@rule
def flag_first(data: Any, flags: Any, index: int) -> None:
    """The flag is raised before the message is there."""
    atomics_add(flags, index, 1)
    for _ in range(PAUSE):
        look(flags, index)
    data[index] = index + 1


atomics_add = atomics.fetch_add


@rule
def look_first(shared: Any, mine: int, other: int) -> int:
    """Look for the other before announcing oneself: what a store that stays in a buffer amounts to."""
    saw = look(shared, other)
    for _ in range(PAUSE):
        look(shared, other)
    atomics_add(shared, mine, 1)
    return saw


def plain_add(shared: Any, index: int, amount: int) -> int:
    """Adding by an ordinary instruction."""
    before = shared[index]
    shared[index] = before + amount
    return before


# --- machine code and drivers ----------------------------------------------------------------------------------------


def compiles_another(name: str) -> Any:
    """Machine code of another rule in the place of one."""
    return numba.njit(weakened.always_its_own if name == "tag_displaced" else getattr(rules, name))


def perform_without_persist(self: Any, step: int) -> None:
    """A driver that forgets what makes a record durable."""
    if step != steps.PERSIST_RECORD:
        flight_perform(self, step)


flight_perform = flight.Flight._perform

# --- searches --------------------------------------------------------------------------------------------------------

RECORD_UNPERSISTED = "drop-record-persist"
"""A mistake that the searched model makes."""
