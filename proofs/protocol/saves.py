"""Clauses of the invariant about saves, and what each has done so far. See `invariant`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..logic import Condition, Logic
from .state import (
    ACKNOWLEDGED,
    ACQUIRED,
    COUNTED,
    EMPTIED,
    MARK_PERSISTED,
    MARK_UNDER_WAY,
    MARK_WRITTEN,
    OWNED,
    RECORDED,
    RUNNING,
    State,
    Variant,
)
from .words import (
    AT_THE_MARK,
    at,
    below,
    both_below,
    counted,
    durable,
    has_seen,
    mark_is_made,
    owning,
    payload_is,
    payload_is_durable,
    payload_is_written,
    record_is,
    recorded,
    unrecorded,
)


def own_slot_is_owned(logic: Logic, state: State, variant: Variant) -> Condition:
    """A save's slot is its own, and a slot that is owned has a save that is at work with it."""
    places = owning(variant)

    def owns(saver: Any) -> Condition:
        slot = state.slot(saver)
        return logic.both(state.kind(slot) == OWNED, state.owner(slot) == saver)

    def is_owned(slot: Any) -> Condition:
        owner = state.owner(slot)
        working = logic.both(logic.one_of(state.place(owner), *places), state.slot(owner) == slot)
        return logic.implies(state.kind(slot) == OWNED, working)

    return logic.both(at(logic, state, places, owns), logic.implies(state.phase == RUNNING, logic.every_slot(is_owned)))


def sequences_differ(logic: Logic, state: State, variant: Variant) -> Condition:
    """No two saves at work have one sequence."""

    def differs(saver: Any) -> Condition:
        return logic.every_saver(
            lambda other: logic.either(
                saver == other,
                logic.no(logic.one_of(state.place(other), *counted(variant))),
                state.mine(saver) != state.mine(other),
            )
        )

    return at(logic, state, counted(variant), differs)


def sequence_is_in_no_record_yet(logic: Logic, state: State, variant: Variant) -> Condition:
    """Before a save writes its record, no record has its sequence."""

    def names_none(saver: Any) -> Condition:
        return logic.every_slot(
            lambda slot: logic.both(
                state.cached_record(slot) != state.mine(saver), state.medium_record(slot) != state.mine(saver)
            )
        )

    return logic.both(
        at(logic, state, counted(variant), lambda saver: state.mine(saver) > 0),
        at(logic, state, unrecorded(variant), names_none),
    )


def shown(logic: Logic, state: State, places: tuple[int, ...], then: Callable[[Any, Any], Condition]) -> Condition:
    """This holds of the slot and the sequence of every save that is at one of these places."""
    return at(logic, state, places, lambda saver: then(state.slot(saver), state.mine(saver)))


def record_is_as_far_as_the_save(logic: Logic, state: State, variant: Variant) -> Condition:
    """What a save has done to its record so far is what its slot shows."""
    before_record = [place for place in owning(variant) if place < RECORDED and (place >= ACQUIRED or place == COUNTED)]

    def emptied(slot: Any, mine: Any) -> Condition:
        written = logic.either(state.record_dirty(slot), state.medium_record(slot) == 0)
        return logic.both(state.cached_record(slot) == 0, written)

    def written(slot: Any, mine: Any) -> Condition:
        there = state.medium_record(slot) == mine
        return logic.both(
            state.cached_record(slot) == mine,
            logic.either(below(logic, state, state.medium_record(slot)), there),
            logic.either(state.record_dirty(slot), there),
        )

    return logic.both(
        shown(logic, state, (EMPTIED,), emptied),
        shown(logic, state, tuple(before_record), lambda slot, mine: both_below(logic, state, slot)),
        shown(logic, state, recorded(variant), written),
        shown(logic, state, durable(variant), lambda slot, mine: record_is(logic, state, slot, mine)),
        shown(logic, state, (ACKNOWLEDGED,), lambda slot, mine: mine <= state.acknowledged),
    )


def payload_is_as_far_as_the_save(logic: Logic, state: State, variant: Variant) -> Condition:
    """What a save has done to its payload so far is what its slot shows."""

    def written(slot: Any, mine: Any) -> Condition:
        there = logic.either(state.payload_dirty(slot), state.medium_payload(slot) == mine)
        return logic.both(state.cached_payload(slot) == mine, there)

    return logic.both(
        shown(logic, state, payload_is_written(variant), written),
        shown(logic, state, payload_is_durable(variant), lambda slot, mine: payload_is(logic, state, slot, mine)),
    )


def seen_is_not_ahead(logic: Logic, state: State, variant: Variant) -> Condition:
    """What a save saw in the root is not newer than the root; if it is the root, it is so slot and all."""
    root, root_slot = state.held(logic.first), state.held_slot(logic.first)
    return at(
        logic,
        state,
        has_seen(variant),
        lambda saver: logic.both(
            state.seen(saver) >= 0,
            state.seen(saver) <= root,
            logic.either(state.seen(saver) != root, root == 0, state.seen_slot(saver) == root_slot),
        ),
    )


def seen_is_older(logic: Logic, state: State, variant: Variant) -> Condition:
    """A save that looked at the root before it counted saw something older than itself, if only at first."""
    if "count-first" in variant:
        return logic.both(True)
    return at(logic, state, counted(variant), lambda saver: state.seen(saver) < state.mine(saver))


def witness_is_the_newest(logic: Logic, state: State, variant: Variant) -> Condition:
    """While savers run, the newest acknowledged checkpoint is the root, or its save is about to publish it."""
    witness = state.witness
    owner = state.owner(witness)
    return logic.implies(
        logic.both(state.phase == RUNNING, state.acknowledged > 0),
        logic.either(
            logic.both(witness == state.held_slot(logic.first), state.held(logic.first) == state.acknowledged),
            logic.both(
                state.kind(witness) == OWNED,
                state.place(owner) == ACKNOWLEDGED,
                state.slot(owner) == witness,
                state.mine(owner) == state.acknowledged,
            ),
        ),
    )


def one_makes_the_mark(logic: Logic, state: State, variant: Variant) -> Condition:
    """One save at a time is at work on the mark, and what it has done so far shows."""
    made = logic.both(state.cached_mark, state.medium_mark)
    written = logic.both(state.cached_mark, logic.either(state.mark_dirty, state.medium_mark))
    alone = state.marked == MARK_UNDER_WAY
    return logic.both(
        at(logic, state, AT_THE_MARK, lambda saver: logic.both(saver == state.marker, alone)),
        at(logic, state, (MARK_WRITTEN,), lambda saver: written),
        at(logic, state, (MARK_PERSISTED, *mark_is_made(variant)), lambda saver: made),
    )
