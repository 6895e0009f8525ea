"""The protocol, as a transition system: what a store's words, caches and medium hold, and every step that changes them.

Any number of slots, savers and saves; any number of crashes, each a *kill* (the cache is left) or a *power loss* (only
the medium is). A step names the saver or the slot that it concerns; any step may come next if its guard holds. It
follows `core/save.py` and `core/recover.py` line by line, in this reading:

    payload     the sequence of the save that all of it is from, or 0: a mixture. Once in the cache, once on the medium
    record      the sequence that it names, or 0: empty, or torn. Once in the cache, once on the medium
    dirty       the cache may differ and will be written back, wholly or in part, at any time, or never. A persist writes
                back what is dirty. One that *fails* may leave the page clean and the medium as it was, for good
    kept        any number of cells, in any order: more than any `keep` allows
    digests     ignored. Recovery takes the record with the greatest sequence and does not look at its payload

`wrong` names deliberate mistakes (`protocol_mutants`); without any, this is the protocol that is proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .logic import Condition, Logic, Of, put

FREE, ROOT, KEPT, OWNED, CARRIED, DOUBTFUL = range(6)
"""What a slot is: free, published and newest, published and kept, a save's own, its leftover, or quarantined."""

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
    ACKNOWLEDGED,
    CARRYING,
) = range(13)
"""Where a save is: what it has done last."""

OWNING = (EMPTYING, EMPTIED, ACQUIRED, FILLING, FILLED, PERSISTED, RECORDED, DURABLE, ACKNOWLEDGED)
"""Where a save has a slot of its own."""

STOPPED, SURVEYED, RUNNING = range(3)
"""What a store is: crashed, read by recovery, or ready for savers."""


@dataclass(frozen=True)
class State:
    """Everything that there is. `acknowledged` and `witness` exist for the proof only: nobody reads them."""

    phase: Any
    counter: Any
    root: Any
    root_slot: Any
    acknowledged: Any
    witness: Any
    """A slot that holds, durably, a checkpoint at least as new as every acknowledged one."""
    # by slot
    cached_record: Of = field(metadata={"of": "slot"})
    medium_record: Of = field(metadata={"of": "slot"})
    cached_payload: Of = field(metadata={"of": "slot"})
    medium_payload: Of = field(metadata={"of": "slot"})
    record_dirty: Of = field(metadata={"of": "slot", "bool": True})
    payload_dirty: Of = field(metadata={"of": "slot", "bool": True})
    kind: Of = field(metadata={"of": "slot"})
    owner: Of = field(metadata={"of": "slot", "is": "saver"})
    # by saver
    place: Of = field(metadata={"of": "saver"})
    mine: Of = field(metadata={"of": "saver"})
    slot: Of = field(metadata={"of": "saver", "is": "slot"})
    seen: Of = field(metadata={"of": "saver"})
    seen_slot: Of = field(metadata={"of": "saver", "is": "slot"})
    left: Of = field(metadata={"of": "saver"})
    left_slot: Of = field(metadata={"of": "saver", "is": "slot"})


GLOBALS = tuple(each.name for each in fields(State) if not each.metadata)
BY_SLOT = tuple(each.name for each in fields(State) if each.metadata.get("of") == "slot")
BY_SAVER = tuple(each.name for each in fields(State) if each.metadata.get("of") == "saver")

Step = tuple[Condition, State]
"""When it may happen, and what is then."""


@dataclass(frozen=True)
class Action:
    """A step by name, with what it is about: a saver, a slot, a yes or no, a yes or no for each slot."""

    name: str
    about: tuple[str, ...]
    take: Callable[..., Step]


class Editor:
    """Changes to a state, in the order in which they are made; reads see the state as it was."""

    def __init__(self, logic: Logic, state: State) -> None:
        """Begin with no changes."""
        self._logic = logic
        self._before = state
        self._changes: dict[str, Any] = {}

    def put(self, name: str, which: Any, value: Any) -> Editor:
        """Change what one slot or saver has."""
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


ACTIONS: list[Action] = []
Take = Callable[..., Step]


def step(*about: str) -> Callable[[Take], Take]:
    """Make a function a step of the protocol."""

    def register(take: Take) -> Take:
        ACTIONS.append(Action(take.__name__, about, take))
        return take

    return register


def running(logic: Logic, state: State, saver: Any, *places: int) -> Condition:
    """The store is ready, and the save is at one of these places."""
    return logic.both(state.phase == RUNNING, logic.one_of(state.place(saver), *places))


def start(logic: Logic, state: State) -> Condition:
    """A new store: nothing written, everything free."""
    return logic.both(
        state.phase == RUNNING,
        state.counter == 0,
        state.root == 0,
        state.acknowledged == 0,
        logic.every_slot(
            lambda slot: logic.both(
                state.cached_record(slot) == 0,
                state.medium_record(slot) == 0,
                state.cached_payload(slot) == 0,
                state.medium_payload(slot) == 0,
                logic.no(state.record_dirty(slot)),
                logic.no(state.payload_dirty(slot)),
                state.kind(slot) == FREE,
            )
        ),
        logic.every_saver(lambda saver: state.place(saver) == IDLE),
    )
