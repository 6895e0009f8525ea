"""The missing edge: which event should have had to wait for which, so that the counterexample could not have happened.

A schedule without a move to spare ends with the event that does the harm. Where a power loss took writes, making them
durable before that event is enough (`mended` shows it): "persist record of save 2 must return before save 2 is
acknowledged". Where nothing was lost, the promise and that event tell what it should have waited for.
"""

from __future__ import annotations

from typing import NamedTuple

from .core_minimal import lost_operations, walk
from .core_story import said
from .core_system import CoreSystem, State
from .core_target import cells, rules, steps
from .core_words import kind_of
from .medium import Operation
from .medium import State as Medium
from .programs import ASKS, TOUCHES, Node
from .promises import LOUD, NEVER_WRONG, NEWEST_SURVIVES, NO_HARM, NO_LEAK, NO_REUSE
from .search import Counterexample
from .store_layout import NOTHING, tag_in


class Missing(NamedTuple):
    """The sentence; a write that should have been durable, if any; the number of the move that should have waited.

    The number is behind the last move when recovery should have.
    """

    sentence: str
    write: Operation | None
    before: int


def missing_edge(system: CoreSystem, found: Counterexample) -> Missing | None:
    """What should have waited for what; None where recovery alone, or the accounting, is wrong."""
    moves = found.moves
    lost = lost_operations(system, found)
    if lost:
        first = f"persist {_named(system, lost)} must return before "
        if any(each.forgotten for each in lost):
            first = f"{_named(system, lost)} must be written again, and persisted, before "
        recovers = "/" in found.violation.crash or ":" in found.violation.crash
        if moves and (not recovers or mended(system, found, lost)):
            return Missing(first + _harm(system, found), lost[0], len(moves))
        return Missing(first + "recovery hands out a slot", lost[0], len(moves) + 1)
    if not moves or moves[-1][0] in "KP":
        return None
    backwards = _root_goes_back(system, found)
    if backwards is not None:
        return backwards
    waited = _should_wait_for(system, found)
    if not waited:
        return None
    sentence = waited if waited.endswith(".") else f"{waited} before {_harm(system, found)}"
    return Missing(sentence.rstrip("."), None, len(moves))


def _root_goes_back(system: CoreSystem, found: Counterexample) -> Missing | None:
    """The first move that replaces the published checkpoint by an older one: everything after it follows from that."""
    state = dict(system.initial())[found.start]
    for number, move in enumerate(found.moves, 1):
        following = next(after for token, after, _ in system.moves(state) if token == move)
        was, now = (system.driver.cells.values[each[0]][cells.ROOT] for each in (state, following))
        if move[0] not in "KP" and rules.sequence_of(now) <= rules.sequence_of(was) and now != was:
            words = said(system, state, following, move)
            happened = f"save {words.sequence} {words.text}"
            return Missing(f"the root must be seen to be older, and still the same, before {happened}", None, number)
        state = following
    return None


def mended(system: CoreSystem, found: Counterexample, lost: tuple[Operation, ...]) -> bool:
    """Whether nothing breaks after the last move when all that was lost of the same saves is durable before it."""
    digests = (found.violation.digests,) if found.violation.digests else system.digests
    judging = CoreSystem(system.target, system.bounds, digests, (found.violation.promise,))
    reached = walk(judging, found.start, found.moves[:-1])
    if reached is None or reached.violation is not None:
        return False
    state = reached.state
    before = judging.store.states[state[1]]
    wanted = {(kind_of(judging.layout, each.place), each.content) for each in lost}
    forced = [(kind_of(judging.layout, each.place), each.content) in wanted for each in before.outstanding]
    base, left = list(before.base), []
    for index, (each, is_forced) in enumerate(zip(before.outstanding, forced, strict=True)):
        later = (place for place, also in zip(before.outstanding[index:], forced[index:], strict=True) if also)
        if is_forced:
            base[each.place] = each.content
        elif all(each.place != other.place for other in later):
            left.append(each)
    number = judging.store.number(Medium(tuple(base), tuple(left)))
    for token, following, broken in judging.moves((state[0], number, *state[2:])):
        if token == found.moves[-1]:
            return any(forced) and broken is None and judging.judge(following) is None
    return False


def _named(system: CoreSystem, lost: tuple[Operation, ...]) -> str:
    """What was lost, without the details of places: "the record of save 2"."""
    names = []
    for each in lost:
        kind = kind_of(system.layout, each.place)
        if kind == "mark":
            name = "the mark"
        elif each.content == NOTHING:
            name = "the empty record"
        else:
            name = f"{'data' if kind == 'payload' else 'record'} of save {rules.sequence_of(tag_in(each.content))}"
        if name not in names:
            names.append(name)
    return " and ".join(names)


def _last_step(system: CoreSystem, found: Counterexample) -> tuple[State, State]:
    """The states before and after the last move."""
    before = walk(system, found.start, found.moves[:-1])
    assert before is not None
    following = next(after for token, after, _ in system.moves(before.state) if token == found.moves[-1])
    return before.state, following


def _harm(system: CoreSystem, found: Counterexample) -> str:
    """The last move as the event that came too early."""
    state, following = _last_step(system, found)
    move = found.moves[-1]
    node, after = (system.driver.savers.values[each[3 + int(move[0])]].node for each in (state, following))
    words = said(system, state, following, move)
    save = f"save {words.sequence}"
    if _acquires(node, after):
        return f"{save} takes slot {rules.slot_of(after.words[cells.MY_TAG])}"
    if node.kind == TOUCHES or move[-1] in "xo":
        return f"{save} {words.text}"
    return {
        steps.WRITE_PAYLOAD: f"{save} writes over slot {rules.slot_of(node.words[cells.MY_TAG])}",
        steps.WRITE_RECORD: f"the record of {save} is written",
        steps.PERSIST_RECORD: f"the record of {save} is persisted",
        steps.ACKNOWLEDGE: f"{save} is acknowledged",
    }.get(node.request[0], f"{save} {words.text}")


def _acquires(node: Node, after: Node) -> bool:
    return bool(after.words[cells.MY_TAG]) and not node.words[cells.MY_TAG]


def _should_wait_for(system: CoreSystem, found: Counterexample) -> str:
    """What the last move should have waited for, when no write was lost."""
    state, following = _last_step(system, found)
    index = 3 + int(found.moves[-1][0])
    node, after = (system.driver.savers.values[each[index]].node for each in (state, following))
    promise = found.violation.promise
    held = system.ghosts.values[following[2]].acknowledged
    if promise == NO_REUSE:
        slot = rules.slot_of(after.words[cells.MY_TAG])
        kept = [rules.sequence_of(tag) for tag in held if rules.slot_of(tag) == slot]
        return f"checkpoint {kept[0]} must be given up" if kept else "whoever writes there must be done"
    if promise == NO_LEAK:
        waits_for_mark = "the mark" in found.violation.sentence
        return "the mark must be given back" if waits_for_mark else "every slot must be accounted for, once,"
    if promise == NO_HARM:
        return f"a checkpoint newer than {rules.sequence_of(held[0])} must be durable"
    if promise == LOUD and steps.ACKNOWLEDGE in after.passed:
        return "persist the mark must return"
    if promise in (NEWEST_SURVIVES, NEVER_WRONG) and node.kind == ASKS:
        return _should_be_durable(system, following, node, held)
    return ""


def _should_be_durable(system: CoreSystem, following: State, node: Node, held: tuple[int, ...]) -> str:
    """What has to be on the medium before the step that this saver was asked for."""
    tag, step = node.words[cells.MY_TAG], node.request[0]
    slot, sequence = rules.slot_of(tag), rules.sequence_of(tag)
    others = [rules.sequence_of(each) for each in held if rules.slot_of(each) == slot and each != tag]
    contents = system.store.contents(following[1])
    if step in (steps.WRITE_PAYLOAD, steps.WRITE_EMPTY_RECORD):
        newer = f"a checkpoint newer than {others[0]}" if others else f"an empty record in slot {slot}"
        return f"{newer} must be durable"
    if tag_in(contents.payloads[slot]) != tag:
        return f"persist data of save {sequence} must return"
    if tag_in(contents.records[slot]) != tag:
        return f"persist record of save {sequence} must return"
    return "recovery must look at every record before it chooses."
