"""A scene as lines of text, for a terminal or a log: the same drawing as the page, in characters.

          A B R  slot 0 slot 1 m
                 rrab   rrab   m
     8    ◉ │ │  ┃┃┃┃   ··●●   ┃  save 2 persists its payload in slot 1
     9    ■ │ │  ┃┃┃┃   ┊┊┃┃   ┃  save 2 writes its record to slot 1
    10    ◆ │ │  ┃┃┃┃   ┊┊┃┃   ┃  save 2 is acknowledged
                                  ╌╌ missing: persist record of save 2 must return before save 2 is acknowledged
    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ power loss
          │ │ │  ┃┃┃┃   ✕○┃┃   ┃

Each line is a row of spans, a text and a style; without colours the styles are left out.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from .picture_style import colour
from .scene import (
    CHANGES,
    CRASH,
    EVERYBODY,
    FAILS,
    FINDS,
    JUDGED,
    LOOKS,
    LOST,
    OPEN,
    OUTSTANDING,
    PERSISTED,
    PERSISTS,
    RECOVERS,
    SURVIVED,
    TELLS,
    WRITES,
    Bar,
    Row,
    Scene,
)

COLOURS = ("", "blue", "yellow", "cyan", "magenta", "green", "bright_blue")
BAD, QUIET = "bold red", "dim"
SIGNS = {LOOKS: "○", CHANGES: "●", WRITES: "■", PERSISTS: "◉", TELLS: "◆", FAILS: "✕", RECOVERS: "●"}


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: str = ""


Line = tuple[Span, ...]


def plain(scene: Scene) -> list[str]:
    """The drawing without colours."""
    return ["".join(span.text for span in line).rstrip() for line in drawn(scene)]


def drawn(scene: Scene) -> list[Line]:
    """The drawing, line by line."""
    grid = _Grid(scene)
    lines = grid.head()
    for number, row in enumerate(scene.rows):
        lines += grid.row(number, row)
    return lines


def style_of(sequence: int) -> str:
    """A save's colour; a mix of several is bad."""
    return BAD if sequence < 0 else COLOURS[colour(sequence)]


class _Grid:
    """What stands in each cell of the lanes and tracks."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.groups = [list(tracks) for _, tracks in groupby(range(len(scene.tracks)), lambda i: scene.tracks[i].group)]
        self.digits = len(str(max((row.move for row in scene.rows), default=0)))
        self.widths = [max(len(group), len(scene.tracks[group[0]].group)) for group in self.groups]
        self.bars: dict[int, list[Bar]] = {track: [] for track in range(len(scene.tracks))}
        for bar in scene.bars:
            self.bars[bar.track].append(bar)
        crashes = [number for number, row in enumerate(scene.rows) if row.kind == CRASH]
        self.first_crash = crashes[0] if crashes else len(scene.rows)

    def head(self) -> list[Line]:
        """Two lines that name the lanes and the tracks."""
        lanes = " ".join(name.split()[-1][0].upper() for name in self.scene.lanes)
        left = " " * (self.digits + 2)
        groups = zip(self.groups, self.widths, strict=True)
        names = [(self.scene.tracks[group[0]].group, "".join(self.scene.tracks[i].name[0] for i in group), width)
                 for group, width in groups]  # fmt: skip
        first = " ".join(f"{name:<{width}}" for name, _, width in names)
        second = " ".join(f"{letters if name != letters else '':<{width}}" for name, letters, width in names)
        return [(Span(f"{left}{lanes}  {first}", QUIET),), (Span(f"{left}{' ' * len(lanes)}  {second}", QUIET),)]

    def row(self, number: int, row: Row) -> list[Line]:
        """One row, and the missing edge above the event that should have waited."""
        lines: list[Line] = []
        edge = self.scene.edge
        margin = self.digits + 2 + 2 * len(self.scene.lanes) + 1 + sum(self.widths) + len(self.widths)
        if edge is not None and edge.before == number:
            lines.append((Span(" " * (margin + 1)), Span(f"╌╌ missing: {edge.sentence}", BAD)))
        if row.kind == CRASH:
            lines.append((Span("━" * margin + " ", BAD), Span(row.text, BAD)))
            text: Line = ()
        elif row.kind in (JUDGED, FAILS):
            text = (Span(self._whose(row) + row.text, BAD),)
        else:
            style = QUIET if row.kind in (LOOKS, FINDS) else ""
            text = (Span(self._whose(row), style_of(row.sequence)), Span(row.text, style))
        move = str(row.move) if row.move and row.lane != EVERYBODY else ""
        cells = (Span(f"{move:>{self.digits}}  ", QUIET), *self._lanes(number, row), Span(" "), *self._tracks(number))
        return [*lines, (*cells, Span(" "), *text)]

    def _whose(self, row: Row) -> str:
        return f"save {row.sequence} " if row.sequence > 0 and row.lane >= 0 else ""

    def _lanes(self, number: int, row: Row) -> list[Span]:
        spans = []
        for lane in range(len(self.scene.lanes)):
            last = lane == len(self.scene.lanes) - 1
            acts = row.lane == lane or (last and row.lane == EVERYBODY - 1)
            alive = last or number < self.first_crash
            sign = SIGNS.get(row.kind, "●") if acts else "│" if alive else " "
            spans.append(Span(sign + " ", style_of(row.sequence) if acts else QUIET))
        return spans

    def _tracks(self, number: int) -> list[Span]:
        spans = []
        for group, width in zip(self.groups, self.widths, strict=True):
            spans += [self._cell(track, number) for track in group]
            spans.append(Span(" " * (width - len(group) + 1)))
        return spans

    def _cell(self, track: int, number: int) -> Span:
        """What a track holds in a row: what is outstanding hides what is settled."""
        settled = Span("·", QUIET)
        for bar in self.bars[track]:
            style = style_of(bar.sequence)
            if bar.kind == OUTSTANDING:
                if bar.last == number and bar.end in (LOST, SURVIVED, PERSISTED):
                    return Span({LOST: "✕", SURVIVED: "○", PERSISTED: "●"}[bar.end], BAD if bar.end == LOST else style)
                if bar.first <= number < bar.last or (bar.end == OPEN and number >= bar.first):
                    return Span("■" if bar.first == number else "┊", style)
            elif bar.first <= number < bar.last:
                settled = Span("╳" if bar.sequence < 0 else "┃", style)
        return settled
