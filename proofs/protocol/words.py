"""What clauses of the invariant say again and again, said once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..logic import Condition, Logic
from .state import (
    ACKNOWLEDGED,
    COUNTED,
    DURABLE,
    FILLED,
    LOADED,
    MARK_PERSISTED,
    MARK_WRITTEN,
    MARKED,
    MARKING,
    OWNING,
    PERSISTED,
    RECORDED,
    UNMARKED,
    State,
    Variant,
)

Clause = Callable[[Logic, State, Variant], Condition]
AT_THE_MARK = (MARKING, MARK_WRITTEN, MARK_PERSISTED)
"""Where a save is at work on the mark, alone."""


def owning(variant: Variant) -> tuple[int, ...]:
    """Where a save has a slot of its own."""
    return (COUNTED, *OWNING) if "acquire-first" in variant else OWNING


def counted(variant: Variant) -> tuple[int, ...]:
    """Where a save has a sequence."""
    if "count-first" in variant:
        return (LOADED, COUNTED, *OWNING)
    return OWNING if "acquire-first" in variant else (COUNTED, *OWNING)


def has_seen(variant: Variant) -> tuple[int, ...]:
    """Where a save has looked at the root."""
    return (COUNTED, *OWNING) if "count-first" in variant else (LOADED, COUNTED, *OWNING)


def unrecorded(variant: Variant) -> tuple[int, ...]:
    """Where a save has a sequence that no record names yet."""
    return tuple(place for place in counted(variant) if place < RECORDED)


def recorded(variant: Variant) -> tuple[int, ...]:
    """Where the record is written and perhaps not durable."""
    return (RECORDED, *AT_THE_MARK, UNMARKED, MARKED) if "marked-first" in variant else (RECORDED,)


def durable(variant: Variant) -> tuple[int, ...]:
    """Where the record is durable."""
    if "marked-first" in variant:
        return (DURABLE, ACKNOWLEDGED)
    return (DURABLE, *AT_THE_MARK, UNMARKED, MARKED, ACKNOWLEDGED)


def mark_is_made(variant: Variant) -> tuple[int, ...]:
    """Where the mark is durable."""
    return (MARKED, DURABLE, ACKNOWLEDGED) if "marked-first" in variant else (MARKED, ACKNOWLEDGED)


def payload_is_durable(variant: Variant) -> tuple[int, ...]:
    """Where the payload is durable."""
    if "one-persist" in variant:
        return durable(variant)
    return tuple(place for place in OWNING if place >= PERSISTED)


def payload_is_written(variant: Variant) -> tuple[int, ...]:
    """Where the payload is whole in the cache, and perhaps not on the medium."""
    return (FILLED, RECORDED) if "one-persist" in variant else (FILLED,)


def below(logic: Logic, state: State, record: Any) -> Condition:
    """No record, or one that is older than every kept checkpoint: it may stand for anything."""
    return logic.either(record == 0, record < state.held(logic.last))


def both_below(logic: Logic, state: State, slot: Any) -> Condition:
    """The slot's record does not matter, in the cache and on the medium."""
    return logic.both(below(logic, state, state.cached_record(slot)), below(logic, state, state.medium_record(slot)))


def is_durable(logic: Logic, state: State, slot: Any, sequence: Any) -> Condition:
    """The checkpoint is in this slot, record and payload, in the cache and on the medium."""
    return logic.both(record_is(logic, state, slot, sequence), payload_is(logic, state, slot, sequence))


def payload_is(logic: Logic, state: State, slot: Any, sequence: Any) -> Condition:
    """The payload is whole and durable."""
    return logic.both(state.cached_payload(slot) == sequence, state.medium_payload(slot) == sequence)


def record_is(logic: Logic, state: State, slot: Any, sequence: Any) -> Condition:
    """The record is durable."""
    return logic.both(state.cached_record(slot) == sequence, state.medium_record(slot) == sequence)


def at(logic: Logic, state: State, places: tuple[int, ...], then: Callable[[Any], Condition]) -> Condition:
    """This holds of every save that is at one of these places."""
    return logic.every_saver(lambda saver: logic.implies(logic.one_of(state.place(saver), *places), then(saver)))
