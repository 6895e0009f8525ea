"""Clauses of the invariant about saves, and what each has done so far. See `protocol_invariant`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .logic import Condition, Logic
from .protocol import (
    ACKNOWLEDGED,
    ACQUIRED,
    CARRIED,
    CARRYING,
    DURABLE,
    EMPTIED,
    FILLED,
    FILLING,
    LOADED,
    OWNED,
    OWNING,
    PERSISTED,
    RECORDED,
    RUNNING,
    State,
)
from .protocol_words import COUNTED_ON, UNRECORDED, at, below, both_below, payload_is, record_is


def own_slot_is_owned(logic: Logic, state: State) -> Condition:
    """A save's slot is its own, and a slot that is owned has a save that is at work with it."""
    return logic.both(
        at(
            logic,
            state,
            OWNING,
            lambda saver: logic.both(state.kind(state.slot(saver)) == OWNED, state.owner(state.slot(saver)) == saver),
        ),
        logic.implies(
            state.phase == RUNNING,
            logic.every_slot(
                lambda slot: logic.implies(
                    state.kind(slot) == OWNED,
                    logic.both(
                        logic.one_of(state.place(state.owner(slot)), *OWNING), state.slot(state.owner(slot)) == slot
                    ),
                )
            ),
        ),
    )


def leftover_is_carried(logic: Logic, state: State) -> Condition:
    """The slot that a save is about to release or keep is carried by it alone, and carries what the save says."""
    return logic.both(
        at(
            logic,
            state,
            (CARRYING,),
            lambda saver: logic.both(
                state.kind(state.left_slot(saver)) == CARRIED,
                state.owner(state.left_slot(saver)) == saver,
                state.left(saver) < state.acknowledged,
                state.left(saver) == state.cached_record(state.left_slot(saver)),
            ),
        ),
        logic.implies(
            state.phase == RUNNING,
            logic.every_slot(
                lambda slot: logic.implies(
                    state.kind(slot) == CARRIED,
                    logic.both(state.place(state.owner(slot)) == CARRYING, state.left_slot(state.owner(slot)) == slot),
                )
            ),
        ),
    )


def sequences_differ(logic: Logic, state: State) -> Condition:
    """No two saves at work have one sequence, and none has that of a record before it wrote its own."""

    def differs(saver: Any) -> Condition:
        return logic.every_saver(
            lambda other: logic.either(
                saver == other,
                logic.no(logic.one_of(state.place(other), *COUNTED_ON)),
                state.mine(saver) != state.mine(other),
            )
        )

    def unrecorded(saver: Any) -> Condition:
        return logic.every_slot(
            lambda slot: logic.both(
                state.cached_record(slot) != state.mine(saver), state.medium_record(slot) != state.mine(saver)
            )
        )

    return logic.both(
        at(logic, state, COUNTED_ON, differs),
        at(logic, state, COUNTED_ON, lambda saver: state.mine(saver) > 0),
        at(logic, state, UNRECORDED, unrecorded),
    )


def own_slot_is_as_far_as_the_save(logic: Logic, state: State) -> Condition:
    """What a save has done so far is what its slot shows."""

    def shown(then: Callable[[Any, Any, Any], Condition]) -> Callable[[Any], Condition]:
        return lambda saver: then(saver, state.slot(saver), state.mine(saver))

    before_record = (ACQUIRED, FILLING, FILLED, PERSISTED)
    durable = (PERSISTED, RECORDED, DURABLE, ACKNOWLEDGED)
    return logic.both(
        at(
            logic,
            state,
            (EMPTIED,),
            shown(
                lambda saver, slot, mine: logic.both(
                    state.cached_record(slot) == 0,
                    logic.either(state.record_dirty(slot), state.medium_record(slot) == 0),
                )
            ),
        ),
        at(logic, state, before_record, shown(lambda saver, slot, mine: both_below(logic, state, slot))),
        at(
            logic,
            state,
            (FILLED,),
            shown(
                lambda saver, slot, mine: logic.either(state.payload_dirty(slot), state.medium_payload(slot) == mine)
            ),
        ),
        at(logic, state, (FILLED,), shown(lambda saver, slot, mine: state.cached_payload(slot) == mine)),
        at(logic, state, durable, shown(lambda saver, slot, mine: payload_is(logic, state, slot, mine))),
        at(
            logic,
            state,
            (RECORDED,),
            shown(
                lambda saver, slot, mine: logic.both(
                    state.cached_record(slot) == mine,
                    logic.either(below(logic, state, state.medium_record(slot)), state.medium_record(slot) == mine),
                    logic.either(state.record_dirty(slot), state.medium_record(slot) == mine),
                )
            ),
        ),
        at(logic, state, (DURABLE, ACKNOWLEDGED), shown(lambda saver, slot, mine: record_is(logic, state, slot, mine))),
        at(logic, state, (ACKNOWLEDGED,), shown(lambda saver, slot, mine: mine <= state.acknowledged)),
    )


def seen_is_not_ahead(logic: Logic, state: State) -> Condition:
    """What a save saw in the root is not newer than the root; if it is the root, it is so slot and all."""
    return at(
        logic,
        state,
        (LOADED, *COUNTED_ON),
        lambda saver: logic.both(
            state.seen(saver) >= 0,
            state.seen(saver) <= state.root,
            logic.either(state.seen(saver) != state.root, state.root == 0, state.seen_slot(saver) == state.root_slot),
        ),
    )


def witness_is_the_newest(logic: Logic, state: State) -> Condition:
    """While savers run, the newest acknowledged checkpoint is the root, or its save is about to publish it."""
    witness = state.witness
    owner = state.owner(witness)
    return logic.implies(
        logic.both(state.phase == RUNNING, state.acknowledged > 0),
        logic.either(
            logic.both(witness == state.root_slot, state.root == state.acknowledged),
            logic.both(
                state.kind(witness) == OWNED,
                state.place(owner) == ACKNOWLEDGED,
                state.slot(owner) == witness,
                state.mine(owner) == state.acknowledged,
            ),
        ),
    )
