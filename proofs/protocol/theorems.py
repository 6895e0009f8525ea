"""What a user is promised of the protocol. State theorems hold of every state, step theorems of every step.

They follow from the invariant, which is what the solvers are asked; the search asks them of states and steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..logic import Condition, Logic, Of
from .state import (
    ACQUIRED,
    CARRIED,
    CARRYING,
    DOUBTFUL,
    FREE,
    HELD,
    OWNED,
    RECORDED,
    RUNNING,
    STOPPED,
    State,
    Variant,
    believed,
)
from .words import owning

StateTheorem = Callable[[Logic, State, Variant], Condition]
StepTheorem = Callable[[Logic, State, State, Variant], Condition]
STATE_THEOREMS: dict[str, StateTheorem] = {}
STEP_THEOREMS: dict[str, StepTheorem] = {}


def of_states(theorem: StateTheorem) -> StateTheorem:
    """Make a function a theorem about every state."""
    STATE_THEOREMS[theorem.__name__.replace("_", "-")] = theorem
    return theorem


def of_steps(theorem: StepTheorem) -> StepTheorem:
    """Make a function a theorem about every step."""
    STEP_THEOREMS[theorem.__name__.replace("_", "-")] = theorem
    return theorem


def newest_is_whole(logic: Logic, variant: Variant, record: Of, payload: Of) -> Condition:
    """Whichever slot recovery would choose, its payload is what its record's save was given."""

    def there(slot: Any) -> Condition:
        return believed(logic, variant, record(slot), payload(slot))

    def chosen(slot: Any) -> Condition:
        newest = logic.every_slot(lambda other: logic.either(logic.no(there(other)), record(other) <= record(slot)))
        return logic.both(there(slot), newest)

    return logic.every_slot(lambda slot: logic.implies(chosen(slot), payload(slot) == record(slot)))


@of_states
def recovered_is_whole(logic: Logic, state: State, variant: Variant) -> Condition:
    """At every moment, what recovery would choose after a kill or a power loss is what one save was given, whole."""
    if "pointer-believed" in variant:
        slot, sequence = state.medium_pointer_slot, state.medium_pointer
        return logic.implies(sequence > 0, state.medium_payload(slot) == sequence)
    return logic.both(
        newest_is_whole(logic, variant, state.medium_record, state.medium_payload),
        newest_is_whole(logic, variant, state.cached_record, state.cached_payload),
    )


@of_states
def acknowledged_survives(logic: Logic, state: State, variant: Variant) -> Condition:
    """At every moment, recovery after a kill or a power loss finds a checkpoint as new as every acknowledged one."""

    def found(record: Of, payload: Of) -> Condition:
        return logic.some_slot(
            lambda slot: logic.both(
                state.acknowledged <= record(slot), believed(logic, variant, record(slot), payload(slot))
            )
        )

    return logic.implies(
        state.acknowledged > 0,
        logic.both(found(state.medium_record, state.medium_payload), found(state.cached_record, state.cached_payload)),
    )


@of_states
def row_survives(logic: Logic, state: State, variant: Variant) -> Condition:
    """At every moment, each kept checkpoint is durable and whole, newest first: after a crash all of them are there."""

    def there(cell: Any) -> Condition:
        slot, sequence = state.held_slot(cell), state.held(cell)
        kept = logic.both(
            *(
                word(slot) == sequence
                for word in (state.cached_record, state.medium_record, state.cached_payload, state.medium_payload)
            ),
            logic.every_cell(lambda other: logic.implies(logic.before(cell, other), state.held(other) < sequence)),
        )
        return logic.implies(sequence > 0, kept)

    return logic.every_cell(there)


@of_states
def only_older_are_given_up(logic: Logic, state: State, variant: Variant) -> Condition:
    """A slot that is free, or is being overwritten, holds no record, or one older than each of `keep` that are kept."""

    def given_up(slot: Any) -> Condition:
        overwritten = logic.both(
            state.kind(slot) == OWNED,
            logic.one_of(
                state.place(state.owner(slot)), *(place for place in owning(variant) if ACQUIRED <= place < RECORDED)
            ),
        )
        return logic.either(state.kind(slot) == FREE, overwritten)

    def older(record: Any) -> Condition:
        return logic.either(record == 0, logic.every_cell(lambda cell: record < state.held(cell)))

    return logic.implies(
        state.phase == RUNNING,
        logic.every_slot(
            lambda slot: logic.implies(
                given_up(slot), logic.both(older(state.cached_record(slot)), older(state.medium_record(slot)))
            )
        ),
    )


@of_states
def abandoned_is_older(logic: Logic, state: State, variant: Variant) -> Condition:
    """A save that was given up for newer checkpoints is older than each of `keep` that are kept."""
    return logic.either(state.abandoned == 0, logic.every_cell(lambda cell: state.abandoned < state.held(cell)))


@of_states
def sequences_go_on_above(logic: Logic, state: State, variant: Variant) -> Condition:
    """While savers run, the next sequence is above every record there is, readable now or after a power loss."""
    return logic.implies(
        state.phase == RUNNING,
        logic.every_slot(
            lambda slot: logic.both(
                state.cached_record(slot) <= state.counter, state.medium_record(slot) <= state.counter
            )
        ),
    )


@of_states
def slot_has_one_user(logic: Logic, state: State, variant: Variant) -> Condition:
    """No two saves work with one slot, and no save works with a slot whose checkpoint is kept."""

    def apart(saver: Any, other: Any) -> Condition:
        working = logic.both(
            logic.one_of(state.place(saver), *owning(variant)), logic.one_of(state.place(other), *owning(variant))
        )
        return logic.either(saver == other, logic.no(working), state.slot(saver) != state.slot(other))

    def not_kept(saver: Any) -> Condition:
        slot = state.slot(saver)
        kept = logic.no(
            logic.every_cell(lambda cell: logic.either(state.held(cell) == 0, state.held_slot(cell) != slot))
        )
        return logic.no(logic.both(logic.one_of(state.place(saver), *owning(variant)), kept))

    return logic.every_saver(
        lambda saver: logic.both(not_kept(saver), logic.every_saver(lambda other: apart(saver, other)))
    )


@of_states
def every_slot_is_accounted_for(logic: Logic, state: State, variant: Variant) -> Condition:
    """Each slot is free, kept, quarantined, or one save's, which will put it back; at rest, nobody's."""

    def used(slot: Any) -> Condition:
        owner, cell = state.owner(slot), state.cell_of(slot)
        at_work = logic.one_of(state.place(owner), *owning(variant))
        return logic.either(
            logic.one_of(state.kind(slot), FREE, DOUBTFUL),
            logic.both(state.kind(slot) == HELD, state.held(cell) > 0, state.held_slot(cell) == slot),
            logic.both(state.kind(slot) == OWNED, at_work, state.slot(owner) == slot),
            logic.both(state.kind(slot) == CARRIED, state.place(owner) == CARRYING, state.left_slot(owner) == slot),
        )

    return logic.implies(state.phase == RUNNING, logic.every_slot(used))


@of_states
def never_stuck(logic: Logic, state: State, variant: Variant) -> Condition:
    """A store that acknowledged something never finds itself without a record."""
    nothing = logic.every_slot(lambda slot: state.cached_record(slot) == 0)
    return logic.no(logic.both(state.phase == STOPPED, state.acknowledged > 0, nothing))


@of_states
def fresh_start_is_honest(logic: Logic, state: State, variant: Variant) -> Condition:
    """Once a save was acknowledged, the mark that says so is there, after a kill and after a power loss."""
    return logic.implies(state.promised, logic.both(state.cached_mark, state.medium_mark))


@of_steps
def root_never_goes_back(logic: Logic, before: State, after: State, variant: Variant) -> Condition:
    """No step puts an older checkpoint in the place of a newer one; a restart begins at least where it was."""
    root, then = before.held(logic.first), after.held(logic.first)
    return logic.both(
        root <= then,
        before.acknowledged <= after.acknowledged,
        logic.implies(logic.both(before.phase != RUNNING, after.phase == RUNNING), before.acknowledged <= then),
    )


@of_steps
def row_never_goes_back(logic: Logic, before: State, after: State, variant: Variant) -> Condition:
    """No step, crash or restart puts an older checkpoint into any place of the row."""
    return logic.every_cell(lambda cell: before.held(cell) <= after.held(cell))


@of_steps
def kept_are_not_touched(logic: Logic, before: State, after: State, variant: Variant) -> Condition:
    """No step changes a kept checkpoint, in the cache or on the medium, while it is kept."""

    def same(cell: Any) -> Condition:
        slot = before.held_slot(cell)
        unchanged = logic.both(
            before.cached_record(slot) == after.cached_record(slot),
            before.medium_record(slot) == after.medium_record(slot),
            before.cached_payload(slot) == after.cached_payload(slot),
            before.medium_payload(slot) == after.medium_payload(slot),
        )
        return logic.implies(before.held(cell) > 0, unchanged)

    return logic.implies(before.phase == RUNNING, logic.every_cell(same))
