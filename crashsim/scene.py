"""A counterexample as data for a picture: rows of events, lanes of those who act, tracks of the medium with bars on them.

              lanes        tracks: one a place of the medium
              A   B   R    slot 0      slot 1
    row 0     ·   │   │    ┃ ┃ ┃ ┃     │ │ │ │        ┃  settled: durable since the row in which the bar begins
    row 1     │   ●   │    ┃ ┃ ┃ ┃     │ │ ┊ │        ┊  outstanding: written, not known to be durable
    row 2     ✕   ✕   │    ┃ ┃ ┃ ┃     │ │ ✕ │        ✕  lost in the crash

`picture_text` and `picture_html` draw it; they know nothing of the program that was explored.
"""

from __future__ import annotations

from typing import NamedTuple

# What kind of event a row is.
LOOKS, CHANGES, WRITES, PERSISTS, TELLS, FAILS = "looks", "changes", "writes", "persists", "tells", "fails"
CRASH, FINDS, RECOVERS, JUDGED = "crash", "finds", "recovers", "judged"

# What a bar is, and how it ends.
SETTLED, OUTSTANDING = "settled", "outstanding"
OPEN, PERSISTED, LOST, SURVIVED, REPLACED = "open", "persisted", "lost", "survived", "replaced"

EVERYBODY = -1
"""The lane of a row that belongs to no one lane."""


class Row(NamedTuple):
    """One event: who, which save, what, and the tracks it touches; `move` is its number in the schedule, or 0."""

    kind: str
    lane: int
    sequence: int
    text: str
    move: int = 0
    tracks: tuple[int, ...] = ()


class Track(NamedTuple):
    """One place of the medium, and the slot or other thing it is part of."""

    group: str
    name: str


class Bar(NamedTuple):
    """What one place holds, from one row to another (exclusive); the save that wrote it, 0 for none, −1 for a mix."""

    track: int
    kind: str
    first: int
    last: int
    sequence: int
    end: str


class Edge(NamedTuple):
    """The order that is missing, in one sentence; the rows between which it would run, −1 where there is none."""

    sentence: str
    since: int
    before: int
    track: int = -1


class Scene(NamedTuple):
    """A whole counterexample."""

    program: str
    says: str
    medium: str
    promise: str
    promised: str
    sentence: str
    bounds: str
    lanes: tuple[str, ...]
    tracks: tuple[Track, ...]
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    edge: Edge | None
    lost: tuple[str, ...]
    replay: str
