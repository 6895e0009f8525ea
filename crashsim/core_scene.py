"""A counterexample of the core as a `scene`: runs it again, and writes down who does what and what becomes of each write.

Lanes are the savers, then recovery. Tracks are the places of the medium. A bar begins where a write is issued and ends
where the medium's own rules say that it is durable, overwritten, lost or there by luck.
"""

from __future__ import annotations

from .bounds import USED_STORE
from .core_edge import missing_edge
from .core_minimal import lost_operations
from .core_story import recovery_text, said, slot_texts, verdict
from .core_surgery import cuts
from .core_system import CoreSystem
from .core_target import rules
from .core_words import kind_of, tag_text
from .mutants import MUTANTS
from .promises import PROMISES
from .replay import Replay, encode, split_path
from .scene import (
    CRASH,
    EVERYBODY,
    FINDS,
    JUDGED,
    LOST,
    OPEN,
    OUTSTANDING,
    PERSISTED,
    PERSISTS,
    RECOVERS,
    REPLACED,
    SETTLED,
    SURVIVED,
    WRITES,
    Bar,
    Edge,
    Row,
    Scene,
    Track,
)
from .search import Counterexample
from .store_layout import MIXED, Layout, tag_in


class _Tape:
    """Rows and bars so far."""

    def __init__(self, system: CoreSystem, medium: int) -> None:
        self.system = system
        self.rows: list[Row] = []
        self.bars: list[Bar] = []
        self.medium = medium
        self._outstanding: dict[tuple[int, int], int] = {}
        base = system.store.states[medium].base
        self._settled = {place: (content, 0) for place, content in enumerate(base)}

    def row(self, kind: str, lane: int, sequence: int, text: str, move: int = 0) -> None:
        """One more event, which leaves the medium as it is."""
        self.rows.append(Row(kind, lane, sequence, text, move))

    def event(self, medium: int, row: Row) -> None:
        """One more event, and the medium after it."""
        number = len(self.rows)
        store = self.system.store
        now = [(each.place, each.content) for each in store.outstanding(medium)]
        touched = []
        for key in now:
            if key not in self._outstanding:
                self._outstanding[key] = number
                touched.append(key[0])
        gone = [key for key in self._outstanding if key not in now]
        base = store.states[medium].base
        for place, content in gone:
            end = PERSISTED if base[place] == content else REPLACED
            self._close(place, content, number, end)
            touched += [place] if end == PERSISTED else []
        self._settle(base, number)
        self.rows.append(row._replace(tracks=tuple(sorted(set(touched)))))
        self.medium = medium

    def power_loss(self, image: int, row: Row) -> None:
        """The machine stops, and everything outstanding is decided."""
        number = len(self.rows)
        store = self.system.store
        after, taken = store.power_losses(self.medium)[image]
        outstanding = store.outstanding(self.medium)
        lost = {(outstanding[index].place, outstanding[index].content) for index in taken}
        for key in list(self._outstanding):
            self._close(*key, number, LOST if key in lost else SURVIVED)
        self._settle(store.states[after].base, number)
        self.rows.append(row._replace(tracks=tuple(sorted({place for place, _ in lost}))))
        self.medium = after

    def _close(self, place: int, content: int, number: int, end: str) -> None:
        first = self._outstanding.pop((place, content))
        self.bars.append(Bar(place, OUTSTANDING, first, number, self._sequence(place, content), end))

    def _settle(self, base: tuple[int, ...], number: int) -> None:
        for place, content in enumerate(base):
            held, first = self._settled[place]
            if held != content:
                self._settled[place] = (content, number)
                if held:
                    self.bars.append(Bar(place, SETTLED, first, number, self._sequence(place, held), REPLACED))

    def finished(self) -> tuple[Bar, ...]:
        """Every bar, those that are still open too."""
        end = len(self.rows)
        for place, content in list(self._outstanding):
            self._close(place, content, end, OPEN)
        for place, (content, first) in self._settled.items():
            if content:
                self.bars.append(Bar(place, SETTLED, first, end, self._sequence(place, content), OPEN))
        return tuple(sorted(self.bars))

    def _sequence(self, place: int, content: int) -> int:
        if content == MIXED:
            return -1
        return 0 if place == self.system.layout.mark else rules.sequence_of(tag_in(content))


def scene(system: CoreSystem, program: str, found: Counterexample) -> Scene:
    """The whole counterexample on this system, which must judge its promise in its way of recovering."""
    state = dict(system.initial())[found.start]
    tape = _Tape(system, state[1])
    opened = "the store is new and empty"
    if found.start == USED_STORE:
        held = system.ghosts.values[state[2]].acknowledged
        opened = f"the store holds {', '.join(tag_text(tag) for tag in held)}, durable"
    tape.row(FINDS, EVERYBODY, 0, opened)
    row_of_move = [0]
    for number, move in enumerate(found.moves, 1):
        following = next(after for token, after, _ in system.moves(state) if token == move)
        row_of_move.append(len(tape.rows))
        if move[0] in "KP":
            _crash(tape, move, found.violation.digests)
            tape.row(FINDS, EVERYBODY, 0, "the process starts again and goes on saving", number)
        else:
            words = said(system, state, following, move)
            tape.event(following[1], Row(words.kind, int(move[0]), words.sequence, words.text, number))
        state = following
    crash_row = len(tape.rows)
    _crash(tape, found.violation.crash, found.violation.digests)
    tape.row(JUDGED, EVERYBODY, 0, f"{found.violation.promise} is broken: {found.violation.sentence}")
    bars = tape.finished()
    return Scene(
        program=program,
        says=says_of(program),
        medium=system.bounds.medium,
        promise=found.violation.promise,
        promised=PROMISES[found.violation.promise],
        sentence=verdict(found),
        bounds=system.bounds.sentence(),
        lanes=(*(f"saver {chr(ord('A') + index)}" for index in range(_savers(found))), "recovery"),
        tracks=_tracks(system.layout),
        rows=tuple(tape.rows),
        bars=bars,
        edge=_edge(system, found, tape.rows, bars, [*row_of_move, crash_row]),
        lost=tuple(_lost_texts(system, found)),
        replay=encode(Replay(program, system.bounds, found)),
    )


def says_of(program: str) -> str:
    """What was changed in this program."""
    if program == "real":
        return "the protocol as it is"
    return (MUTANTS[program] if program in MUTANTS else cuts()[program]).says


def _savers(found: Counterexample) -> int:
    """How many savers take part."""
    return 1 + max((int(move[0]) for move in found.moves if move[0] not in "KP"), default=-1)


def _tracks(layout: Layout) -> tuple[Track, ...]:
    tracks = []
    for place in range(layout.mark):
        slot, within = divmod(place, layout.places_per_slot)
        records = len(layout.record_places(slot))
        name = "record" if within < records else "abcdefgh"[within - records]
        tracks.append(Track(f"slot {slot}", name))
    return (*tracks, Track("mark", "mark"))


def _crash(tape: _Tape, path: str, digests: str) -> None:
    """Every crash of a path: what it leaves, and what recovery makes of it."""
    system = tape.system
    aftermath = next((each for each in system.aftermaths if each.digests == digests), system.aftermaths[0])
    recovery_lane = EVERYBODY - 1
    for crash, during in split_path(path):
        if crash[0] == "P":
            tape.power_loss(int(crash[1:]), Row(CRASH, EVERYBODY, 0, "power loss"))
        else:
            after = dict(aftermath.crashes(tape.medium))[crash]
            tape.event(after, Row(CRASH, EVERYBODY, 0, "process crash: the cache survives, and recovery reads it"))
        for text in slot_texts(system, tape.medium):
            tape.row(FINDS, EVERYBODY, 0, text)
        start = tape.medium
        run = aftermath.recovery.run(start)
        trust = f"recovery, payload digests {digests}," if digests else "recovery"
        outcome = "finds nothing usable and refuses" if run.refused else f"finds {tag_text(run.recovered)}"
        tape.row(RECOVERS, recovery_lane, rules.sequence_of(run.recovered), f"{trust} {outcome}")
        count = len(run.stages) if during == "/" else int(during.strip(":x") or 0)
        for position, stage in enumerate(run.stages[:count], 1):
            failed = during.endswith("x") and position == count
            text = recovery_text(stage.step, stage.slot, failed=failed)
            kind = PERSISTS if "persists" in text else WRITES
            tape.event(stage.failed if failed else stage.medium, Row(kind, recovery_lane, 0, text))
        if during == "/":
            tape.event(run.ready, Row(RECOVERS, recovery_lane, 0, "is complete: slots may be handed out"))


def _lost_texts(system: CoreSystem, found: Counterexample) -> list[str]:
    texts = []
    for each in lost_operations(system, found):
        sequence = rules.sequence_of(tag_in(each.content))
        whose = (
            "" if kind_of(system.layout, each.place) == "mark" else f" of save {sequence}" if sequence else " (empty)"
        )
        texts.append(system.layout.name_of(each.place) + whose)
    return texts


def _edge(
    system: CoreSystem, found: Counterexample, rows: list[Row], bars: tuple[Bar, ...], row_of_move: list[int]
) -> Edge | None:
    """The missing edge, from the write that should have been durable to the event that should have waited."""
    missing = missing_edge(system, found)
    if missing is None:
        return None
    before = row_of_move[min(missing.before, len(row_of_move) - 1)]
    if missing.before > len(found.moves):
        before = max((index for index, row in enumerate(rows) if row.text.startswith("is complete")), default=before)
    for bar in bars:
        if missing.write is not None and bar.track == missing.write.place and bar.end == LOST:
            return Edge(missing.sentence, bar.first, before, bar.track)
    return Edge(missing.sentence, -1, before)
