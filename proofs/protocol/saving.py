"""The steps of a save, one by one, as `core/save.py` takes them. `marking` and `publishing` go on from here.

load root ─ count ─ acquire ─ begin, end payload ─ persist payload ─ write record ─ persist record    durable point
                                                           acknowledge ─ (the mark, once in a store's life) ─┘
"""

from __future__ import annotations

from typing import Any

from ..logic import Condition, Logic
from .state import (
    ACKNOWLEDGED,
    ACQUIRED,
    COUNTED,
    DOUBTFUL,
    DURABLE,
    EMPTIED,
    EMPTYING,
    FILLED,
    FILLING,
    FREE,
    IDLE,
    LOADED,
    MARKED,
    OWNED,
    PERSISTED,
    RECORDED,
    RUNNING,
    UNMARKED,
    Editor,
    State,
    Step,
    Variant,
    step,
    written_back,
)

EDGES: dict[str, tuple[int, int]] = {
    "load": (IDLE, LOADED),
    "count": (LOADED, COUNTED),
    "acquire": (COUNTED, ACQUIRED),
    "persist_empty_record": (EMPTIED, ACQUIRED),
    "begin_payload": (ACQUIRED, FILLING),
    "end_payload": (FILLING, FILLED),
    "persist_payload": (FILLED, PERSISTED),
    "write_record": (PERSISTED, RECORDED),
    "persist_record": (RECORDED, DURABLE),
    "acknowledge": (MARKED, ACKNOWLEDGED),
}
"""The order of a save: from where to where each step leads."""

OTHER_EDGES: dict[str, dict[str, tuple[int, int]]] = {
    "one-persist": {"write_record": (FILLED, RECORDED)},
    "count-first": {"count": (IDLE, LOADED), "load": (LOADED, COUNTED)},
    "acquire-first": {"acquire": (LOADED, COUNTED), "count": (COUNTED, ACQUIRED)},
    "record-first": {"write_record": (FILLED, PERSISTED), "persist_payload": (PERSISTED, RECORDED)},
    "unjoined": {"persist_payload": (FILLING, FILLED), "end_payload": (FILLED, PERSISTED)},
    "persisted-unwritten": {"persist_record": (PERSISTED, RECORDED), "write_record": (RECORDED, DURABLE)},
    "acknowledged-early": {"acknowledge": (RECORDED, DURABLE), "persist_record": (MARKED, ACKNOWLEDGED)},
    "acknowledged-unmarked": {"acknowledge": (DURABLE, ACKNOWLEDGED)},
    "marked-first": {"persist_record": (MARKED, DURABLE), "acknowledge": (DURABLE, ACKNOWLEDGED)},
}
"""Orders that are tried in its place: mistakes, and some that are as good (see `protocol_mutants`)."""


def edge(variant: Variant, name: str) -> tuple[int, int]:
    """From where to where a step leads."""
    changed = {name: way for other in sorted(variant) for name, way in OTHER_EDGES.get(other, {}).items()}
    return changed.get(name, EDGES[name])


def at(logic: Logic, state: State, saver: Any, *places: int) -> Condition:
    """The store is ready, and the save is at one of these places."""
    return logic.both(state.phase == RUNNING, logic.one_of(state.place(saver), *places))


def begin(logic: Logic, state: State, variant: Variant, name: str, saver: Any) -> tuple[Condition, Editor]:
    """The save is where this step begins, and will be where it leads."""
    before, after = edge(variant, name)
    return at(logic, state, saver, before), Editor(logic, state).put("place", saver, after)


@step("saver")
def load(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Look at the root."""
    guard, edit = begin(logic, state, variant, "load", saver)
    edit.put("seen", saver, state.held(logic.first)).put("seen_slot", saver, state.held_slot(logic.first))
    return guard, edit.done()


@step("saver")
def count(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Take the next sequence."""
    guard, edit = begin(logic, state, variant, "count", saver)
    return guard, edit.put("mine", saver, state.counter + 1).set(counter=state.counter + 1).done()


@step("saver", "slot")
def acquire(logic: Logic, state: State, variant: Variant, saver: Any, slot: Any) -> Step:
    """Take a free slot."""
    guard, edit = begin(logic, state, variant, "acquire", saver)
    edit.put("kind", slot, OWNED).put("owner", slot, saver).put("slot", saver, slot)
    return logic.both(guard, state.kind(slot) == FREE), edit.done()


@step("saver", "slot", without="acquire-first")
def acquire_doubtful(logic: Logic, state: State, variant: Variant, saver: Any, slot: Any) -> Step:
    """Take a quarantined slot, to be emptied first."""
    guard, edit = begin(logic, state, variant, "acquire", saver)
    edit.put("kind", slot, OWNED).put("owner", slot, saver).put("slot", saver, slot)
    edit.put("place", saver, ACQUIRED if "doubt-reused" in variant else EMPTYING)
    return logic.both(guard, state.kind(slot) == DOUBTFUL), edit.done()


@step("saver")
def write_empty_record(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Overwrite the doubtful record, in the cache."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("cached_record", slot, 0).put("record_dirty", slot, True)
    place = ACQUIRED if "empty-unpersisted" in variant else EMPTIED
    return at(logic, state, saver, EMPTYING), edit.put("place", saver, place).done()


@step("saver", without="empty-unpersisted")
def persist_empty_record(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Make the empty record durable."""
    guard, edit = begin(logic, state, variant, "persist_empty_record", saver)
    return guard, persist_record_of(logic, state, edit, state.slot(saver)).done()


@step("saver", "bool")
def fail_empty_record(logic: Logic, state: State, variant: Variant, saver: Any, stays_dirty: Any) -> Step:
    """Writing or persisting the empty record failed: the slot is doubtful as before."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("kind", slot, DOUBTFUL).put("place", saver, IDLE)
    edit.put("record_dirty", slot, logic.both(state.record_dirty(slot), stays_dirty))
    return at(logic, state, saver, EMPTYING, EMPTIED), edit.done()


@step("saver")
def begin_payload(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Begin to overwrite the payload: from here it is a mixture."""
    slot = state.slot(saver)
    guard, edit = begin(logic, state, variant, "begin_payload", saver)
    return guard, edit.put("cached_payload", slot, 0).put("payload_dirty", slot, True).done()


@step("saver")
def end_payload(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """All writers are joined: the payload is whole, in the cache."""
    slot = state.slot(saver)
    guard, edit = begin(logic, state, variant, "end_payload", saver)
    return guard, edit.put("cached_payload", slot, state.mine(saver)).put("payload_dirty", slot, True).done()


@step("saver")
def overtaken(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Give up: the last cell of the row holds a newer checkpoint already."""
    looked_at = logic.first if "overtaken-by-newest" in variant else logic.last
    guard = logic.both(at(logic, state, saver, FILLED), state.mine(saver) < state.held(looked_at))
    edit = Editor(logic, state).put("kind", state.slot(saver), FREE).put("place", saver, IDLE)
    return guard, edit.set(abandoned=logic.larger(state.abandoned, state.mine(saver))).done()


@step("saver", "bool")
def fail_payload(logic: Logic, state: State, variant: Variant, saver: Any, stays_dirty: Any) -> Step:
    """Writing or persisting the payload failed: the slot is free, its old record still there."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("place", saver, IDLE)
    if "failure-leaks" not in variant:
        edit.put("kind", slot, FREE)
    edit.put("payload_dirty", slot, logic.both(state.payload_dirty(slot), stays_dirty))
    return at(logic, state, saver, ACQUIRED, FILLING, FILLED), edit.done()


@step("saver", without="one-persist")
def persist_payload(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Make the payload durable."""
    guard, edit = begin(logic, state, variant, "persist_payload", saver)
    if "payload-unpersisted" not in variant:
        persist_payload_of(logic, state, edit, state.slot(saver))
    return guard, edit.done()


@step("saver")
def write_record(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Write the record, in the cache."""
    slot = state.slot(saver)
    guard, edit = begin(logic, state, variant, "write_record", saver)
    return guard, edit.put("cached_record", slot, state.mine(saver)).put("record_dirty", slot, True).done()


@step("saver")
def persist_record(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Make the record durable: the durable point. The one persist of a store with one makes the payload durable, too."""
    slot = state.slot(saver)
    guard, edit = begin(logic, state, variant, "persist_record", saver)
    if "record-unpersisted" not in variant:
        persist_record_of(logic, state, edit, slot)
        if "one-persist" in variant:
            persist_payload_of(logic, state, edit, slot)
    return guard, edit.done()


def persist_record_of(logic: Logic, state: State, edit: Editor, slot: Any) -> Editor:
    """Write back a slot's record if it is dirty; it is clean then."""
    durable = written_back(logic, state.record_dirty(slot), state.cached_record(slot), state.medium_record(slot))
    return edit.put("medium_record", slot, durable).put("record_dirty", slot, False)


def persist_payload_of(logic: Logic, state: State, edit: Editor, slot: Any) -> Editor:
    """Write back a slot's payload if it is dirty; it is clean then."""
    durable = written_back(logic, state.payload_dirty(slot), state.cached_payload(slot), state.medium_payload(slot))
    return edit.put("medium_payload", slot, durable).put("payload_dirty", slot, False)


@step("saver", "bool", "bool")
def fail_record(logic: Logic, state: State, variant: Variant, saver: Any, stays_dirty: Any, torn: Any) -> Step:
    """Writing or persisting the record, or the mark after it, failed: the slot is doubtful."""
    slot = state.slot(saver)
    unwritten = FILLED if "one-persist" in variant else PERSISTED
    torn = logic.both(torn, state.place(saver) == unwritten)
    edit = Editor(logic, state).put("kind", slot, FREE if "doubt-freed" in variant else DOUBTFUL)
    edit.put("cached_record", slot, logic.when(torn, 0, state.cached_record(slot))).put("place", saver, IDLE)
    dirty = logic.both(logic.either(state.record_dirty(slot), torn), stays_dirty)
    last = MARKED if "marked-first" in variant else UNMARKED
    return at(logic, state, saver, unwritten, RECORDED, UNMARKED, last), edit.put("record_dirty", slot, dirty).done()


@step("saver")
def acknowledge(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Tell the caller that the checkpoint is durable."""
    guard, edit = begin(logic, state, variant, "acknowledge", saver)
    newest = state.acknowledged < state.mine(saver)
    edit.set(
        acknowledged=logic.larger(state.acknowledged, state.mine(saver)),
        witness=logic.when(newest, state.slot(saver), state.witness),
        promised=True,
    )
    if "released-before-swap" in variant:
        seen_slot = state.seen_slot(saver)
        edit.put("kind", seen_slot, logic.when(state.seen(saver) > 0, FREE, state.kind(seen_slot)))
    return guard, edit.done()
