"""What there is: the store's words in memory, its cache and its medium, and where each save is.

    row         the kept tags, newest first: `held` and `held_slot` of each cell. The first cell is the root; there are
                `keep` of them. In memory; after a crash it is what recovery must not fall short of (nobody reads it)
    record      the sequence that it names, or 0: empty, or torn. Once in the cache, once on the medium
    payload     the sequence of the save that all of it is from, or 0: a mixture. Once in the cache, once on the medium
    mark        "something was acknowledged once". In memory, in the cache, on the medium
    dirty       the cache may differ and will be written back, wholly or in part, at any time, or never. A persist writes
                back what is dirty. One that *fails* may leave the page clean and the medium as it was, for good
    pointer     nobody's: the protocol has none. One mistake, that of the published listing, writes it and believes it

A step has a guard, which says when it may be taken, and a state after it. Any step may come next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..logic import Condition, Logic, Of, put

FREE, HELD, OWNED, CARRIED, DOUBTFUL, REWRITTEN, EMPTIED_AGAIN = range(7)
"""What a slot is: free, in the row, a save's own, its leftover, or quarantined. During recovery: about to be persisted."""

(
    IDLE,
    LOADED,
    COUNTED,
    EMPTYING,
    EMPTIED,
    ACQUIRED,
    FILLING,
    FILLED,
    PERSISTED,
    RECORDED,
    DURABLE,
    MARKING,
    MARK_WRITTEN,
    MARK_PERSISTED,
    UNMARKED,
    MARKED,
    ACKNOWLEDGED,
    CARRYING,
) = range(18)
"""Where a save is: what it has done last."""

OWNING = tuple(range(EMPTYING, CARRYING))
"""Where a save has a slot of its own."""

STOPPED, SURVEYED, RUNNING = range(3)
"""What a store is: crashed, read by recovery, or ready for savers."""

MARK_ABSENT, MARK_DURABLE, MARK_UNDER_WAY = range(3)
"""How far the mark has come, as the shared word says it."""

Variant = frozenset[str]
"""What is different from the protocol: mistakes by name, and `one-persist`, which is none. Empty: the protocol."""


A_SLOT, A_SAVER, A_BOOL = {"is": "slot"}, {"is": "saver"}, {"is": "bool"}
"""What a word is, when it is no number."""
OF_CELL, OF_SLOT, OF_SAVER = {"by": "cell"}, {"by": "slot"}, {"by": "saver"}
"""That each cell, slot or saver has one."""


@dataclass(frozen=True)
class State:
    """Everything that there is. What is called a ghost exists for the proof only: nobody reads it."""

    phase: Any
    counter: Any
    acknowledged: Any
    """Ghost: the newest sequence that anybody was told is durable."""
    witness: Any = field(metadata=A_SLOT)
    """Ghost: a slot that holds, durably, a checkpoint at least as new as every acknowledged one."""
    abandoned: Any = field()
    """Ghost: the newest sequence that was given up for newer ones."""
    promised: Any = field(metadata=A_BOOL)
    """Ghost: a save was acknowledged."""
    marked: Any = field()
    marker: Any = field(metadata=A_SAVER)
    """Ghost: the save that is at work on the mark."""
    cached_mark: Any = field(metadata=A_BOOL)
    medium_mark: Any = field(metadata=A_BOOL)
    mark_dirty: Any = field(metadata=A_BOOL)
    mark_again: Any = field()
    """How far recovery is with the mark: 0, written again (1), persisted (2)."""
    cached_pointer: Any = field()
    cached_pointer_slot: Any = field(metadata=A_SLOT)
    medium_pointer: Any = field()
    medium_pointer_slot: Any = field(metadata=A_SLOT)
    held: Of = field(metadata=OF_CELL)
    held_slot: Of = field(metadata=OF_CELL | A_SLOT)
    taken: Of = field(metadata=OF_CELL | A_BOOL)
    """Recovery has found a record for this cell."""
    cached_record: Of = field(metadata=OF_SLOT)
    medium_record: Of = field(metadata=OF_SLOT)
    cached_payload: Of = field(metadata=OF_SLOT)
    medium_payload: Of = field(metadata=OF_SLOT)
    record_dirty: Of = field(metadata=OF_SLOT | A_BOOL)
    payload_dirty: Of = field(metadata=OF_SLOT | A_BOOL)
    kind: Of = field(metadata=OF_SLOT)
    owner: Of = field(metadata=OF_SLOT | A_SAVER)
    """Ghost: whose it is."""
    cell_of: Of = field(metadata=OF_SLOT | {"is": "cell"})
    """Ghost: where in the row it is."""
    settled: Of = field(metadata=OF_SLOT | A_BOOL)
    """Recovery has emptied it for good."""
    place: Of = field(metadata=OF_SAVER)
    mine: Of = field(metadata=OF_SAVER)
    slot: Of = field(metadata=OF_SAVER | A_SLOT)
    seen: Of = field(metadata=OF_SAVER)
    seen_slot: Of = field(metadata=OF_SAVER | A_SLOT)
    left: Of = field(metadata=OF_SAVER)
    left_slot: Of = field(metadata=OF_SAVER | A_SLOT)
    cell: Of = field(metadata=OF_SAVER | {"is": "cell"})
    """The last cell that the leftover was offered to."""


MEANT = {each.name: each.metadata.get("is", "number") for each in fields(State)}
GLOBALS = tuple(each.name for each in fields(State) if "by" not in each.metadata)
OF = {
    kind: tuple(each.name for each in fields(State) if each.metadata.get("by") == kind)
    for kind in ("cell", "slot", "saver")
}

Step = tuple[Condition, State]
"""When it may happen, and what is then."""
Take = Callable[..., Step]


@dataclass(frozen=True)
class Action:
    """A step by name, with what it is about: a saver, a slot, a cell, a yes or no (`bool`), or one for each slot."""

    name: str
    about: tuple[str, ...]
    take: Take
    only: str = ""
    """The variant that has this step; empty: every one."""
    without: str = ""
    """The variant that does not."""


ACTIONS: list[Action] = []


def step(*about: str, only: str = "", without: str = "") -> Callable[[Take], Take]:
    """Make a function a step of the protocol."""

    def register(take: Take) -> Take:
        ACTIONS.append(Action(take.__name__, about, take, only, without))
        return take

    return register


class Editor:
    """Changes to a state, in the order in which they are made; reads see the state as it was."""

    def __init__(self, logic: Logic, state: State) -> None:
        """Begin with no changes."""
        self._logic = logic
        self._before = state
        self._changes: dict[str, Any] = {}

    def put(self, name: str, which: Any, value: Any) -> Editor:
        """Change what one slot, saver or cell has."""
        now = self._changes.get(name, getattr(self._before, name))
        self._changes[name] = put(now, which, value, self._logic)
        return self

    def set(self, **changes: Any) -> Editor:
        """Change whole words."""
        self._changes.update(changes)
        return self

    def done(self) -> State:
        """The state with the changes."""
        return replace(self._before, **self._changes)


def start(logic: Logic, state: State) -> Condition:
    """A new store: nothing written, everything free."""
    return logic.both(
        state.phase == RUNNING,
        state.counter == 0,
        state.acknowledged == 0,
        state.abandoned == 0,
        logic.no(state.promised),
        state.marked == MARK_ABSENT,
        logic.no(state.cached_mark),
        logic.no(state.medium_mark),
        logic.no(state.mark_dirty),
        state.mark_again == 0,
        state.cached_pointer == 0,
        state.medium_pointer == 0,
        logic.every_cell(lambda cell: logic.both(state.held(cell) == 0, logic.no(state.taken(cell)))),
        logic.every_slot(
            lambda slot: logic.both(
                state.cached_record(slot) == 0,
                state.medium_record(slot) == 0,
                state.cached_payload(slot) == 0,
                state.medium_payload(slot) == 0,
                logic.no(state.record_dirty(slot)),
                logic.no(state.payload_dirty(slot)),
                logic.no(state.settled(slot)),
                state.kind(slot) == FREE,
            )
        ),
        logic.every_saver(lambda saver: state.place(saver) == IDLE),
    )


def believed(logic: Logic, variant: Variant, record: Any, payload: Any) -> Condition:
    """Whether recovery takes a record for a checkpoint. With two persists it need not look at the payload."""
    if "one-persist" in variant and "digests-ignored" not in variant:
        return logic.both(record > 0, logic.digest(payload) == logic.digest(record))
    return record > 0


def written_back(logic: Logic, dirty: Any, cached: Any, medium: Any) -> Any:
    """What a persist that returns leaves on the medium."""
    return logic.when(dirty, cached, medium)
