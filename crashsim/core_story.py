"""Words for what happens in a counterexample: the verdict, each move, each step of recovery, what a medium shows.

Savers are A, B, …; a save is named by its sequence once it has one. `core_scene` puts these words in their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .bounds import CHUNK_LETTERS
from .core_system import CoreSystem, State
from .core_target import cells, rules, steps
from .core_words import tag_text
from .programs import TOUCHES
from .replay import split_path
from .search import Counterexample
from .store_layout import MIXED, NOTHING, tag_in

LOOKS, CHANGES, WRITES, PERSISTS, TELLS, FAILS = "looks", "changes", "writes", "persists", "tells", "fails"
"""What kind of thing a move is: only what it does to others or to the medium stands out in a picture."""

_ASKED = {
    steps.PERSIST_PAYLOAD: "persists its payload in slot {slot}",
    steps.WRITE_RECORD: "writes its record to slot {slot}",
    steps.PERSIST_RECORD: "persists its record in slot {slot}",
    steps.WRITE_MARK: "writes the mark that something was acknowledged",
    steps.PERSIST_MARK: "persists the mark",
    steps.ACKNOWLEDGE: "is acknowledged",
    steps.WRITE_EMPTY_RECORD: "writes an empty record to slot {slot}",
    steps.PERSIST_EMPTY_RECORD: "persists the empty record in slot {slot}",
    steps.WAIT: "waits",
}
_FAILS = {
    steps.WRITE_PAYLOAD: "fails to write its payload to slot {slot}",
    steps.WRITE_RECORD: "fails to write its record to slot {slot}",
    steps.WRITE_EMPTY_RECORD: "fails to write an empty record to slot {slot}",
    steps.PERSIST_PAYLOAD: "fails to persist its payload in slot {slot}",
    steps.PERSIST_RECORD: "fails to persist its record in slot {slot}",
    steps.PERSIST_EMPTY_RECORD: "fails to persist the empty record in slot {slot}",
    steps.WRITE_MARK: "fails to write the mark",
    steps.PERSIST_MARK: "fails to persist the mark",
}
_LIES = "persists slot {slot}, is told that it is durable, and the disk lies"
_MARK = {rules.MARK_ABSENT: "absent", rules.MARK_UNDER_WAY: "under way", rules.MARK_DURABLE: "durable"}
_RECOVERY = {
    steps.REWRITE_RECORD: "writes the record of slot {slot} again",
    steps.REWRITE_PAYLOAD: "writes the payload of slot {slot} again",
    steps.WRITE_EMPTY_RECORD: "writes an empty record to slot {slot}",
    steps.WRITE_MARK: "writes the mark again",
    steps.PERSIST_MARK: "persists the mark",
}
_KINDS = {steps.ACKNOWLEDGE: TELLS, steps.WAIT: LOOKS} | {
    step: WRITES for step in (steps.WRITE_PAYLOAD, steps.WRITE_RECORD, steps.WRITE_MARK, steps.WRITE_EMPTY_RECORD)
}


class Said(NamedTuple):
    """One move in words: which save does it, what kind of thing it is, what it is."""

    sequence: int
    kind: str
    text: str


def verdict(counterexample: Counterexample) -> str:
    """One sentence: the promise, and what happened."""
    violation = counterexample.violation
    happened = _after(violation.crash) + violation.sentence
    note = f" (payload digests {violation.digests})" if violation.digests else ""
    return f"{violation.promise} is broken: {happened}{note}"


def _after(path: str) -> str:
    """A crash path as the beginning of a sentence."""
    words: list[str] = []
    for crash, during in split_path(path):
        words.append("a process crash" if crash[0] == "K" else "a power loss")
        if during:
            words.append("a completed recovery" if during == "/" else "an interrupted recovery")
    if not words:
        return ""
    return f"after {', '.join(words[:-1])}{' and ' if len(words) > 1 else ''}{words[-1]}, "


_CAME_TO = {"x": "", "y": ", having written its first sectors", "z": ", having written all of it"}
"""What a step that fails has done before, by the letter of its move."""


def said(system: CoreSystem, state: State, following: State, move: str) -> Said:
    """What a saver's move is."""
    index = 3 + int(move[0])
    node = system.driver.savers.values[state[index]].node
    after = system.driver.savers.values[following[index]].node
    sequence = node.words[cells.MY_SEQUENCE] or after.words[cells.MY_SEQUENCE]
    if node.kind == TOUCHES:
        before, now = (system.driver.cells.values[each[0]] for each in (state, following))
        kind = LOOKS if before == now else CHANGES
        return Said(sequence, kind, _touch_text(node.request, before, now))
    step = node.request[0]
    slot = rules.slot_of(node.words[cells.MY_TAG])
    if move[-1] in _CAME_TO:
        lies = step not in (steps.WRITE_PAYLOAD, steps.WRITE_RECORD) and not after.worst
        return Said(sequence, FAILS, (_LIES if lies else _FAILS[step]).format(slot=slot) + _CAME_TO[move[-1]])
    if move.endswith("o"):
        return Said(sequence, TELLS, "is told that it was overtaken, and stops writing")
    if step == steps.WRITE_PAYLOAD:
        return _chunk_said(system, state, following, CHUNK_LETTERS.index(move[1]), slot, sequence)
    return Said(sequence, _KINDS.get(step, PERSISTS), _ASKED[step].format(slot=slot))


def _chunk_said(system: CoreSystem, state: State, following: State, chunk: int, slot: int, sequence: int) -> Said:
    """A writer stores its chunk or, where persists are per thread, persists it."""
    place = system.layout.chunk_place(slot, chunk)
    before, after = (
        [each.content for each in system.store.outstanding(one[1]) if each.place == place] for one in (state, following)
    )
    stores = len(after) > len(before) or state[1] == following[1]
    verb = f"writes chunk {chunk} of its payload to" if stores else f"persists chunk {chunk} of its payload in"
    return Said(sequence, WRITES if stores else PERSISTS, f"{verb} slot {slot}")


def _touch_text(request: Sequence[object], before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """What one look at, or change of, a shared word comes to."""
    name, cell = str(request[0]), int(str(request[1]))
    was, now = before[cell], after[cell]
    if cell == cells.SEQUENCE:
        return f"takes sequence {now}" if was != now else f"looks at the last sequence: {was}"
    if cell == cells.MARKED:
        return f"looks at the mark: {_MARK[was]}" if was == now else f"notes that the mark is {_MARK[now]}"
    if cells.FREE <= cell < cells.KEPT:
        return _slot_set_text(name, cell, was, now)
    what = "the root" if cell == cells.ROOT else f"kept cell {cell - cells.KEPT}"
    if name == "load":
        return f"looks at {what}: {tag_text(was)}"
    if was == now:
        return f"tries to swap {what}, which has become {tag_text(was)}"
    return f"swaps {what} from {tag_text(was)} to {tag_text(now)}"


def _slot_set_text(name: str, cell: int, was: int, now: int) -> str:
    kind = "free" if cell < cells.QUARANTINED else "quarantined"
    if name == "load":
        return f"looks at the {kind} slots: {_slots(was) or 'none'}"
    if name == "compare_swap":
        return f"acquires slot {_slots(was - now)}" if was != now else f"finds the {kind} slots changed"
    return f"releases slot {_slots(now - was)}" if kind == "free" else f"quarantines slot {_slots(now - was)}"


def _slots(mask: int) -> str:
    return ", ".join(str(slot) for slot in range(mask.bit_length()) if mask >> slot & 1)


def recovery_text(step: int, slot: int, *, failed: bool) -> str:
    """One step of a recovery."""
    return _RECOVERY.get(step, "persists slot {slot}").format(slot=slot) + (", which fails" if failed else "")


def slot_texts(system: CoreSystem, medium: int) -> list[str]:
    """What a program finds in each slot."""
    contents = system.store.contents(medium)
    return [
        f"slot {slot}: record {_content_text(record, 'torn')}, payload {_content_text(payload, 'a mix')}"
        for slot, (record, payload) in enumerate(zip(contents.records, contents.payloads, strict=True))
    ]


def _content_text(content: int, mixed: str) -> str:
    if content == MIXED:
        return mixed
    return "empty" if content == NOTHING else f"of save {rules.sequence_of(tag_in(content))}"
