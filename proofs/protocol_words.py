"""What clauses of the invariant say again and again, said once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .logic import Condition, Logic
from .protocol import ACQUIRED, COUNTED, EMPTIED, EMPTYING, FILLED, FILLING, OWNING, PERSISTED, State

Clause = Callable[[Logic, State], Condition]
UNRECORDED = (COUNTED, EMPTYING, EMPTIED, ACQUIRED, FILLING, FILLED, PERSISTED)
"""Where a save has a sequence that no record names yet."""
COUNTED_ON = (COUNTED, *OWNING)
"""Where a save has a sequence."""


def below(logic: Logic, state: State, record: Any) -> Condition:
    """No record, or one that is older than an acknowledged checkpoint: it may stand for anything."""
    return logic.either(record == 0, record < state.acknowledged)


def both_below(logic: Logic, state: State, slot: Any) -> Condition:
    """The slot's record does not matter, in the cache and on the medium."""
    return logic.both(below(logic, state, state.cached_record(slot)), below(logic, state, state.medium_record(slot)))


def payload_is(logic: Logic, state: State, slot: Any, sequence: Any) -> Condition:
    """The payload is whole and durable."""
    return logic.both(state.cached_payload(slot) == sequence, state.medium_payload(slot) == sequence)


def record_is(logic: Logic, state: State, slot: Any, sequence: Any) -> Condition:
    """The record is durable."""
    return logic.both(state.cached_record(slot) == sequence, state.medium_record(slot) == sequence)


def at(logic: Logic, state: State, places: tuple[int, ...], then: Callable[[Any], Condition]) -> Condition:
    """This holds of every save that is at one of these places."""
    return logic.every_saver(lambda saver: logic.implies(logic.one_of(state.place(saver), *places), then(saver)))
