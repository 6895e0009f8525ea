"""Publishing, as `core/save.py` does it: swap the root, hand what is left over down the row, release what falls out.

root ──> cell ──> cell ──> ... ──> last ──> free          each keeps the newer tag and passes on the older
"""

from __future__ import annotations

from typing import Any

from ..logic import Condition, Logic
from .saving import at
from .state import ACKNOWLEDGED, CARRIED, CARRYING, FREE, HELD, IDLE, RECORDED, Editor, State, Step, Variant, step


def ready_to_publish(logic: Logic, state: State, variant: Variant, saver: Any) -> Condition:
    """The save has been acknowledged."""
    return at(logic, state, saver, RECORDED if "published-early" in variant else ACKNOWLEDGED)


@step("saver")
def publish(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Swap the root from the tag that was seen to one's own; what was seen is left over."""
    slot, seen_slot = state.slot(saver), state.seen_slot(saver)
    root, root_slot = state.held(logic.first), state.held_slot(logic.first)
    same = logic.both(root == state.seen(saver), logic.either(root == 0, root_slot == seen_slot))
    if "slot-compared" in variant:
        neither = logic.both(root == 0, state.seen(saver) == 0)
        same = logic.either(neither, logic.both(root > 0, state.seen(saver) > 0, root_slot == seen_slot))
    guarded = state.seen(saver) < state.mine(saver) if "no-guard" not in variant else True
    displaced = state.seen(saver) > 0
    edit = Editor(logic, state).put("held", logic.first, state.mine(saver)).put("held_slot", logic.first, slot)
    edit.put("kind", slot, FREE if "own-released" in variant else HELD).put("cell_of", slot, logic.first)
    if "released-before-swap" in variant:
        edit.put("place", saver, IDLE)
    else:
        leave(logic, state, variant, edit, saver, displaced, state.seen(saver), seen_slot)
    edit.set(witness=logic.when(state.acknowledged <= state.mine(saver), slot, state.witness))
    if "pointer-believed" in variant:
        edit.set(cached_pointer=state.mine(saver), cached_pointer_slot=slot)
    return logic.both(ready_to_publish(logic, state, variant, saver), guarded, same), edit.done()


def leave(
    logic: Logic,
    state: State,
    variant: Variant,
    edit: Editor,
    saver: Any,
    is_left: Condition,
    sequence: Any,
    slot: Any,
) -> None:
    """The save carries this tag from now on, to offer it to the cells after the root; or nothing, and is at its end."""
    before = edit.done()
    falls_out = "displaced-released" in variant
    edit.put("kind", slot, logic.when(is_left, FREE if falls_out else CARRIED, before.kind(slot)))
    edit.put("owner", slot, logic.when(is_left, saver, before.owner(slot)))
    edit.put("left", saver, sequence).put("left_slot", saver, slot).put("cell", saver, logic.first)
    edit.put("place", saver, IDLE if falls_out else logic.when(is_left, CARRYING, IDLE))


@step("saver")
def look_again(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Lost to an older tag: try from there."""
    root, root_slot = state.held(logic.first), state.held_slot(logic.first)
    moved = logic.either(root != state.seen(saver), root_slot != state.seen_slot(saver))
    guard = logic.both(moved, state.seen(saver) < state.mine(saver), root < state.mine(saver))
    edit = Editor(logic, state).put("seen", saver, root).put("seen_slot", saver, root_slot)
    return logic.both(ready_to_publish(logic, state, variant, saver), guard), edit.done()


@step("saver")
def superseded(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Lost to a newer tag: one's own is left over."""
    root = state.held(logic.first)
    newer_found = logic.both(root != state.seen(saver), state.mine(saver) < root)
    guard = logic.either(state.mine(saver) <= state.seen(saver), newer_found)
    edit = Editor(logic, state)
    if "superseded-released" in variant:
        edit.put("kind", state.slot(saver), FREE).put("place", saver, IDLE)
    else:
        leave(logic, state, frozenset(), edit, saver, True, state.mine(saver), state.slot(saver))
    return logic.both(ready_to_publish(logic, state, variant, saver), guard), edit.done()


@step("saver", "cell")
def pass_on(logic: Logic, state: State, variant: Variant, saver: Any, cell: Any) -> Step:
    """The next cell holds something newer: leave it."""
    guard = logic.both(
        at(logic, state, saver, CARRYING),
        logic.follows(state.cell(saver), cell),
        state.left(saver) < state.held(cell),
    )
    return guard, Editor(logic, state).put("cell", saver, cell).done()


@step("saver", "cell")
def exchange(logic: Logic, state: State, variant: Variant, saver: Any, cell: Any) -> Step:
    """The next cell holds something older, or nothing: it keeps what was left over, and what it held is left now."""
    older = state.held(cell) < state.left(saver) if "takes-anything" not in variant else True
    guard = logic.both(at(logic, state, saver, CARRYING), logic.follows(state.cell(saver), cell), older)
    held, held_slot, left_slot = state.held(cell), state.held_slot(cell), state.left_slot(saver)
    edit = Editor(logic, state).put("held", cell, state.left(saver)).put("held_slot", cell, left_slot)
    edit.put("kind", left_slot, HELD).put("cell_of", left_slot, cell)
    before = edit.done()
    edit.put("kind", held_slot, logic.when(held > 0, CARRIED, before.kind(held_slot)))
    edit.put("owner", held_slot, logic.when(held > 0, saver, state.owner(held_slot)))
    edit.put("left", saver, held).put("left_slot", saver, held_slot).put("cell", saver, cell)
    return guard, edit.put("place", saver, logic.when(held > 0, CARRYING, IDLE)).done()


@step("saver")
def release(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Nothing comes after the last cell: release the slot that fell out."""
    guard = logic.both(at(logic, state, saver, CARRYING), state.cell(saver) == logic.last)
    return guard, Editor(logic, state).put("kind", state.left_slot(saver), FREE).put("place", saver, IDLE).done()
