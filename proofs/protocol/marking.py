"""The mark, "something was acknowledged once", as `core/save.py` makes it: once in a store's life, before the first
acknowledgement. It tells a new store from one that has lost everything.
"""

from __future__ import annotations

from typing import Any

from ..logic import Logic
from .saving import at
from .state import (
    DURABLE,
    MARK_ABSENT,
    MARK_DURABLE,
    MARK_PERSISTED,
    MARK_UNDER_WAY,
    MARK_WRITTEN,
    MARKED,
    MARKING,
    RECORDED,
    UNMARKED,
    Editor,
    State,
    Step,
    Variant,
    step,
    written_back,
)


def before_mark(variant: Variant) -> int:
    """Where a save begins to care for the mark."""
    return RECORDED if "marked-first" in variant else DURABLE


@step("saver")
def find_mark(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """The mark is durable already."""
    guard = logic.both(at(logic, state, saver, before_mark(variant)), state.marked == MARK_DURABLE)
    return guard, Editor(logic, state).put("place", saver, MARKED).done()


@step("saver")
def claim_mark(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """There is no mark: make it, alone. A persist that fails would make another save's look right."""
    absent = state.marked != MARK_DURABLE if "mark-by-many" in variant else state.marked == MARK_ABSENT
    edit = Editor(logic, state).put("place", saver, MARKING).set(marked=MARK_UNDER_WAY, marker=saver)
    return logic.both(at(logic, state, saver, before_mark(variant)), absent), edit.done()


@step("saver")
def write_mark(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Write it, in the cache."""
    edit = Editor(logic, state).put("place", saver, MARK_WRITTEN).set(cached_mark=True, mark_dirty=True)
    return at(logic, state, saver, MARKING), edit.done()


@step("saver")
def persist_mark(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Make it durable."""
    edit = Editor(logic, state).put("place", saver, MARK_PERSISTED)
    if "mark-unpersisted" not in variant:
        durable = written_back(logic, state.mark_dirty, state.cached_mark, state.medium_mark)
        edit.set(medium_mark=durable, mark_dirty=False)
    return at(logic, state, saver, MARK_WRITTEN), edit.done()


@step("saver")
def settle_mark(logic: Logic, state: State, variant: Variant, saver: Any) -> Step:
    """Tell all saves of it."""
    edit = Editor(logic, state).put("place", saver, MARKED).set(marked=MARK_DURABLE)
    return at(logic, state, saver, MARK_PERSISTED), edit.done()


@step("saver", "bool", "bool")
def fail_mark(logic: Logic, state: State, variant: Variant, saver: Any, stays_dirty: Any, reached: Any) -> Step:
    """Writing or persisting it failed; it may have reached the cache all the same. The next save may try."""
    reached = logic.both(reached, state.place(saver) == MARKING)
    edit = Editor(logic, state).put("place", saver, UNMARKED).set(marked=MARK_ABSENT)
    edit.set(cached_mark=logic.either(state.cached_mark, reached))
    edit.set(mark_dirty=logic.both(logic.either(state.mark_dirty, reached), stays_dirty))
    return at(logic, state, saver, MARKING, MARK_WRITTEN), edit.done()
