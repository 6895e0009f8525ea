"""Clauses of the invariant about records, sequences, the mark and the phases of a store. See `invariant`."""

from __future__ import annotations

from typing import Any

from ..logic import Condition, Logic
from .state import (
    CARRYING,
    EMPTIED_AGAIN,
    FREE,
    IDLE,
    MARK_ABSENT,
    MARK_DURABLE,
    MARK_UNDER_WAY,
    RUNNING,
    STOPPED,
    SURVEYED,
    State,
    Variant,
)
from .words import at, below, counted, is_durable


def words_are_in_range(logic: Logic, state: State, variant: Variant) -> Condition:
    """Numbers are what they stand for."""
    return logic.both(
        logic.one_of(state.phase, STOPPED, SURVEYED, RUNNING),
        logic.one_of(state.marked, MARK_ABSENT, MARK_DURABLE, MARK_UNDER_WAY),
        logic.one_of(state.mark_again, 0, 1, 2),
        state.counter >= 0,
        state.acknowledged >= 0,
        logic.every_slot(lambda slot: logic.both(state.cached_record(slot) >= 0, state.medium_record(slot) >= 0)),
        logic.every_slot(lambda slot: logic.both(state.kind(slot) >= FREE, state.kind(slot) <= EMPTIED_AGAIN)),
        logic.every_saver(lambda saver: logic.both(state.place(saver) >= IDLE, state.place(saver) <= CARRYING)),
    )


def witness_is_durable(logic: Logic, state: State, variant: Variant) -> Condition:
    """Some slot holds a checkpoint at least as new as every acknowledged one, whole, in the cache and on the medium."""
    sequence = state.cached_record(state.witness)
    return logic.implies(
        state.acknowledged > 0,
        logic.both(state.acknowledged <= sequence, is_durable(logic, state, state.witness, sequence)),
    )


def medium_lags_the_cache(logic: Logic, state: State, variant: Variant) -> Condition:
    """A record on the medium that could matter is the one in the cache, unless that one is empty."""
    return logic.every_slot(
        lambda slot: logic.either(
            below(logic, state, state.medium_record(slot)),
            state.cached_record(slot) == 0,
            state.medium_record(slot) == state.cached_record(slot),
        )
    )


def no_two_records_share_a_sequence(logic: Logic, state: State, variant: Variant) -> Condition:
    """A sequence is in one slot only."""

    def differ(one: Any, other: Any) -> Condition:
        def apart(first: Any, second: Any) -> Condition:
            return logic.either(first == 0, first != second)

        return logic.both(
            apart(state.cached_record(one), state.cached_record(other)),
            apart(state.medium_record(one), state.medium_record(other)),
            apart(state.cached_record(one), state.medium_record(other)),
        )

    return logic.every_slot(lambda one: logic.every_slot(lambda other: logic.either(one == other, differ(one, other))))


def counter_is_above_all_records(logic: Logic, state: State, variant: Variant) -> Condition:
    """While savers run, the next sequence is above every record; when surveyed, above every one that was read."""
    return logic.both(
        logic.either(state.phase == STOPPED, logic.every_slot(lambda slot: state.cached_record(slot) <= state.counter)),
        logic.implies(
            state.phase == RUNNING,
            logic.both(
                logic.every_slot(lambda slot: state.medium_record(slot) <= state.counter),
                state.held(logic.first) <= state.acknowledged,
                state.acknowledged <= state.counter,
                at(logic, state, counted(variant), lambda saver: state.mine(saver) <= state.counter),
            ),
        ),
    )


def no_saves_unless_running(logic: Logic, state: State, variant: Variant) -> Condition:
    """A store that is not ready has no savers."""
    return logic.either(state.phase == RUNNING, logic.every_saver(lambda saver: state.place(saver) == IDLE))


def found_is_new_enough(logic: Logic, state: State, variant: Variant) -> Condition:
    """The first checkpoint that recovery takes is at least as new as every acknowledged one."""
    return logic.implies(state.taken(logic.first), state.acknowledged <= state.held(logic.first))


def mark_is_made_before_it_counts(logic: Logic, state: State, variant: Variant) -> Condition:
    """A mark that a save relied on, or that memory calls durable, is in the cache and on the medium."""
    made = logic.both(state.cached_mark, state.medium_mark)
    return logic.both(
        logic.implies(state.medium_mark, state.cached_mark),
        logic.implies(state.promised, made),
        logic.implies(logic.both(state.phase == RUNNING, state.marked == MARK_DURABLE), made),
        logic.implies(
            state.phase == SURVEYED,
            logic.both(
                (state.marked == MARK_DURABLE) == state.cached_mark,
                logic.either(state.mark_again == 0, state.cached_mark),
                logic.either(state.mark_again != 1, state.mark_dirty, made),
                logic.either(state.mark_again != 2, made),
            ),
        ),
    )
