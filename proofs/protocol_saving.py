"""The steps of a save, one by one, as `core/save.py` takes them."""

from __future__ import annotations

from typing import Any

from .logic import Logic
from .protocol import (
    ACKNOWLEDGED,
    ACQUIRED,
    CARRIED,
    CARRYING,
    COUNTED,
    DOUBTFUL,
    DURABLE,
    EMPTIED,
    EMPTYING,
    FILLED,
    FILLING,
    FREE,
    IDLE,
    KEPT,
    LOADED,
    OWNED,
    PERSISTED,
    RECORDED,
    ROOT,
    Editor,
    State,
    Step,
    running,
    step,
)

Wrong = frozenset[str]


@step("saver")
def load(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Look at the root."""
    guard = running(logic, state, saver, COUNTED if "count-first" in wrong else IDLE)
    edit = Editor(logic, state).put("seen", saver, state.root).put("seen_slot", saver, state.root_slot)
    return guard, edit.put("place", saver, LOADED).done()


@step("saver")
def count(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Take the next sequence."""
    guard = running(logic, state, saver, IDLE if "count-first" in wrong else LOADED)
    edit = Editor(logic, state).put("mine", saver, state.counter + 1).set(counter=state.counter + 1)
    return guard, edit.put("place", saver, COUNTED).done()


@step("saver", "slot")
def acquire(logic: Logic, state: State, wrong: Wrong, saver: Any, slot: Any) -> Step:
    """Take a free slot."""
    guard = logic.both(
        running(logic, state, saver, LOADED if "count-first" in wrong else COUNTED), state.kind(slot) == FREE
    )
    edit = Editor(logic, state).put("kind", slot, OWNED).put("owner", slot, saver)
    return guard, edit.put("slot", saver, slot).put("place", saver, ACQUIRED).done()


@step("saver", "slot")
def acquire_doubtful(logic: Logic, state: State, wrong: Wrong, saver: Any, slot: Any) -> Step:
    """Take a quarantined slot, to be emptied first."""
    ready = running(logic, state, saver, LOADED if "count-first" in wrong else COUNTED)
    edit = Editor(logic, state).put("kind", slot, OWNED).put("owner", slot, saver).put("slot", saver, slot)
    place = ACQUIRED if "doubt-reused" in wrong else EMPTYING
    return logic.both(ready, state.kind(slot) == DOUBTFUL), edit.put("place", saver, place).done()


@step("saver")
def write_empty_record(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Overwrite the doubtful record, in the cache."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("cached_record", slot, 0).put("record_dirty", slot, True)
    place = ACQUIRED if "empty-unpersisted" in wrong else EMPTIED
    return running(logic, state, saver, EMPTYING), edit.put("place", saver, place).done()


@step("saver")
def persist_empty_record(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Make the empty record durable."""
    edit = persist_record_of(logic, state, Editor(logic, state), state.slot(saver))
    return running(logic, state, saver, EMPTIED), edit.put("place", saver, ACQUIRED).done()


@step("saver", "bool")
def fail_empty_record(logic: Logic, state: State, wrong: Wrong, saver: Any, stays_dirty: Any) -> Step:
    """Writing or persisting the empty record failed: the slot is doubtful as before."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("kind", slot, DOUBTFUL).put("place", saver, IDLE)
    edit.put("record_dirty", slot, logic.both(state.record_dirty(slot), stays_dirty))
    return running(logic, state, saver, EMPTYING, EMPTIED), edit.done()


@step("saver")
def begin_payload(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Begin to overwrite the payload: from here it is a mixture."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("cached_payload", slot, 0).put("payload_dirty", slot, True)
    return running(logic, state, saver, ACQUIRED), edit.put("place", saver, FILLING).done()


@step("saver")
def end_payload(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """All writers are joined: the payload is whole, in the cache."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("cached_payload", slot, state.mine(saver)).put("payload_dirty", slot, True)
    return running(logic, state, saver, FILLING), edit.put("place", saver, FILLED).done()


@step("saver")
def overtaken(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Give up for a newer checkpoint that is published."""
    guard = logic.both(running(logic, state, saver, FILLED), state.mine(saver) < state.root)
    return guard, Editor(logic, state).put("kind", state.slot(saver), FREE).put("place", saver, IDLE).done()


@step("saver", "bool")
def fail_payload(logic: Logic, state: State, wrong: Wrong, saver: Any, stays_dirty: Any) -> Step:
    """Writing or persisting the payload failed: the slot is free, its old record still there."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("place", saver, IDLE)
    if "failure-leaks" not in wrong:
        edit.put("kind", slot, FREE)
    edit.put("payload_dirty", slot, logic.both(state.payload_dirty(slot), stays_dirty))
    return running(logic, state, saver, ACQUIRED, FILLING, FILLED), edit.done()


@step("saver")
def persist_payload(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Make the payload durable."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("place", saver, PERSISTED)
    if "payload-unpersisted" not in wrong:
        durable = logic.when(state.payload_dirty(slot), state.cached_payload(slot), state.medium_payload(slot))
        edit.put("medium_payload", slot, durable).put("payload_dirty", slot, False)
    return running(logic, state, saver, FILLED), edit.done()


@step("saver")
def write_record(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Write the record, in the cache."""
    slot = state.slot(saver)
    edit = Editor(logic, state).put("cached_record", slot, state.mine(saver)).put("record_dirty", slot, True)
    before = FILLED if "record-first" in wrong else PERSISTED
    return running(logic, state, saver, before), edit.put("place", saver, RECORDED).done()


@step("saver")
def persist_record(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Make the record durable: the durable point."""
    edit = Editor(logic, state).put("place", saver, DURABLE)
    if "record-unpersisted" not in wrong:
        persist_record_of(logic, state, edit, state.slot(saver))
    return running(logic, state, saver, RECORDED), edit.done()


def persist_record_of(logic: Logic, state: State, edit: Editor, slot: Any) -> Editor:
    """Write back a slot's record if it is dirty; it is clean then."""
    durable = logic.when(state.record_dirty(slot), state.cached_record(slot), state.medium_record(slot))
    return edit.put("medium_record", slot, durable).put("record_dirty", slot, False)


@step("saver", "bool", "bool")
def fail_record(logic: Logic, state: State, wrong: Wrong, saver: Any, stays_dirty: Any, torn: Any) -> Step:
    """Writing or persisting the record, or the mark after it, failed: the slot is doubtful."""
    slot = state.slot(saver)
    edit = (
        Editor(logic, state).put("kind", slot, FREE if "doubt-freed" in wrong else DOUBTFUL).put("place", saver, IDLE)
    )
    torn = logic.both(torn, state.place(saver) == PERSISTED)
    edit.put("cached_record", slot, logic.when(torn, 0, state.cached_record(slot)))
    dirty = logic.both(logic.either(state.record_dirty(slot), torn), stays_dirty)
    return running(logic, state, saver, PERSISTED, RECORDED, DURABLE), edit.put("record_dirty", slot, dirty).done()


@step("saver")
def acknowledge(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Tell the caller that the checkpoint is durable."""
    newest = state.acknowledged < state.mine(saver)
    edit = Editor(logic, state).set(
        acknowledged=logic.larger(state.acknowledged, state.mine(saver)),
        witness=logic.when(newest, state.slot(saver), state.witness),
    )
    return running(logic, state, saver, DURABLE), edit.put("place", saver, ACKNOWLEDGED).done()


@step("saver")
def publish(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Swap the root from the tag that was seen to one's own; what was seen is left over."""
    slot, seen_slot = state.slot(saver), state.seen_slot(saver)
    same = logic.both(state.root == state.seen(saver), logic.either(state.root == 0, state.root_slot == seen_slot))
    if "slot-compared" in wrong:
        neither = logic.both(state.root == 0, state.seen(saver) == 0)
        same = logic.either(neither, logic.both(state.root > 0, state.seen(saver) > 0, state.root_slot == seen_slot))
    guarded = state.seen(saver) < state.mine(saver) if "no-guard" not in wrong else True
    displaced = state.seen(saver) > 0
    own = FREE if "own-released" in wrong else ROOT
    edit = Editor(logic, state).put("kind", slot, own)
    others = logic.when(seen_slot == slot, own, state.kind(seen_slot))
    edit.put("kind", seen_slot, logic.when(displaced, CARRIED, others))
    edit.put("owner", seen_slot, logic.when(displaced, saver, state.owner(seen_slot)))
    edit.put("left", saver, state.seen(saver)).put("left_slot", saver, seen_slot)
    edit.put("place", saver, logic.when(displaced, CARRYING, IDLE))
    edit.set(
        root=state.mine(saver),
        root_slot=slot,
        witness=logic.when(state.acknowledged <= state.mine(saver), slot, state.witness),
    )
    return logic.both(running(logic, state, saver, ACKNOWLEDGED), guarded, same), edit.done()


@step("saver")
def look_again(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Lost to an older tag: try from there."""
    moved = logic.either(state.root != state.seen(saver), state.root_slot != state.seen_slot(saver))
    guard = logic.both(moved, state.seen(saver) < state.mine(saver), state.root < state.mine(saver))
    edit = Editor(logic, state).put("seen", saver, state.root).put("seen_slot", saver, state.root_slot)
    return logic.both(running(logic, state, saver, ACKNOWLEDGED), guard), edit.done()


@step("saver")
def superseded(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Lost to a newer tag: one's own is left over."""
    slot = state.slot(saver)
    newer_found = logic.both(state.root != state.seen(saver), state.mine(saver) < state.root)
    guard = logic.either(state.mine(saver) <= state.seen(saver), newer_found)
    edit = Editor(logic, state).put("kind", slot, CARRIED).put("place", saver, CARRYING)
    edit.put("left", saver, state.mine(saver)).put("left_slot", saver, slot)
    edit.set(witness=logic.when(state.witness == slot, state.root_slot, state.witness))
    return logic.both(running(logic, state, saver, ACKNOWLEDGED), guard), edit.done()


@step("saver")
def keep(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Put what is left over into an empty cell of kept tags."""
    edit = Editor(logic, state).put("kind", state.left_slot(saver), KEPT).put("place", saver, IDLE)
    return running(logic, state, saver, CARRYING), edit.done()


@step("saver", "slot")
def exchange(logic: Logic, state: State, wrong: Wrong, saver: Any, slot: Any) -> Step:
    """Exchange what is left over for an older kept tag."""
    guard = logic.both(
        running(logic, state, saver, CARRYING), state.kind(slot) == KEPT, state.cached_record(slot) < state.left(saver)
    )
    edit = Editor(logic, state).put("kind", state.left_slot(saver), KEPT).put("kind", slot, CARRIED)
    edit.put("owner", slot, saver).put("left", saver, state.cached_record(slot)).put("left_slot", saver, slot)
    return guard, edit.done()


@step("saver")
def release(logic: Logic, state: State, wrong: Wrong, saver: Any) -> Step:
    """Release the slot that fell out."""
    edit = Editor(logic, state).put("kind", state.left_slot(saver), FREE).put("place", saver, IDLE)
    return running(logic, state, saver, CARRYING), edit.done()
