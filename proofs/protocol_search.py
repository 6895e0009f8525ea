"""The protocol, run: every state that a few savers and slots can reach, or the shortest way to one that breaks a theorem.

The same steps, invariant and theorems as z3 proves, with Python's values. A *trace* is a list of steps, each a name with
the savers and slots that it is about; it is replayed from a new store, and the replay is what counts.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .logic import Values
from .protocol import (
    BY_SAVER,
    BY_SLOT,
    CARRIED,
    CARRYING,
    GLOBALS,
    IDLE,
    LOADED,
    OWNED,
    RUNNING,
    Action,
    State,
)
from .protocol_invariant import CLAUSES
from .protocol_steps import STEPS
from .protocol_theorems import STATE_THEOREMS, STEP_THEOREMS

Frozen = tuple[tuple[Any, ...], ...]
Trace = tuple[str, ...]


@dataclass(frozen=True)
class Arena:
    """How much is searched: so many slots, savers and sequences, which steps, and which mistakes are made."""

    slots: int
    savers: int
    sequences: int
    wrong: frozenset[str] = frozenset()
    steps: frozenset[str] | None = None
    """The steps that may be taken; None means every one."""

    @property
    def logic(self) -> Values:
        """Python's logic of this size."""
        return Values(self.slots, self.savers)

    def actions(self) -> list[Action]:
        """The steps that may be taken."""
        return [action for action in STEPS if self.steps is None or action.name in self.steps]

    def start(self) -> Frozen:
        """A new store."""
        slots, savers = (0,) * self.slots, (0,) * self.savers
        return ((RUNNING, 0, 0, 0, 0, 0), *(slots for _ in BY_SLOT), *(savers for _ in BY_SAVER))


def thaw(frozen: Frozen) -> State:
    """A state that steps can be taken from."""
    values: dict[str, Any] = dict(zip(GLOBALS, frozen[0], strict=True))
    for name, row in zip((*BY_SLOT, *BY_SAVER), frozen[1:], strict=True):
        values[name] = row.__getitem__
    return State(**values)


def freeze(state: State, arena: Arena) -> Frozen:
    """A state that can be compared: what nobody can read any more is 0."""
    slots, savers = range(arena.slots), range(arena.savers)
    rows = {name: [int(getattr(state, name)(slot)) for slot in slots] for name in BY_SLOT}
    rows |= {name: [getattr(state, name)(saver) for saver in savers] for name in BY_SAVER}
    for slot in slots:
        if rows["kind"][slot] not in (OWNED, CARRIED):
            rows["owner"][slot] = 0
        for what in ("record", "payload"):
            if rows[f"cached_{what}"][slot] == rows[f"medium_{what}"][slot]:
                rows[f"{what}_dirty"][slot] = 0
    for saver in savers:
        place = rows["place"][saver]
        forgotten = {"left", "left_slot"} if place != CARRYING else {"mine", "slot", "seen", "seen_slot"}
        if place == IDLE:
            forgotten = {"left", "left_slot", "mine", "slot", "seen", "seen_slot"}
        elif place == LOADED and not arena.wrong & {"count-first"}:
            forgotten |= {"mine", "slot"}
        for name in forgotten:
            rows[name][saver] = 0
    return (
        tuple(getattr(state, name) for name in GLOBALS),
        *(tuple(rows[name]) for name in (*BY_SLOT, *BY_SAVER)),
    )


def choices(kind: str, arena: Arena) -> Sequence[Any]:
    """Everything that a step can be about."""
    if kind == "slot":
        return range(arena.slots)
    if kind == "saver":
        return range(arena.savers)
    if kind == "bool":
        return (False, True)
    return [tuple(row) for row in itertools.product((False, True), repeat=arena.slots)]


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
            guard, after = action.take(logic, before, arena.wrong, *values)
            if guard and after.counter <= arena.sequences:
                yield call(action, about), before, after


def broken(theorem: str, arena: Arena, before: State, after: State) -> bool:
    """Whether a step, or the state it leads to, breaks a theorem or a clause of the invariant."""
    logic = arena.logic
    if theorem in STEP_THEOREMS:
        return not STEP_THEOREMS[theorem](logic, before, after)
    return not {**STATE_THEOREMS, **CLAUSES}[theorem](logic, after)


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


def every_reachable_state(arena: Arena, most: int) -> tuple[int, list[str]]:
    """Every state that a small store can reach satisfies each clause of the invariant and each theorem.

    Answers how many states there are, and what is broken, if anything is.
    """
    start = arena.start()
    known = {start}
    waiting = deque([start])
    wrong: list[str] = []
    while waiting and not wrong and len(known) <= most:
        for text, before, after in following(waiting.popleft(), arena):
            then = freeze(after, arena)
            new = then not in known
            names = [*STEP_THEOREMS, *((*STATE_THEOREMS, *CLAUSES) if new else ())]
            wrong += [f"{name} by {text}" for name in names if broken(name, arena, before, after)]
            if new:
                known.add(then)
                waiting.append(then)
    return len(known), wrong
