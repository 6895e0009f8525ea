"""What a user is promised of the protocol. State theorems hold of every state, step theorems of every step.

They follow from the invariant, which is what z3 is asked; the search asks them of states and steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .logic import Condition, Logic, Of
from .protocol import CARRIED, CARRYING, DOUBTFUL, FREE, KEPT, OWNED, OWNING, ROOT, RUNNING, STOPPED, State

StateTheorem = Callable[[Logic, State], Condition]
StepTheorem = Callable[[Logic, State, State], Condition]
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


def newest_is_whole(logic: Logic, record: Of, payload: Of) -> Condition:
    """Whichever slot has the greatest record, its payload is what that record's save was given."""

    def greatest(slot: Any) -> Condition:
        return logic.both(record(slot) > 0, logic.every_slot(lambda other: record(other) <= record(slot)))

    return logic.every_slot(lambda slot: logic.implies(greatest(slot), payload(slot) == record(slot)))


@of_states
def recovered_is_whole(logic: Logic, state: State) -> Condition:
    """At every moment, what recovery would choose after a kill or a power loss is whole, digests ignored."""
    return logic.both(
        newest_is_whole(logic, state.medium_record, state.medium_payload),
        newest_is_whole(logic, state.cached_record, state.cached_payload),
    )


@of_states
def acknowledged_survives(logic: Logic, state: State) -> Condition:
    """At every moment, recovery after a kill or a power loss finds a record at least as new as every acknowledged one."""
    return logic.implies(
        state.acknowledged > 0,
        logic.both(
            logic.some_slot(lambda slot: state.acknowledged <= state.medium_record(slot)),
            logic.some_slot(lambda slot: state.acknowledged <= state.cached_record(slot)),
        ),
    )


@of_states
def sequences_go_on_above(logic: Logic, state: State) -> Condition:
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
def slot_has_one_user(logic: Logic, state: State) -> Condition:
    """No two saves work with one slot, and no save works with a slot that is published or kept."""

    def apart(saver: Any, other: Any) -> Condition:
        working = logic.both(logic.one_of(state.place(saver), *OWNING), logic.one_of(state.place(other), *OWNING))
        return logic.either(saver == other, logic.no(working), state.slot(saver) != state.slot(other))

    def not_kept(saver: Any) -> Condition:
        slot = state.slot(saver)
        kept = logic.either(
            logic.one_of(state.kind(slot), ROOT, KEPT), logic.both(state.root > 0, slot == state.root_slot)
        )
        return logic.no(logic.both(logic.one_of(state.place(saver), *OWNING), kept))

    return logic.every_saver(
        lambda saver: logic.both(not_kept(saver), logic.every_saver(lambda other: apart(saver, other)))
    )


@of_states
def every_slot_is_accounted_for(logic: Logic, state: State) -> Condition:
    """Each slot is free, published, kept, quarantined, or one save's, which will put it back; at rest, nobody's."""

    def used(slot: Any) -> Condition:
        owner = state.owner(slot)
        return logic.either(
            logic.one_of(state.kind(slot), FREE, KEPT, DOUBTFUL),
            logic.both(state.kind(slot) == ROOT, state.root > 0, slot == state.root_slot),
            logic.both(state.kind(slot) == OWNED, logic.one_of(state.place(owner), *OWNING), state.slot(owner) == slot),
            logic.both(state.kind(slot) == CARRIED, state.place(owner) == CARRYING, state.left_slot(owner) == slot),
        )

    return logic.implies(state.phase == RUNNING, logic.every_slot(used))


@of_states
def never_stuck(logic: Logic, state: State) -> Condition:
    """A store that acknowledged something never finds itself without a record."""
    nothing = logic.every_slot(lambda slot: state.cached_record(slot) == 0)
    return logic.no(logic.both(state.phase == STOPPED, state.acknowledged > 0, nothing))


@of_steps
def root_never_goes_back(logic: Logic, before: State, after: State) -> Condition:
    """No step puts an older checkpoint in the place of a newer one; a restart begins at least where it was."""
    running = logic.both(before.phase == RUNNING, after.phase == RUNNING)
    return logic.both(
        logic.implies(running, before.root <= after.root),
        before.acknowledged <= after.acknowledged,
        logic.implies(logic.both(before.phase != RUNNING, after.phase == RUNNING), before.acknowledged <= after.root),
    )


@of_steps
def root_is_not_touched(logic: Logic, before: State, after: State) -> Condition:
    """No step changes the newest published checkpoint, in the cache or on the medium, while it is that."""
    slot = before.root_slot
    same = logic.both(
        before.cached_record(slot) == after.cached_record(slot),
        before.medium_record(slot) == after.medium_record(slot),
        before.cached_payload(slot) == after.cached_payload(slot),
        before.medium_payload(slot) == after.medium_payload(slot),
    )
    return logic.implies(logic.both(before.phase == RUNNING, before.root > 0), same)
