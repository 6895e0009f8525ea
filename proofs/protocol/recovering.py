"""The steps of recovery, as `core/recover.py` takes them: read all records, keep the newest, empty the rest, go on.

    survey ─ take, persist ─ take, persist ─ ... ─ the mark ─ empty, persist ─ ... ─ ready      one after the other
                  newest         next newest

What is read comes from the cache, which the medium need not have: so whatever is believed is written again, and
persisted, before any slot is handed out. An empty record is not believed either.
"""

from __future__ import annotations

from typing import Any

from ..logic import Condition, Logic, Of, everywhere
from .saving import persist_payload_of, persist_record_of
from .state import (
    EMPTIED_AGAIN,
    FREE,
    HELD,
    MARK_ABSENT,
    MARK_DURABLE,
    REWRITTEN,
    RUNNING,
    STOPPED,
    SURVEYED,
    Editor,
    State,
    Step,
    Variant,
    believed,
    step,
    written_back,
)


def candidate(logic: Logic, state: State, variant: Variant, slot: Any) -> Condition:
    """Recovery would take this slot's record for a checkpoint."""
    return believed(logic, variant, state.cached_record(slot), state.cached_payload(slot))


def at_rest(logic: Logic, state: State) -> Condition:
    """Recovery is under way, and nothing that it wrote waits to be persisted."""
    return logic.both(
        state.phase == SURVEYED,
        logic.every_slot(lambda slot: logic.no(logic.one_of(state.kind(slot), REWRITTEN, EMPTIED_AGAIN))),
        state.mark_again != 1,
    )


def all_taken(logic: Logic, state: State, variant: Variant) -> Condition:
    """The row is full, or there is nothing more to take."""
    full = state.taken(logic.last)
    nothing = logic.every_slot(
        lambda slot: logic.no(logic.both(state.kind(slot) == FREE, candidate(logic, state, variant, slot)))
    )
    return logic.either(full, nothing)


@step("slot")
def survey(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """Read every record; this slot's is the newest, whole or not. A marked store with nothing whole is refused here."""
    newest = state.cached_record(slot)
    usable = logic.some_slot(lambda other: candidate(logic, state, variant, other))
    guard = logic.both(
        state.phase == STOPPED,
        newest > 0,
        logic.every_slot(lambda other: state.cached_record(other) <= newest),
        logic.either(logic.no(state.cached_mark), usable),
    )
    return guard, surveyed(logic, state, 0 if "counter-restarts" in variant else newest).done()


@step()
def survey_nothing(logic: Logic, state: State, variant: Variant) -> Step:
    """There is no record at all, and no mark."""
    nothing = logic.every_slot(lambda slot: state.cached_record(slot) == 0)
    return logic.both(state.phase == STOPPED, nothing, logic.no(state.cached_mark)), surveyed(logic, state, 0).done()


def surveyed(logic: Logic, state: State, counter: Any) -> Editor:
    """All records are read."""
    marked = logic.when(state.cached_mark, MARK_DURABLE, MARK_ABSENT)
    return Editor(logic, state).set(phase=SURVEYED, counter=counter, marked=marked)


@step("slot")
def take(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """Write the newest record that is not in the row yet again, byte for byte; with one persist, its payload too."""
    record = state.cached_record(slot)

    def not_newer(other: Any) -> Condition:
        waiting = logic.both(state.kind(other) == FREE, candidate(logic, state, variant, other))
        return logic.either(logic.no(waiting), state.cached_record(other) <= record)

    guard = logic.both(
        at_rest(logic, state),
        logic.no(state.taken(logic.last)),
        state.kind(slot) == FREE,
        candidate(logic, state, variant, slot),
        logic.every_slot(not_newer),
    )
    edit = Editor(logic, state).put("kind", slot, REWRITTEN)
    if not variant & {"cache-trusted", "persisted-not-rewritten"}:
        edit.put("record_dirty", slot, True)
        if "one-persist" in variant and "payload-not-rewritten" not in variant:
            edit.put("payload_dirty", slot, True)
    return guard, edit.done()


@step("slot", "cell")
def persist_taken(logic: Logic, state: State, variant: Variant, slot: Any, cell: Any) -> Step:
    """Make it durable, and put it into the next cell of the row."""
    earlier = logic.every_cell(lambda other: logic.either(logic.no(logic.before(other, cell)), state.taken(other)))
    guard = logic.both(state.phase == SURVEYED, state.kind(slot) == REWRITTEN, logic.no(state.taken(cell)), earlier)
    edit = Editor(logic, state).put("kind", slot, HELD).put("cell_of", slot, cell).put("taken", cell, True)
    edit.put("held", cell, state.cached_record(slot)).put("held_slot", cell, slot)
    if "cache-trusted" not in variant:
        persist_record_of(logic, state, edit, slot)
        if "one-persist" in variant:
            persist_payload_of(logic, state, edit, slot)
    return guard, edit.done()


@step()
def rewrite_mark(logic: Logic, state: State, variant: Variant) -> Step:
    """Write the mark that was read again."""
    guard = logic.both(
        at_rest(logic, state), all_taken(logic, state, variant), state.marked == MARK_DURABLE, state.mark_again == 0
    )
    edit = Editor(logic, state).set(mark_again=1)
    if not variant & {"mark-trusted", "mark-not-rewritten"}:
        edit.set(mark_dirty=True)
    return guard, edit.done()


@step()
def persist_mark_again(logic: Logic, state: State, variant: Variant) -> Step:
    """Make it durable."""
    edit = Editor(logic, state).set(mark_again=2)
    if "mark-trusted" not in variant:
        edit.set(medium_mark=written_back(logic, state.mark_dirty, state.cached_mark, state.medium_mark))
        edit.set(mark_dirty=False)
    return logic.both(state.phase == SURVEYED, state.mark_again == 1), edit.done()


@step("slot")
def empty(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """Write an empty record over one that was passed over, or is empty."""
    guard = logic.both(
        at_rest(logic, state),
        all_taken(logic, state, variant),
        state.kind(slot) == FREE,
        logic.no(state.settled(slot)),
        logic.no(candidate(logic, state, variant, slot)),
    )
    edit = Editor(logic, state).put("kind", slot, EMPTIED_AGAIN)
    if "ghosts-left" not in variant:
        edit.put("cached_record", slot, 0).put("record_dirty", slot, True)
    return guard, edit.done()


@step("slot")
def persist_emptied(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """Make it durable."""
    edit = Editor(logic, state).put("kind", slot, FREE).put("settled", slot, True)
    if not variant & {"ghosts-left", "emptied-unpersisted"}:
        persist_record_of(logic, state, edit, slot)
    return logic.both(state.phase == SURVEYED, state.kind(slot) == EMPTIED_AGAIN), edit.done()


@step()
def ready(logic: Logic, state: State, variant: Variant) -> Step:
    """Only now may a slot be handed out, and the caller be told what there is."""

    def passed_over(slot: Any) -> Condition:
        older = logic.both(state.taken(logic.last), state.cached_record(slot) < state.held(logic.last))
        looked_at = logic.either(state.cached_record(slot) == 0, logic.no(older))
        return logic.both(state.kind(slot) == FREE, looked_at, logic.no(candidate(logic, state, variant, slot)))

    guard = logic.both(
        at_rest(logic, state),
        all_taken(logic, state, variant),
        logic.either(state.marked == MARK_ABSENT, state.mark_again == 2),
        logic.every_slot(lambda slot: logic.either(logic.no(passed_over(slot)), state.settled(slot))),
    )
    root = logic.when(state.taken(logic.first), state.held(logic.first), 0)
    edit = Editor(logic, state).set(
        phase=RUNNING,
        acknowledged=logic.larger(state.acknowledged, root),
        witness=logic.when(root > 0, state.held_slot(logic.first), state.witness),
        held=lambda cell: logic.when(state.taken(cell), state.held(cell), 0),
        taken=everywhere(False),
        settled=everywhere(False),
        mark_again=0,
    )
    return guard, edit.done()


@step("bools", "bool")
def fail_ready(logic: Logic, state: State, variant: Variant, stays_dirty: Of, mark_stays_dirty: Any) -> Step:
    """A step of recovery failed: no slot is handed out, and the next recovery starts from the cache again."""
    edit = Editor(logic, state).set(phase=STOPPED, counter=0, marked=MARK_ABSENT, mark_again=0, kind=everywhere(FREE))
    edit.set(taken=everywhere(False), settled=everywhere(False))
    edit.set(record_dirty=lambda slot: logic.both(state.record_dirty(slot), stays_dirty(slot)))
    edit.set(payload_dirty=lambda slot: logic.both(state.payload_dirty(slot), stays_dirty(slot)))
    return state.phase == SURVEYED, edit.set(mark_dirty=logic.both(state.mark_dirty, mark_stays_dirty)).done()
