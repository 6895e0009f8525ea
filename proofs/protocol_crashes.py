"""What the world does: writing back, tearing, killing, cutting the power; and the steps of recovery, as `core/recover.py`."""

from __future__ import annotations

from typing import Any

from .logic import Logic, Of, everywhere
from .protocol import FREE, IDLE, KEPT, ROOT, RUNNING, STOPPED, SURVEYED, Editor, State, Step, step
from .protocol_saving import Wrong


@step("slot")
def write_back_record(logic: Logic, state: State, wrong: Wrong, slot: Any) -> Step:
    """The cache writes a record back, of its own accord."""
    return state.record_dirty(slot), Editor(logic, state).put("medium_record", slot, state.cached_record(slot)).done()


@step("slot")
def tear_record(logic: Logic, state: State, wrong: Wrong, slot: Any) -> Step:
    """The cache writes a part of a changed record back: its own digest gives it away."""
    guard = logic.both(state.record_dirty(slot), state.medium_record(slot) != state.cached_record(slot))
    return guard, Editor(logic, state).put("medium_record", slot, 0).done()


@step("slot")
def write_back_payload(logic: Logic, state: State, wrong: Wrong, slot: Any) -> Step:
    """The cache writes a payload back, of its own accord."""
    return state.payload_dirty(slot), Editor(logic, state).put(
        "medium_payload", slot, state.cached_payload(slot)
    ).done()


@step("slot")
def tear_payload(logic: Logic, state: State, wrong: Wrong, slot: Any) -> Step:
    """The cache writes a part of a changed payload back: a mixture, which nothing gives away."""
    guard = logic.both(state.payload_dirty(slot), state.medium_payload(slot) != state.cached_payload(slot))
    return guard, Editor(logic, state).put("medium_payload", slot, 0).done()


@step()
def kill(logic: Logic, state: State, wrong: Wrong) -> Step:
    """The process is gone, and its memory; the cache is left, and goes on being written back."""
    return True, without_process(logic, state, state.cached_record, state.cached_payload).done()


@step()
def lose_power(logic: Logic, state: State, wrong: Wrong) -> Step:
    """The cache is gone as well."""
    edit = without_process(logic, state, state.medium_record, state.medium_payload)
    return True, edit.set(record_dirty=everywhere(False), payload_dirty=everywhere(False)).done()


def without_process(logic: Logic, state: State, record: Of, payload: Of) -> Editor:
    """The store stopped, its cache holding these. What no record names is a mixture: its sequence is given out again."""

    def named(value: Any, slot: Any) -> Any:
        return logic.when(logic.one_of(value, record(slot), state.medium_record(slot)), value, 0)

    edit = Editor(logic, state).set(phase=STOPPED, root=0, counter=0, place=everywhere(IDLE), kind=everywhere(FREE))
    edit.set(cached_record=record, cached_payload=lambda slot: named(payload(slot), slot))
    return edit.set(medium_payload=lambda slot: named(state.medium_payload(slot), slot))


@step("slot", "bools")
def survey(logic: Logic, state: State, wrong: Wrong, slot: Any, keeps: Of) -> Step:
    """Take the record with the greatest sequence that can be read, keep it and some others, and write these again.

    What is read may come from the cache. Empty records are written again, too.
    """
    newest = state.cached_record(slot)
    guard = logic.both(
        state.phase == STOPPED, newest > 0, logic.every_slot(lambda other: state.cached_record(other) <= newest)
    )

    def kind(other: Any) -> Any:
        kept = logic.both(keeps(other), state.cached_record(other) > 0)
        return logic.when(other == slot, ROOT, logic.when(kept, KEPT, FREE))

    edit = Editor(logic, state).set(phase=SURVEYED, root=newest, root_slot=slot, counter=newest, kind=kind)
    return guard, written_again(logic, state, wrong, edit, kind).done()


@step()
def survey_nothing(logic: Logic, state: State, wrong: Wrong) -> Step:
    """There is no record at all. A store that acknowledged something is refused here (see `never-stuck`)."""
    nothing = logic.every_slot(lambda slot: state.cached_record(slot) == 0)
    edit = Editor(logic, state).set(phase=SURVEYED, root=0, counter=0, kind=everywhere(FREE))
    edit = written_again(logic, state, wrong, edit, everywhere(FREE))
    return logic.both(state.phase == STOPPED, nothing, state.acknowledged == 0), edit.done()


def written_again(logic: Logic, state: State, wrong: Wrong, edit: Editor, kind: Of) -> Editor:
    """Which records are dirty once recovery has written those it keeps, and the empty ones."""
    if "cache-trusted" in wrong or "persisted-not-rewritten" in wrong:
        return edit

    def dirty(slot: Any) -> Any:
        empty = state.cached_record(slot) == 0 if "ghosts-left" not in wrong else False
        return logic.either(state.record_dirty(slot), kind(slot) != FREE, empty)

    return edit.set(record_dirty=dirty)


@step()
def make_ready(logic: Logic, state: State, wrong: Wrong) -> Step:
    """Persist what was written again; only now may a slot be handed out, and the caller be told what there is."""
    edit = Editor(logic, state).set(
        phase=RUNNING,
        acknowledged=logic.larger(state.acknowledged, state.root),
        witness=logic.when(state.root > 0, state.root_slot, state.witness),
    )
    if "cache-trusted" not in wrong:

        def persisted(slot: Any) -> Any:
            empty = state.cached_record(slot) == 0 if "ghosts-left" not in wrong else False
            return logic.both(state.record_dirty(slot), logic.either(state.kind(slot) != FREE, empty))

        edit.set(
            medium_record=lambda slot: logic.when(
                persisted(slot), state.cached_record(slot), state.medium_record(slot)
            ),
            record_dirty=lambda slot: logic.both(state.record_dirty(slot), logic.no(persisted(slot))),
        )
    return state.phase == SURVEYED, edit.done()


@step("bools")
def fail_ready(logic: Logic, state: State, wrong: Wrong, stays_dirty: Of) -> Step:
    """A persist of recovery failed: no slot is handed out, and the next recovery starts from the cache again."""
    edit = Editor(logic, state).set(phase=STOPPED, root=0, counter=0, kind=everywhere(FREE))
    edit.set(record_dirty=lambda slot: logic.both(state.record_dirty(slot), stays_dirty(slot)))
    return state.phase == SURVEYED, edit.done()
