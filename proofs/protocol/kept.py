"""Clauses of the invariant about the row of kept checkpoints and what lies below it. See `invariant`."""

from __future__ import annotations

from typing import Any

from ..logic import Condition, Logic
from .recovering import candidate
from .state import CARRIED, CARRYING, EMPTIED_AGAIN, FREE, HELD, REWRITTEN, RUNNING, SURVEYED, State, Variant
from .words import at, below, both_below, is_durable, payload_is


def row_descends(logic: Logic, state: State, variant: Variant) -> Condition:
    """The row is newest first, and its empty cells are the last ones."""
    return logic.every_cell(
        lambda cell: logic.both(
            state.held(cell) >= 0,
            logic.every_cell(
                lambda other: logic.implies(
                    logic.before(cell, other),
                    logic.either(state.held(other) == 0, state.held(other) < state.held(cell)),
                )
            ),
        )
    )


def row_is_durable(logic: Logic, state: State, variant: Variant) -> Condition:
    """Every checkpoint in the row is durable and whole, at every moment, after a crash too."""
    return logic.every_cell(
        lambda cell: logic.implies(
            state.held(cell) > 0, is_durable(logic, state, state.held_slot(cell), state.held(cell))
        )
    )


def abandoned_is_below(logic: Logic, state: State, variant: Variant) -> Condition:
    """What was given up for newer checkpoints is older than all that are kept."""
    return logic.both(state.abandoned >= 0, below(logic, state, state.abandoned))


def row_has_its_slots(logic: Logic, state: State, variant: Variant) -> Condition:
    """While savers run, the slots that the row names are the held ones, and each knows its cell."""

    def named(cell: Any) -> Condition:
        slot = state.held_slot(cell)
        return logic.implies(state.held(cell) > 0, logic.both(state.kind(slot) == HELD, state.cell_of(slot) == cell))

    def knows(slot: Any) -> Condition:
        cell = state.cell_of(slot)
        return logic.implies(state.kind(slot) == HELD, logic.both(state.held(cell) > 0, state.held_slot(cell) == slot))

    return logic.implies(state.phase == RUNNING, logic.both(logic.every_cell(named), logic.every_slot(knows)))


def free_is_below(logic: Logic, state: State, variant: Variant) -> Condition:
    """While savers run, the record of a free slot does not matter."""
    return logic.implies(
        state.phase == RUNNING,
        logic.every_slot(lambda slot: logic.implies(state.kind(slot) == FREE, both_below(logic, state, slot))),
    )


def whole_from_the_row_up(logic: Logic, state: State, variant: Variant) -> Condition:
    """Every record that could matter, in the cache or on the medium, describes a payload that is whole in both.

    With one persist it is its digest that says whether it does.
    """
    if "one-persist" in variant:
        return logic.both(True)
    return logic.every_slot(
        lambda slot: logic.both(
            *(
                logic.either(below(logic, state, record), payload_is(logic, state, slot, record))
                for record in (state.cached_record(slot), state.medium_record(slot))
            )
        )
    )


def leftover_is_carried(logic: Logic, state: State, variant: Variant) -> Condition:
    """What a save carries is durable, older than every cell that it passed, and carried by this save alone."""

    def carries(saver: Any) -> Condition:
        slot, left = state.left_slot(saver), state.left(saver)
        passed = logic.every_cell(
            lambda cell: logic.implies(logic.up_to(cell, state.cell(saver)), left < state.held(cell))
        )
        return logic.both(
            state.kind(slot) == CARRIED,
            state.owner(slot) == saver,
            left > 0,
            is_durable(logic, state, slot, left),
            passed,
        )

    def is_carried(slot: Any) -> Condition:
        owner = state.owner(slot)
        return logic.implies(
            state.kind(slot) == CARRIED, logic.both(state.place(owner) == CARRYING, state.left_slot(owner) == slot)
        )

    return logic.both(
        at(logic, state, (CARRYING,), carries),
        logic.implies(state.phase == RUNNING, logic.every_slot(is_carried)),
    )


# --- while recovery fills the row -------------------------------------------------------------------------------------


def taken_are_held(logic: Logic, state: State, variant: Variant) -> Condition:
    """Recovery fills the row from its first cell on, and what it took is held."""

    def cell_is_taken(cell: Any) -> Condition:
        slot = state.held_slot(cell)
        earlier = logic.every_cell(lambda other: logic.implies(logic.before(other, cell), state.taken(other)))
        held = logic.both(state.held(cell) > 0, state.kind(slot) == HELD, state.cell_of(slot) == cell)
        return logic.implies(state.taken(cell), logic.both(earlier, held))

    def slot_is_taken(slot: Any) -> Condition:
        cell = state.cell_of(slot)
        return logic.implies(state.kind(slot) == HELD, logic.both(state.taken(cell), state.held_slot(cell) == slot))

    return logic.both(
        logic.implies(
            state.phase == SURVEYED, logic.both(logic.every_cell(cell_is_taken), logic.every_slot(slot_is_taken))
        ),
        logic.either(state.phase == SURVEYED, logic.every_cell(lambda cell: logic.no(state.taken(cell)))),
    )


def rest_is_older(logic: Logic, state: State, variant: Variant) -> Condition:
    """What recovery has not taken yet is older than what it has, and than what it is about to take."""

    def waits(slot: Any) -> Condition:
        return logic.either(
            state.kind(slot) == REWRITTEN,
            logic.both(state.kind(slot) == FREE, candidate(logic, state, variant, slot)),
        )

    def older(slot: Any) -> Condition:
        record = state.cached_record(slot)
        than_taken = logic.every_cell(lambda cell: logic.implies(state.taken(cell), record < state.held(cell)))
        than_next = logic.every_slot(
            lambda other: logic.either(state.kind(other) != REWRITTEN, record <= state.cached_record(other))
        )
        return logic.implies(waits(slot), logic.both(than_taken, than_next))

    return logic.implies(state.phase == SURVEYED, logic.every_slot(older))


def rewritten_is_next(logic: Logic, state: State, variant: Variant) -> Condition:
    """What recovery is about to take is one checkpoint, dirty, and at least as new as its cell must hold."""

    def next_one(slot: Any) -> Condition:
        record = state.cached_record(slot)
        untaken = logic.every_cell(lambda cell: logic.either(state.taken(cell), state.held(cell) <= record))
        dirty = logic.either(state.record_dirty(slot), state.medium_record(slot) == record)
        payload_dirty = logic.either(state.payload_dirty(slot), state.medium_payload(slot) == record)
        alone = logic.every_slot(
            lambda other: logic.either(
                other == slot, logic.no(logic.one_of(state.kind(other), REWRITTEN, EMPTIED_AGAIN))
            )
        )
        return logic.both(
            candidate(logic, state, variant, slot),
            untaken,
            dirty,
            payload_dirty,
            alone,
            logic.no(state.taken(logic.last)),
        )

    return logic.implies(
        state.phase == SURVEYED,
        logic.every_slot(lambda slot: logic.implies(state.kind(slot) == REWRITTEN, next_one(slot))),
    )


def emptied_is_empty(logic: Logic, state: State, variant: Variant) -> Condition:
    """What recovery emptied is empty in the cache, and on the medium once that was persisted."""

    def emptied(slot: Any) -> Condition:
        written = logic.either(state.record_dirty(slot), state.medium_record(slot) == 0)
        nothing = state.cached_record(slot) == 0
        return logic.both(
            logic.one_of(state.kind(slot), FREE, HELD, REWRITTEN, EMPTIED_AGAIN),
            logic.implies(state.kind(slot) == EMPTIED_AGAIN, logic.both(nothing, written)),
            logic.implies(
                state.settled(slot), logic.both(nothing, state.medium_record(slot) == 0, state.kind(slot) == FREE)
            ),
        )

    return logic.implies(state.phase == SURVEYED, logic.every_slot(emptied))


def recovery_is_over(logic: Logic, state: State, variant: Variant) -> Condition:
    """Where no recovery is under way, nothing is left of one; a crashed store has no slot in use."""

    def over(slot: Any) -> Condition:
        in_use = logic.one_of(state.kind(slot), REWRITTEN, EMPTIED_AGAIN)
        crashed = logic.either(state.phase == RUNNING, state.kind(slot) == FREE)
        return logic.both(logic.no(state.settled(slot)), logic.no(in_use), crashed)

    return logic.either(state.phase == SURVEYED, logic.both(state.mark_again == 0, logic.every_slot(over)))
