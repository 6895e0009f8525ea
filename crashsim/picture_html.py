"""A scene as one self-contained HTML page with an SVG drawing: opens anywhere, loads nothing, light and dark.

┌────────────────────────────────────────────────────────────────┐
│ the verdict, the promise, the missing edge, what was lost      │
│   nr  save  what happens              lanes      tracks        │
│    1  (2)   takes sequence 2          ●  │  │    ┃┃┃┃  ││││    │
│    …                                                           │
│ how to see it again                                            │
└────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .picture_style import (
    CHIP_LEFT,
    GROUP_GAP,
    HEAD,
    LANE,
    ROW,
    STYLE,
    TEXT_LEFT,
    TEXT_WIDTH,
    TRACK,
    colour,
)
from .scene import (
    CHANGES,
    CRASH,
    EVERYBODY,
    FAILS,
    JUDGED,
    LOOKS,
    LOST,
    OPEN,
    OUTSTANDING,
    PERSISTED,
    PERSISTS,
    REPLACED,
    SURVIVED,
    TELLS,
    WRITES,
    Bar,
    Row,
    Scene,
)


def page(scene: Scene) -> str:
    """The whole page."""
    happened = escape(scene.sentence.removeprefix(scene.promise))
    lost = "".join(f"<li>{escape(each)}</li>" for each in scene.lost)
    lost = f"<ul>{lost}</ul>" if lost else "nothing: every write was there"
    edge = f'<div class="card edge"><h2>The missing edge</h2>{escape(scene.edge.sentence)}</div>' if scene.edge else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(scene.program)} on {escape(scene.medium)}: {escape(scene.promise)} is broken</title>
<style>{STYLE}</style></head>
<body><main>
<div class="over">{escape(scene.program)} on {escape(scene.medium)} — {escape(scene.says)}</div>
<h1><b>{escape(scene.promise)}</b>{happened}</h1>
<p class="promised">The promise: {escape(scene.promised)}.</p>
<div class="cards">{edge}
<div class="card"><h2>Lost in the crash</h2>{lost}</div></div>
<figure>{drawing(scene)}{_legend()}</figure>
<footer><p>Again: <code>lastgood explore --replay {escape(scene.replay)}</code></p>
<p>Nothing here can be left out: without any one of these moves, or with any lost write given back, the promise holds.
Bounds: {escape(scene.bounds)}.</p></footer>
</main></body></html>
"""


def drawing(scene: Scene) -> str:
    """The space-time diagram as one `<svg>` element."""
    drawn = _Drawing(scene)
    body = "\n".join(drawn.parts())
    size = f'width="{drawn.width}" height="{drawn.height}" viewBox="0 0 {drawn.width} {drawn.height}"'
    label = escape(f"{scene.sentence}. {scene.edge.sentence if scene.edge else ''}", quote=True)
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" style="fill:var(--bad)"/></marker></defs>'
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" {size}>{arrow}\n{body}\n</svg>'


class _Drawing:
    """Where everything lies, and the elements in the order in which they are painted."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.lane_left = TEXT_LEFT + TEXT_WIDTH
        self.track_x: list[int] = []
        x = self.lane_left + LANE * len(scene.lanes) + 8
        previous = ""
        for track in scene.tracks:
            x += GROUP_GAP if track.group != previous else 0
            previous = track.group
            self.track_x.append(x)
            x += TRACK
        self.width = x + 14
        self.height = HEAD + ROW * len(scene.rows) + 10
        crashes = [index for index, row in enumerate(scene.rows) if row.kind == CRASH]
        self.first_crash = crashes[0] if crashes else len(scene.rows)

    def y(self, row: float) -> float:
        """The middle of a row."""
        return HEAD + ROW * (row + 0.5)

    def lane_x(self, lane: int) -> int:
        """The middle of a lane; recovery's is the last."""
        index = lane if lane >= 0 else len(self.scene.lanes) + 1 + lane
        return self.lane_left + LANE * index + LANE // 2

    def parts(self) -> Iterator[str]:
        """Every element, from the back to the front."""
        yield from self._ground()
        for bar in self.scene.bars:
            yield from self._bar(bar)
        for number, row in enumerate(self.scene.rows):
            yield f'<g class="row">{"".join(self._row(number, row))}</g>'
        yield from self._edge()

    def _ground(self) -> Iterator[str]:
        bottom = self.height - 8
        for index, name in enumerate(self.scene.lanes):
            x = self.lane_left + LANE * index + LANE // 2
            start, end = (HEAD, self.y(self.first_crash)) if index < len(self.scene.lanes) - 1 else (HEAD, bottom)
            words = name.split()
            yield f'<text class="head" x="{x}" y="{HEAD - 14}">{escape(words[-1])}</text>'
            if len(words) > 1:
                yield f'<text class="small" x="{x}" y="{HEAD - 30}" text-anchor="middle">{escape(words[0])}</text>'
            yield f'<line class="lane" x1="{x}" y1="{start}" x2="{x}" y2="{end}"/>'
        groups: dict[str, list[int]] = {}
        for track, x in zip(self.scene.tracks, self.track_x, strict=True):
            groups.setdefault(track.group, []).append(x)
            yield f'<line class="track" x1="{x}" y1="{HEAD - 4}" x2="{x}" y2="{bottom}"/>'
        for group, places in groups.items():
            middle = sum(places) / len(places)
            yield f'<text class="head" x="{middle}" y="{HEAD - 46}">{escape(group)}</text>'
        yield from self._track_names()

    def _track_names(self) -> Iterator[str]:
        """Each name once over the neighbours that share it, slanted so that it fits."""
        previous = ("", "")
        for track, x in zip(self.scene.tracks, self.track_x, strict=True):
            if track != previous and track.name != track.group:
                turn = f'transform="rotate(-40 {x} {HEAD - 12})"' if len(track.name) > 1 else 'text-anchor="middle"'
                yield f'<text class="small" x="{x}" y="{HEAD - 12}" {turn}>{escape(track.name)}</text>'
            previous = track

    def _bar(self, bar: Bar) -> Iterator[str]:
        x = self.track_x[bar.track] + (2.5 if bar.kind == OUTSTANDING else -1)
        top, bottom = self.y(bar.first), self.y(bar.last)
        if bar.end == OPEN:
            bottom = self.height - 10
        hue = colour(bar.sequence)
        whose = f"save {bar.sequence}" if bar.sequence > 0 else "a mix" if bar.sequence < 0 else "no save"
        title = f"<title>{escape(self.scene.tracks[bar.track].group)}: {whose}, {bar.kind}, {bar.end}</title>"
        yield f'<line class="{bar.kind} s{hue}" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}">{title}</line>'
        if bar.kind != OUTSTANDING:
            return
        if bar.end == LOST:
            yield _cross(x, bottom, 5)
        elif bar.end == SURVIVED:
            yield f'<circle class="s{hue}" cx="{x}" cy="{bottom}" r="4" stroke-width="2" style="fill:var(--card)"/>'
        elif bar.end in (PERSISTED, REPLACED):
            yield f'<circle class="f{hue}" cx="{x}" cy="{bottom}" r="{4 if bar.end == PERSISTED else 2}"/>'

    def _row(self, number: int, row: Row) -> Iterator[str]:
        y = self.y(number)
        if row.kind in (CRASH, JUDGED):
            yield f'<rect class="band" x="0" y="{y - ROW / 2}" width="{self.lane_left - 6}" height="{ROW}" rx="5"/>'
        if row.kind == CRASH:
            yield f'<line class="crash" x1="{TEXT_LEFT}" y1="{y + ROW / 2 - 1}" x2="{self.width - 6}" y2="{y + ROW / 2 - 1}"/>'
        if row.move and row.lane != EVERYBODY:
            yield f'<text class="number" x="28" y="{y + 4}">{row.move}</text>'
        if row.sequence > 0 and row.lane >= 0:
            yield from self._chip(y, row.sequence)
        kind = {CRASH: "bad strong", JUDGED: "bad strong", FAILS: "bad", LOOKS: "quiet"}.get(row.kind, "")
        text = row.text
        if row.kind == JUDGED:
            text = f"{self.scene.promise} is broken"
        yield f'<text class="{kind}" x="{TEXT_LEFT}" y="{y + 4.5}">{escape(text)}<title>{escape(row.text)}</title></text>'
        if row.lane != EVERYBODY:
            yield from self._mark(row, self.lane_x(row.lane), y)

    def _chip(self, y: float, sequence: int) -> Iterator[str]:
        hue = colour(sequence)
        yield f'<rect class="f{hue}" x="{CHIP_LEFT}" y="{y - 8}" width="46" height="16" rx="8" opacity=".16"/>'
        yield f'<text class="chip f{hue}" style="fill:var(--s{hue})" x="{CHIP_LEFT + 23}" y="{y + 4}">save {sequence}</text>'

    def _mark(self, row: Row, x: int, y: float) -> Iterator[str]:
        """The event on its lane, and a line to what it touches."""
        hue = colour(row.sequence)
        if row.tracks:
            far = self.track_x[row.tracks[-1]]
            yield f'<line class="guide s{hue}" x1="{x}" y1="{y}" x2="{far}" y2="{y}"/>'
        if row.kind == LOOKS:
            yield f'<circle class="s{hue}" cx="{x}" cy="{y}" r="3" stroke-width="1.5" style="fill:var(--card)"/>'
        elif row.kind == WRITES:
            yield f'<rect class="f{hue}" x="{x - 5}" y="{y - 5}" width="10" height="10" rx="2"/>'
        elif row.kind == TELLS:
            yield f'<path class="f{hue}" d="M{x} {y - 8} {x + 8} {y} {x} {y + 8} {x - 8} {y}z"/>'
        elif row.kind == FAILS:
            yield _cross(x, y, 5)
        elif row.kind == PERSISTS:
            yield f'<circle class="f{hue}" cx="{x}" cy="{y}" r="4"/>'
            yield f'<circle class="s{hue}" cx="{x}" cy="{y}" r="7" fill="none" stroke-width="1.5"/>'
        else:
            yield f'<circle class="f{hue}" cx="{x}" cy="{y}" r="{5 if row.kind == CHANGES else 4}"/>'

    def _edge(self) -> Iterator[str]:
        edge = self.scene.edge
        if edge is None:
            return
        row = self.scene.rows[edge.before]
        x, y = self.lane_x(row.lane), self.y(edge.before)
        yield f'<circle class="missing" cx="{x}" cy="{y}" r="12" stroke-dasharray="none"/>'
        if edge.track < 0:
            return
        far, high = self.track_x[edge.track] + 2.5, self.y(edge.before) - ROW * 0.5
        yield f'<circle class="missing" cx="{far}" cy="{high}" r="6" stroke-dasharray="none"/>'
        middle = (far + x) / 2
        label, anchor = (middle, "middle") if far - x > 100 else (x - 16, "end")
        yield f'<path class="missing" marker-end="url(#arrow)" d="M{far - 6} {high} Q{middle} {high - 6} {x + 14} {y - 3}"/>'
        yield f'<text class="small bad strong halo" x="{label}" y="{high - 9}" text-anchor="{anchor}">missing</text>'


def _cross(x: float, y: float, size: float) -> str:
    low, high = y - size, y + size
    return f'<path class="cross" d="M{x - size} {low} {x + size} {high}M{x + size} {low} {x - size} {high}"/>'


def _legend() -> str:
    """What the signs mean."""
    signs = (
        ('<line class="settled s1" x1="3" y1="8" x2="21" y2="8"/>', "durable"),
        ('<line class="outstanding s1" x1="2" y1="8" x2="22" y2="8"/>', "written, not known to be durable"),
        ('<line class="settled s-1" x1="3" y1="8" x2="21" y2="8"/>', "torn, or a mix of several saves"),
        ('<circle class="f1" cx="12" cy="8" r="4"/>', "a persist made it durable"),
        (_cross(12, 8, 4.5), "lost in the crash, or a step that fails"),
        ('<circle class="s1" cx="12" cy="8" r="4" fill="none" stroke-width="2"/>', "there by luck"),
        ('<rect class="f1" x="7" y="3" width="10" height="10" rx="2"/>', "writes"),
        ('<path class="f1" d="M12 1 19 8 12 15 5 8z"/>', "acknowledged"),
        ('<line class="missing" x1="1" y1="8" x2="23" y2="8"/>', "the edge that is missing"),
    )
    items = (f'<span><svg width="24" height="16">{sign}</svg>{text}</span>' for sign, text in signs)
    return f"<figcaption>{''.join(items)}</figcaption>"
