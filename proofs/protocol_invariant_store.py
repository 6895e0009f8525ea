"""Clauses of the invariant about records, payloads, the root and recovery. See `protocol_invariant`."""

from __future__ import annotations

from typing import Any

from .logic import Condition, Logic
from .protocol import CARRIED, CARRYING, FREE, IDLE, KEPT, ROOT, RUNNING, STOPPED, SURVEYED, State
from .protocol_words import COUNTED_ON, at, below, both_below, payload_is, record_is


def words_are_in_range(logic: Logic, state: State) -> Condition:
    """Numbers are what they stand for."""
    return logic.both(
        logic.one_of(state.phase, STOPPED, SURVEYED, RUNNING),
        state.counter >= 0,
        state.root >= 0,
        state.acknowledged >= 0,
        logic.every_slot(lambda slot: logic.both(state.cached_record(slot) >= 0, state.medium_record(slot) >= 0)),
        logic.every_slot(lambda slot: logic.both(state.kind(slot) >= FREE, state.kind(slot) <= 5)),
        logic.every_saver(lambda saver: logic.both(state.place(saver) >= IDLE, state.place(saver) <= CARRYING)),
    )


def medium_is_whole_from_the_floor_up(logic: Logic, state: State) -> Condition:
    """Every record on the medium that could matter describes a payload that is whole there, and in the cache."""
    return logic.every_slot(
        lambda slot: logic.either(
            below(logic, state, state.medium_record(slot)), payload_is(logic, state, slot, state.medium_record(slot))
        )
    )


def cache_is_whole_from_the_floor_up(logic: Logic, state: State) -> Condition:
    """Every record in the cache that could matter describes a payload that is whole, in the cache and on the medium."""
    return logic.every_slot(
        lambda slot: logic.either(
            below(logic, state, state.cached_record(slot)), payload_is(logic, state, slot, state.cached_record(slot))
        )
    )


def witness_is_durable(logic: Logic, state: State) -> Condition:
    """Some slot holds a record at least as new as every acknowledged one, in the cache and on the medium."""
    return logic.implies(
        state.acknowledged > 0,
        logic.both(
            state.acknowledged <= state.medium_record(state.witness),
            state.acknowledged <= state.cached_record(state.witness),
        ),
    )


def medium_lags_the_cache(logic: Logic, state: State) -> Condition:
    """A record on the medium that could matter is the one in the cache, unless that one is empty."""
    return logic.every_slot(
        lambda slot: logic.either(
            below(logic, state, state.medium_record(slot)),
            state.cached_record(slot) == 0,
            state.medium_record(slot) == state.cached_record(slot),
        )
    )


def no_two_records_share_a_sequence(logic: Logic, state: State) -> Condition:
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


def counter_is_above_all_records(logic: Logic, state: State) -> Condition:
    """While savers run, the next sequence is above every record; when surveyed, above every one that was read."""
    return logic.both(
        logic.either(state.phase == STOPPED, logic.every_slot(lambda slot: state.cached_record(slot) <= state.counter)),
        logic.implies(
            state.phase == RUNNING,
            logic.both(
                logic.every_slot(lambda slot: state.medium_record(slot) <= state.counter),
                state.root <= state.acknowledged,
                state.acknowledged <= state.counter,
                at(logic, state, COUNTED_ON, lambda saver: state.mine(saver) <= state.counter),
            ),
        ),
    )


def no_saves_unless_running(logic: Logic, state: State) -> Condition:
    """A store that is not ready has no savers, and a stopped one has no root."""
    return logic.both(
        logic.either(state.phase == RUNNING, logic.every_saver(lambda saver: state.place(saver) == IDLE)),
        logic.either(state.phase != STOPPED, state.root == 0),
    )


def surveyed_slots_are_written_again(logic: Logic, state: State) -> Condition:
    """Between survey and ready, each record that is kept, and each empty one, is dirty; the newest is the root."""

    def written(slot: Any) -> Condition:
        kind = state.kind(slot)
        return logic.both(
            logic.one_of(kind, FREE, KEPT, ROOT),
            logic.either(
                logic.both(kind == FREE, state.cached_record(slot) > 0),
                state.record_dirty(slot),
                state.medium_record(slot) == state.cached_record(slot),
            ),
            logic.either(kind != KEPT, logic.both(state.cached_record(slot) > 0, state.root > 0)),
        )

    found = logic.both(
        state.cached_record(state.root_slot) == state.root,
        state.acknowledged <= state.root,
        state.counter == state.root,
    )
    nothing = logic.both(state.root == 0, state.acknowledged == 0, state.counter == 0)
    return logic.implies(
        state.phase == SURVEYED,
        logic.both(logic.every_slot(written), logic.either(logic.both(state.root > 0, found), nothing)),
    )


def root_is_the_root_slot(logic: Logic, state: State) -> Condition:
    """The root's slot is the only one of its kind; while savers run it holds the root, whole and durable."""
    slot = state.root_slot
    held = logic.both(record_is(logic, state, slot, state.root), payload_is(logic, state, slot, state.root))
    return logic.implies(
        state.phase != STOPPED,
        logic.both(
            logic.implies(state.root > 0, state.kind(slot) == ROOT),
            logic.every_slot(
                lambda other: logic.implies(state.kind(other) == ROOT, logic.both(state.root > 0, other == slot))
            ),
            logic.implies(logic.both(state.phase == RUNNING, state.root > 0), held),
        ),
    )


def free_and_kept_are_below(logic: Logic, state: State) -> Condition:
    """While savers run, the record of a slot that is free, kept or left over does not matter."""
    return logic.implies(
        state.phase == RUNNING,
        logic.every_slot(
            lambda slot: logic.implies(
                logic.one_of(state.kind(slot), FREE, KEPT, CARRIED), both_below(logic, state, slot)
            )
        ),
    )
