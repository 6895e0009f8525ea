"""A counterexample for people: what each saver did, what was durable when the machine stopped, what recovery made of it.

One line a move, in the order in which they happened; savers are A, B, …, a save is named by its sequence once it has
one. The last lines are the crash: every write that was not known to be durable, and whether it was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .bounds import CHUNK_LETTERS, USED_STORE
from .core_system import CoreSystem, State
from .core_target import cells, rules, steps
from .core_words import tag_text
from .programs import TOUCHES
from .replay import split_path
from .search import Counterexample
from .store_layout import MIXED, NOTHING, tag_in

_ASKED = {
    steps.PERSIST_PAYLOAD: "persists slot {slot}: its payload is durable",
    steps.WRITE_RECORD: "writes its record to slot {slot}",
    steps.PERSIST_RECORD: "persists slot {slot}: its record is durable",
    steps.WRITE_MARK: "writes the mark that something was acknowledged",
    steps.PERSIST_MARK: "persists the mark",
    steps.ACKNOWLEDGE: "is acknowledged",
    steps.WRITE_EMPTY_RECORD: "writes an empty record to slot {slot}",
    steps.PERSIST_EMPTY_RECORD: "persists slot {slot}: the empty record is durable",
    steps.WAIT: "waits",
}
_FAILS = {
    steps.WRITE_PAYLOAD: "fails to write its payload to slot {slot}",
    steps.WRITE_RECORD: "fails to write its record to slot {slot}",
    steps.WRITE_EMPTY_RECORD: "fails to write an empty record to slot {slot}",
    steps.PERSIST_PAYLOAD: "fails to persist slot {slot}: nobody knows what of its payload is durable",
    steps.PERSIST_RECORD: "fails to persist slot {slot}: nobody knows whether its record is durable",
    steps.PERSIST_EMPTY_RECORD: "fails to persist slot {slot}: nobody knows whether the empty record is durable",
    steps.WRITE_MARK: "fails to write the mark",
    steps.PERSIST_MARK: "fails to persist the mark: nobody knows whether it is durable",
}
_MARK = {rules.MARK_ABSENT: "absent", rules.MARK_UNDER_WAY: "under way", rules.MARK_DURABLE: "durable"}
_RECOVERY = {
    steps.REWRITE_RECORD: "writes the record of slot {slot} again",
    steps.REWRITE_PAYLOAD: "writes the payload of slot {slot} again",
    steps.WRITE_EMPTY_RECORD: "writes an empty record to slot {slot}",
    steps.WRITE_MARK: "writes the mark again",
    steps.PERSIST_MARK: "persists the mark",
}


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
        words.append("a process crash" if crash == "K" else "a power loss")
        if during:
            words.append("a completed recovery" if during == "/" else "an interrupted recovery")
    if not words:
        return ""
    return f"after {', '.join(words[:-1])}{' and ' if len(words) > 1 else ''}{words[-1]}, "


def story(system: CoreSystem, counterexample: Counterexample) -> list[str]:
    """The lines of the whole story; replays the counterexample on this system."""
    state = dict(system.initial())[counterexample.start]
    lines = ["The store is new and empty."]
    if counterexample.start == USED_STORE:
        held = ", ".join(tag_text(tag) for tag in system.ghosts.values[state[2]].acknowledged)
        lines = [f"The store holds {held}, durable."]
    width = len(str(len(counterexample.moves)))
    previous = ""
    for number, move in enumerate(counterexample.moves, 1):
        following = next(after for token, after, _ in system.moves(state) if token == move)
        if move[0] in "KP":
            lines += _crash_lines(system, state[1], move, counterexample.violation.digests)
            lines.append("    The process starts again and goes on saving.")
        else:
            if previous and previous != move[0]:
                lines.append("")
            lines.append(f"{number:>{width + 2}}  {_move_line(system, state, following, move)}")
        previous = move[0]
        state = following
    if counterexample.violation.crash:
        lines += _crash_lines(system, state[1], counterexample.violation.crash, counterexample.violation.digests)
    return lines


def _move_line(system: CoreSystem, state: State, following: State, move: str) -> str:
    """Who does what."""
    index = 3 + int(move[0])
    node = system.driver.savers.values[state[index]].node
    after = system.driver.savers.values[following[index]].node
    sequence = node.words[cells.MY_SEQUENCE] or after.words[cells.MY_SEQUENCE]
    who = f"{chr(ord('A') + int(move[0]))}  {f'save {sequence}' if sequence else 'a save':<7}  "
    if node.kind == TOUCHES:
        return who + _touch_line(
            node.request, system.driver.cells.values[state[0]], system.driver.cells.values[following[0]]
        )
    step = node.request[0]
    slot = rules.slot_of(node.words[cells.MY_TAG])
    if move.endswith("x"):
        return who + _FAILS[step].format(slot=slot)
    if move.endswith("o"):
        return who + "is told that it was overtaken, and stops writing"
    if step == steps.WRITE_PAYLOAD:
        return who + f"writes chunk {CHUNK_LETTERS.index(move[1])} of its payload to slot {slot}"
    return who + _ASKED[step].format(slot=slot)


def _touch_line(request: Sequence[object], before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """What one look at, or change of, a shared word comes to."""
    name, cell = str(request[0]), int(str(request[1]))
    was, now = before[cell], after[cell]
    if cell == cells.SEQUENCE:
        return f"takes sequence {now}"
    if cell == cells.MARKED:
        return f"looks at the mark: {_MARK[was]}" if was == now else f"notes that the mark is {_MARK[now]}"
    if cells.FREE <= cell < cells.KEPT:
        return _slot_set_line(name, cell, was, now)
    what = "the root" if cell == cells.ROOT else f"kept cell {cell - cells.KEPT}"
    if name == "load":
        return f"looks at {what}: {tag_text(was)}"
    if was == now:
        return f"tries to swap {what}, which has become {tag_text(was)}"
    return f"swaps {what} from {tag_text(was)} to {tag_text(now)}"


def _slot_set_line(name: str, cell: int, was: int, now: int) -> str:
    kind = "free" if cell < cells.QUARANTINED else "quarantined"
    if name == "load":
        return f"looks at the {kind} slots: {_slots(was) or 'none'}"
    if name == "compare_swap":
        return f"acquires slot {_slots(was - now)}" if was != now else f"finds the {kind} slots changed"
    return f"releases slot {_slots(now - was)}" if kind == "free" else f"quarantines slot {_slots(now - was)}"


def _slots(mask: int) -> str:
    return ", ".join(str(slot) for slot in range(mask.bit_length()) if mask >> slot & 1)


# --- the crash -------------------------------------------------------------------------------------------------------


def _crash_lines(system: CoreSystem, medium: int, path: str, digests: str) -> Iterator[str]:
    """Every crash of a path: what was lost, what the medium shows, what recovery does."""
    aftermath = next((each for each in system.aftermaths if each.digests == digests), system.aftermaths[0])
    for crash, during in split_path(path):
        yield ""
        if crash == "K":
            yield "--- process crash: the cache survives, and recovery reads it ---"
        else:
            yield "--- power loss ---"
            yield from _lost_lines(system, medium, int(crash[1:]))
        medium = dict(aftermath.crashes(medium))[crash]
        yield from _contents_lines(system, medium)
        run = aftermath.recovery.run(medium)
        outcome = "finds nothing usable and refuses" if run.refused else f"finds {tag_text(run.recovered)}"
        trust = f", payload digests {digests}," if digests else ""
        yield f"    Recovery{trust} {outcome}."
        if not during:
            continue
        count = len(run.stages) if during == "/" else int(during.strip(":x"))
        for position, stage in enumerate(run.stages[:count], 1):
            failed = ", which fails" if during.endswith("x") and position == count else ""
            line = _RECOVERY.get(stage.step, "persists slot {slot}").format(slot=stage.slot)
            yield f"    It {line}{failed}."
        medium = aftermath.recovery.left_by(medium, during)


def _lost_lines(system: CoreSystem, medium: int, image: int) -> Iterator[str]:
    """Each write that was not known to be durable, and whether it was there."""
    lost = system.store.power_losses(medium)[image][1]
    outstanding = system.store.outstanding(medium)
    if not outstanding:
        yield "    Everything written was durable."
    for index, operation in enumerate(outstanding):
        what = system.layout.name_of(operation.place)
        by = f"save {rules.sequence_of(tag_in(operation.content))}" if operation.content > 0 else "empty"
        yield f"    {'lost   ' if index in lost else 'durable'}  {what} ({by})"


def _contents_lines(system: CoreSystem, medium: int) -> Iterator[str]:
    """What recovery can see."""
    contents = system.store.contents(medium)
    for slot, (record, payload) in enumerate(zip(contents.records, contents.payloads, strict=True)):
        yield f"    slot {slot}: record {_content_text(record, 'torn')}, payload {_content_text(payload, 'a mix')}"


def _content_text(content: int, mixed: str) -> str:
    if content == MIXED:
        return mixed
    return "empty" if content == NOTHING else f"of save {rules.sequence_of(tag_in(content))}"
