"""What the world does: writing back, tearing, killing the process, cutting the power."""

from __future__ import annotations

from typing import Any

from ..logic import Logic, Of, everywhere
from .state import FREE, IDLE, MARK_ABSENT, STOPPED, Editor, State, Step, Variant, step


@step("slot")
def write_back_record(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """The cache writes a record back, of its own accord."""
    return state.record_dirty(slot), Editor(logic, state).put("medium_record", slot, state.cached_record(slot)).done()


@step("slot")
def tear_record(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """The cache writes a part of a changed record back: its own digest gives it away."""
    guard = logic.both(state.record_dirty(slot), state.medium_record(slot) != state.cached_record(slot))
    return guard, Editor(logic, state).put("medium_record", slot, 0).done()


@step("slot")
def write_back_payload(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """The cache writes a payload back, of its own accord."""
    edit = Editor(logic, state).put("medium_payload", slot, state.cached_payload(slot))
    return state.payload_dirty(slot), edit.done()


@step("slot")
def tear_payload(logic: Logic, state: State, variant: Variant, slot: Any) -> Step:
    """The cache writes a part of a changed payload back: a mixture."""
    guard = logic.both(state.payload_dirty(slot), state.medium_payload(slot) != state.cached_payload(slot))
    return guard, Editor(logic, state).put("medium_payload", slot, 0).done()


@step()
def write_back_mark(logic: Logic, state: State, variant: Variant) -> Step:
    """The cache writes the mark back, of its own accord. A part of it counts as a mark."""
    return state.mark_dirty, Editor(logic, state).set(medium_mark=state.cached_mark).done()


@step(only="pointer-believed")
def write_back_pointer(logic: Logic, state: State, variant: Variant) -> Step:
    """The cache writes the pointer back, of its own accord."""
    edit = Editor(logic, state).set(medium_pointer=state.cached_pointer, medium_pointer_slot=state.cached_pointer_slot)
    return True, edit.done()


@step()
def kill(logic: Logic, state: State, variant: Variant) -> Step:
    """The process is gone, and its memory; the cache is left, and goes on being written back."""
    return True, without_process(logic, state, state.cached_record, state.cached_payload).done()


@step()
def lose_power(logic: Logic, state: State, variant: Variant) -> Step:
    """The cache is gone as well."""
    edit = without_process(logic, state, state.medium_record, state.medium_payload)
    edit.set(cached_mark=state.medium_mark, mark_dirty=False)
    edit.set(cached_pointer=state.medium_pointer, cached_pointer_slot=state.medium_pointer_slot)
    return True, edit.set(record_dirty=everywhere(False), payload_dirty=everywhere(False)).done()


def without_process(logic: Logic, state: State, record: Of, payload: Of) -> Editor:
    """The store stopped, its cache holding these. What no record names is a mixture: its sequence is given out again."""

    def named(value: Any, slot: Any) -> Any:
        return logic.when(logic.one_of(value, record(slot), state.medium_record(slot)), value, 0)

    edit = Editor(logic, state).set(phase=STOPPED, counter=0, marked=MARK_ABSENT, mark_again=0)
    edit.set(place=everywhere(IDLE), kind=everywhere(FREE), taken=everywhere(False), settled=everywhere(False))
    edit.set(cached_record=record, cached_payload=lambda slot: named(payload(slot), slot))
    return edit.set(medium_payload=lambda slot: named(state.medium_payload(slot), slot))
