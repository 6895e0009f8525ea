"""Contracts on the save program itself: `save`, run alone by CrossHair, with any one of its device steps failing.

The store has three slots and keeps two checkpoints; the third slot is free, or it is quarantined. What no rival can
disturb is confirmed here for every way in which a save can fail: which slot it gives back, what it may have touched,
and in which order it asked for things. One failure is enough: a save that goes on after one acknowledges without it.
What rivals can disturb is the explorer's subject.

Only the newest sequence is bounded, so that the next one fits into a tag.
"""

from __future__ import annotations

from typing import NamedTuple

from lastgood.core import cells, rules, save, steps

DEVICE_STEPS = (
    steps.WRITE_PAYLOAD,
    steps.PERSIST_PAYLOAD,
    steps.WRITE_RECORD,
    steps.PERSIST_RECORD,
    steps.WRITE_MARK,
    steps.PERSIST_MARK,
    steps.WRITE_EMPTY_RECORD,
    steps.PERSIST_EMPTY_RECORD,
)

DURABLE = [steps.WRITE_PAYLOAD, steps.PERSIST_PAYLOAD, steps.WRITE_RECORD, steps.PERSIST_RECORD]
"""What must have been done, in this order and with nothing in between, when a save acknowledges."""


class Ended(NamedTuple):
    """What a save that ran to its end left behind."""

    outcome: int
    free: list[int]
    quarantined: list[int]
    kept: list[int]
    done: list[int]
    """Device steps that succeeded, and ACKNOWLEDGE, in order."""


def slots_in(word: int) -> list[int]:
    """The slots of a slot set of four."""
    return [slot for slot in range(4) if word // 2**slot % 2 == 1]


def run_alone(older: int, newer: int, quarantined: bool, broken: int, status: int) -> Ended:
    """Run one save: slot 0 holds the newest checkpoint, slot 1 the one before; device step `broken` is answered `status`."""
    shared = [0] * cells.CELL_COUNT
    mine = [rules.DONE] * cells.MINE_COUNT
    shared[cells.ROOT] = rules.tag_of(newer, 0)
    shared[cells.KEPT] = rules.tag_of(older, 1)
    shared[cells.SEQUENCE] = newer
    shared[cells.QUARANTINED if quarantined else cells.FREE] = 4
    asked = 0
    done = []
    for step in save.save(shared, mine, 1, 2, 0):
        if step in DEVICE_STEPS:
            if asked == broken:
                mine[cells.STATUS] = status
            else:
                done.append(step)
            asked += 1
        elif step == steps.ACKNOWLEDGE:
            done.append(step)
        elif step == steps.WAIT:
            break
    kept = [shared[cells.ROOT], shared[cells.KEPT]]
    return Ended(mine[cells.OUTCOME], slots_in(shared[cells.FREE]), slots_in(shared[cells.QUARANTINED]), kept, done)


def run_beside_rival(older: int, newer: int, broken: int, moment: int) -> tuple[Ended, int, int]:
    """Run one save, and after step number `moment` a whole other one. What they left, and each one's outcome.

    The other save breaks nothing; slots 2 and 3 are free.
    """
    shared = [0] * cells.CELL_COUNT
    mine, rival = [rules.DONE] * cells.MINE_COUNT, [rules.DONE] * cells.MINE_COUNT
    shared[cells.ROOT] = rules.tag_of(newer, 0)
    shared[cells.KEPT] = rules.tag_of(older, 1)
    shared[cells.SEQUENCE] = newer
    shared[cells.FREE] = 12
    shared[cells.MARKED] = rules.MARK_DURABLE
    asked = 0
    for count, step in enumerate(save.save(shared, mine, 1, 2, 0)):
        if step in DEVICE_STEPS:
            mine[cells.STATUS] = rules.BROKEN if asked == broken else rules.DONE
            asked += 1
        if count == moment:
            for _ in save.save(shared, rival, 1, 2, 0):
                pass
    kept = [shared[cells.ROOT], shared[cells.KEPT]]
    ended = Ended(mine[cells.OUTCOME], slots_in(shared[cells.FREE]), slots_in(shared[cells.QUARANTINED]), kept, [])
    return ended, mine[cells.MY_TAG], rival[cells.MY_TAG]


def save_puts_one_slot_back(older: int, newer: int, quarantined: bool, broken: int, status: int) -> list[int]:
    """Whatever fails in a save, afterwards each slot is free, quarantined or kept, and only one of these.

    pre: 0 < older < newer < rules.SEQUENCE_LIMIT - 1
    pre: 0 <= broken <= 8 and rules.BROKEN <= status <= rules.REFUSED
    post: sorted(__return__) == [0, 1, 2]
    """
    ended = run_alone(older, newer, quarantined, broken, status)
    return ended.free + ended.quarantined + [rules.slot_of(tag) for tag in ended.kept]


def save_acknowledges_durable_only(older: int, newer: int, quarantined: bool, broken: int, status: int) -> list[int]:
    """A save acknowledges only after payload and record were written and persisted, each before the next.

    pre: 0 < older < newer < rules.SEQUENCE_LIMIT - 1
    pre: 0 <= broken <= 8 and rules.BROKEN <= status <= rules.REFUSED
    post: steps.ACKNOWLEDGE not in __return__ or [step for step in __return__ if step in DURABLE] == DURABLE
    """
    return run_alone(older, newer, quarantined, broken, status).done


def failed_save_changes_nothing_kept(older: int, newer: int, quarantined: bool, broken: int, status: int) -> Ended:
    """A save either acknowledges, and is then the newest, or leaves the kept checkpoints as they were.

    pre: 0 < older < newer < rules.SEQUENCE_LIMIT - 1
    pre: 0 <= broken <= 8 and rules.BROKEN <= status <= rules.REFUSED
    post: (__return__.outcome == rules.PUBLISHED) == (steps.ACKNOWLEDGE in __return__.done)
    post: [rules.sequence_of(tag) for tag in __return__.kept] == kept_after(older, newer, __return__.outcome)
    """
    return run_alone(older, newer, quarantined, broken, status)


def kept_after(older: int, newer: int, outcome: int) -> list[int]:
    """The sequences that must be kept after a save that took the next sequence."""
    return [newer + 1, newer] if outcome == rules.PUBLISHED else [newer, older]


def doubtful_record_is_quarantined(older: int, newer: int, quarantined: bool, broken: int, status: int) -> Ended:
    """A save that asked for its record and did not acknowledge quarantines its slot; nobody is handed it.

    pre: 0 < older < newer < rules.SEQUENCE_LIMIT - 1
    pre: 0 <= broken <= 8 and rules.BROKEN <= status <= rules.REFUSED
    post: rules.PUBLISHED == __return__.outcome or steps.PERSIST_PAYLOAD not in __return__.done or __return__.quarantined == [2]
    """
    return run_alone(older, newer, quarantined, broken, status)


def saves_side_by_side_keep_the_newest(older: int, newer: int, broken: int, moment: int) -> tuple[Ended, int, int]:
    """When a whole other save runs between any two steps of one, the newest two are kept and no slot is lost.

    pre: 0 < older < newer < rules.SEQUENCE_LIMIT - 2
    pre: 0 <= broken <= 6 and 0 <= moment <= 20
    post: __return__[0].kept == newest_two(older, newer, *__return__)
    post: sorted(slots_of(__return__[0])) == [0, 1, 2, 3]
    """
    return run_beside_rival(older, newer, broken, moment)


def newest_two(older: int, newer: int, ended: Ended, mine: int, rival: int) -> list[int]:
    """The two newest tags of the checkpoints that became durable."""
    durable = [rules.tag_of(older, 1), rules.tag_of(newer, 0), rival]
    if ended.outcome in (rules.PUBLISHED, rules.SUPERSEDED):
        durable.append(mine)
    return sorted(durable, reverse=True)[:2]


def slots_of(ended: Ended) -> list[int]:
    """Every slot that is accounted for."""
    return ended.free + ended.quarantined + [rules.slot_of(tag) for tag in ended.kept]
