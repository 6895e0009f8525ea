"""The protocol, run: every state that a few savers and slots can reach, or the shortest way to one that breaks a theorem.

The same steps, invariant and theorems as the solvers prove, with Python's values. A *trace* is a list of steps, each a
name with the savers, slots and cells that it is about; it is replayed from a new store, and the replay is what counts.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .logic import Values
from .protocol import steps_of
from .protocol.invariant import CLAUSES
from .protocol.state import (
    CARRIED,
    CARRYING,
    GLOBALS,
    HELD,
    IDLE,
    LOADED,
    MARK_UNDER_WAY,
    OF,
    OWNED,
    RUNNING,
    Action,
    State,
    Variant,
)
from .protocol.theorems import STATE_THEOREMS, STEP_THEOREMS

Frozen = tuple[tuple[Any, ...], ...]
Trace = tuple[str, ...]
ROWS = tuple((name, kind) for kind, names in OF.items() for name in names)


@dataclass(frozen=True)
class Arena:
    """How much is searched: so many slots, savers, cells and sequences, which steps, and what is different."""

    slots: int
    savers: int
    sequences: int
    cells: int = 1
    variant: Variant = frozenset()
    steps: frozenset[str] | None = None
    """The steps that may be taken; None means every one."""

    @property
    def logic(self) -> Values:
        """Python's logic of this size."""
        return Values(self.slots, self.savers, self.cells)

    def actions(self) -> list[Action]:
        """The steps that may be taken."""
        return [action for action in steps_of(self.variant) if self.steps is None or action.name in self.steps]

    def start(self) -> Frozen:
        """A new store."""
        counts = {"slot": self.slots, "saver": self.savers, "cell": self.cells}
        words = tuple(RUNNING if name == "phase" else 0 for name in GLOBALS)
        return (words, *((0,) * counts[kind] for _, kind in ROWS))


def thaw(frozen: Frozen) -> State:
    """A state that steps can be taken from."""
    values: dict[str, Any] = dict(zip(GLOBALS, frozen[0], strict=True))
    for (name, _), row in zip(ROWS, frozen[1:], strict=True):
        values[name] = row.__getitem__
    return State(**values)


def rows_of(state: State, arena: Arena) -> Frozen:
    """A state as rows, with nothing forgotten."""
    members = arena.logic.members
    words = tuple(int(getattr(state, name)) for name in GLOBALS)
    return (words, *(tuple(map(int, map(getattr(state, name), members[kind]))) for name, kind in ROWS))


def freeze(state: State, arena: Arena) -> Frozen:
    """A state that can be compared: what nobody can read any more is 0."""
    frozen = rows_of(state, arena)
    words = dict(zip(GLOBALS, frozen[0], strict=True))
    rows = {name: list(row) for (name, _), row in zip(ROWS, frozen[1:], strict=True)}
    if words["marked"] != MARK_UNDER_WAY:
        words["marker"] = 0
    if words["cached_mark"] == words["medium_mark"]:
        words["mark_dirty"] = 0
    for slot in range(arena.slots):
        if rows["kind"][slot] not in (OWNED, CARRIED):
            rows["owner"][slot] = 0
        if rows["kind"][slot] != HELD:
            rows["cell_of"][slot] = 0
        for what in ("record", "payload"):
            if rows[f"cached_{what}"][slot] == rows[f"medium_{what}"][slot]:
                rows[f"{what}_dirty"][slot] = 0
    for cell in range(arena.cells):
        if rows["held"][cell] == 0:
            rows["held_slot"][cell] = 0
    for saver in range(arena.savers):
        for name in unread(rows["place"][saver], arena.variant):
            rows[name][saver] = 0
    return (tuple(words.values()), *(tuple(rows[name]) for name, _ in ROWS))


def unread(place: int, variant: Variant) -> set[str]:
    """What a save at this place will not read again."""
    if place == IDLE:
        return {"left", "left_slot", "cell", "mine", "slot", "seen", "seen_slot"}
    if place == CARRYING:
        return {"mine", "slot", "seen", "seen_slot"}
    if place == LOADED and not variant & {"count-first", "acquire-first"}:
        return {"left", "left_slot", "cell", "mine", "slot"}
    return {"left", "left_slot", "cell"}


def choices(kind: str, arena: Arena) -> Sequence[Any]:
    """Everything that a step can be about."""
    if kind == "bool":
        return (False, True)
    if kind == "bools":
        return [tuple(row) for row in itertools.product((False, True), repeat=arena.slots)]
    return arena.logic.members[kind]


def call(action: Action, about: Sequence[Any]) -> str:
    """A step with what it is about, as text."""
    shown = ("".join("ny"[value] for value in each) if isinstance(each, tuple) else str(int(each)) for each in about)
    return " ".join((action.name, *shown))


def following(frozen: Frozen, arena: Arena) -> Iterator[tuple[str, State, State]]:
    """Every step from here: its text, and the states before and after it."""
    logic = arena.logic
    before = thaw(frozen)
    for action in arena.actions():
        for about in itertools.product(*(choices(kind, arena) for kind in action.about)):
            values = [each.__getitem__ if isinstance(each, tuple) else each for each in about]
            guard, after = action.take(logic, before, arena.variant, *values)
            if guard and after.counter <= arena.sequences:
                yield call(action, about), before, after


def broken(theorem: str, arena: Arena, before: State, after: State) -> bool:
    """Whether a step, or the state it leads to, breaks a theorem or a clause of the invariant."""
    logic = arena.logic
    if theorem in STEP_THEOREMS:
        return not STEP_THEOREMS[theorem](logic, before, after, arena.variant)
    return not {**STATE_THEOREMS, **CLAUSES}[theorem](logic, after, arena.variant)


def shortest_break(theorem: str, arena: Arena, most: int = 400_000) -> Trace | None:
    """The shortest way from a new store to a break of the theorem, or None when there is none among `most` states."""
    start = arena.start()
    came_from: dict[Frozen, tuple[Frozen, str] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        now = waiting.popleft()
        for text, before, after in following(now, arena):
            if broken(theorem, arena, before, after):
                return (*path_to(now, came_from), text)
            then = freeze(after, arena)
            if then not in came_from:
                came_from[then] = (now, text)
                waiting.append(then)
        if len(came_from) > most:
            return None
    return None


def path_to(state: Frozen, came_from: dict[Frozen, tuple[Frozen, str] | None]) -> Trace:
    """The steps that led to a state."""
    path = []
    while (step := came_from[state]) is not None:
        state, text = step
        path.append(text)
    return tuple(reversed(path))


def replay(trace: Trace, theorem: str, arena: Arena) -> int | None:
    """Take the steps of a trace; the number of the first one that breaks the theorem, None when none does.

    Raises ValueError when a step cannot be taken.
    """
    now = arena.start()
    for number, wanted in enumerate(trace, 1):
        taken = next(((before, after) for text, before, after in following(now, arena) if text == wanted), None)
        if taken is None:
            raise ValueError(f"step {number}, {wanted}, cannot be taken")
        if broken(theorem, arena, *taken):
            return number
        now = freeze(taken[1], arena)
    return None


@dataclass(frozen=True)
class Reached:
    """What a search of every state found."""

    states: int
    wrong: tuple[str, ...]
    """What is broken, if anything is."""
    never_taken: frozenset[str]
    """Steps that could never be taken: nothing is proved of nothing."""


def every_reachable_state(arena: Arena, most: int) -> Reached:
    """Every state that a small store can reach satisfies each clause of the invariant and each theorem."""
    start = arena.start()
    known = {start}
    waiting = deque([start])
    wrong: list[str] = []
    never_taken = {action.name for action in arena.actions()}
    while waiting and not wrong and len(known) <= most:
        for text, before, after in following(waiting.popleft(), arena):
            never_taken.discard(text.split()[0])
            then = freeze(after, arena)
            new = then not in known
            names = [*STEP_THEOREMS, *((*STATE_THEOREMS, *CLAUSES) if new else ())]
            wrong += [f"{name} by {text}" for name in names if broken(name, arena, before, after)]
            if new:
                known.add(then)
                waiting.append(then)
    return Reached(len(known), tuple(wrong), frozenset(never_taken))
