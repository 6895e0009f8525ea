"""Contracts on recovery: the newest of what is there, then `survey` and `make_ready` themselves, over small stores.

The fold steps hold for any number of slots (by induction over the scan, which is a plain loop); the lists and the
programs are bounded, because no symbolic execution ends on a list without an end. What stands in for the driver here
answers each step of a program as the solver pleases.
"""

from __future__ import annotations

from lastgood.core import cells, recover, rules, steps


def newer_candidate_step(best: int, candidate: int) -> int:
    """One step of the scan keeps one of the two tags, and none is newer.

    post: __return__ in (best, candidate)
    post: best <= __return__ and candidate <= __return__
    """
    return rules.newer_candidate(best, candidate)


def newest_of_many(tags: list[int]) -> int:
    """The scan over up to six records finds the newest tag, or none when there is none.

    pre: len(tags) <= 6
    pre: all(tag > 0 for tag in tags)
    post: all(tag <= __return__ for tag in tags)
    post: __return__ in tags or (not tags and __return__ == rules.NO_TAG)
    """
    best = rules.NO_TAG
    for tag in tags:
        best = rules.newer_candidate(best, tag)
    return best


def next_sequence_step(highest: int, seen: int) -> int:
    """One step of counting never lowers the count, and the next sequence given out is above the one seen.

    post: __return__ >= highest
    post: __return__ + 1 > seen
    post: __return__ in (highest, seen)
    """
    return rules.next_sequence(highest, seen)


def next_sequence_above_all(highest: int, tags: list[int]) -> int:
    """After recovery the next sequence given out is above that of each of up to five records seen.

    pre: 0 <= highest
    pre: len(tags) <= 5
    pre: all(tag >= 0 for tag in tags)
    post: all(rules.tag_of(__return__ + 1, 0) > tag for tag in tags)
    post: __return__ >= highest
    """
    for tag in tags:
        highest = rules.next_sequence(highest, rules.sequence_of(tag))
    return highest


def survey_finds_the_newest_whole(sequences: tuple[int, int, int], whole: tuple[bool, bool, bool]) -> int:
    """`survey` over three slots answers the newest record whose payload is whole, or none when none is.

    pre: all(0 <= sequence for sequence in sequences)
    pre: sequences[0] != sequences[1] or sequences[0] == 0
    pre: sequences[0] != sequences[2] or sequences[0] == 0
    pre: sequences[1] != sequences[2] or sequences[1] == 0
    post: __return__ == max((sequences[slot] for slot in range(3) if whole[slot]), default=0)
    """
    mine = [rules.DONE] * cells.MINE_COUNT
    tags = [rules.NO_TAG] * 3
    verdict = [recover.EMPTY] * 3
    for step in recover.survey(mine, tags, verdict, 3):
        slot = mine[cells.MY_SLOT]
        if step == steps.READ_RECORD and sequences[slot] > 0:
            tags[slot] = rules.tag_of(sequences[slot], slot)
            verdict[slot] = recover.CANDIDATE
        elif step == steps.VERIFY_PAYLOAD:
            mine[cells.STATUS] = rules.DONE if whole[slot] else rules.BROKEN
    return rules.sequence_of(mine[cells.MY_TAG])


def prepare(
    sequences: tuple[int, int], verdicts: tuple[int, int], keep: int, broken: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Run `make_ready` over two slots; device step number `broken` fails. The shared words, and the steps that did not."""
    shared = [0] * cells.CELL_COUNT
    mine = [rules.DONE] * cells.MINE_COUNT
    tags = [rules.tag_of(sequences[slot], slot) for slot in range(2)]
    verdict = list(verdicts)
    taken: list[tuple[int, int]] = []
    for step in recover.make_ready(shared, mine, tags, verdict, 2, keep, 0):
        if len(taken) == broken:
            mine[cells.STATUS] = rules.BROKEN
        else:
            taken.append((step, mine[cells.MY_SLOT]))
    return shared, taken


def make_ready_accounts_for_slots(
    sequences: tuple[int, int], verdicts: tuple[int, int], keep: int
) -> tuple[list[int], list[int]]:
    """After `make_ready` over two slots the newest usable checkpoints are kept, and every other slot is free.

    pre: 0 < sequences[0] and 0 < sequences[1] and sequences[0] != sequences[1]
    pre: all(recover.EMPTY <= verdict <= recover.REJECTED for verdict in verdicts)
    pre: 1 <= keep <= 2
    post: __return__[1] == usable_tags(sequences, verdicts)[:keep]
    post: sorted(__return__[0] + [rules.slot_of(tag) for tag in __return__[1]]) == [0, 1]
    """
    shared, _ = prepare(sequences, verdicts, keep, -1)
    free = [slot for slot in range(2) if shared[cells.FREE] // 2**slot % 2 == 1]
    return free, [tag for tag in (shared[cells.ROOT], shared[cells.KEPT]) if tag != rules.NO_TAG]


def usable_tags(sequences: tuple[int, int], verdicts: tuple[int, int]) -> list[int]:
    """Tags of the records that recovery may keep, newest first."""
    usable = [slot for slot in range(2) if verdicts[slot] in (recover.CANDIDATE, recover.WHOLE)]
    return sorted((rules.tag_of(sequences[slot], slot) for slot in usable), reverse=True)


def make_ready_persists_before_freeing(
    sequences: tuple[int, int], verdicts: tuple[int, int], keep: int, broken: int
) -> tuple[int, list[tuple[int, int]]]:
    """`make_ready` frees no slot until what it keeps was persisted anew and all else was emptied for good, or frees none.

    pre: 0 < sequences[0] and 0 < sequences[1] and sequences[0] != sequences[1]
    pre: all(recover.EMPTY <= verdict <= recover.REJECTED for verdict in verdicts)
    pre: 1 <= keep <= 2
    pre: 0 <= broken <= 6
    post: __return__[0] == 0 or all(persisted(__return__, verdicts, slot) for slot in range(2))
    """
    shared, taken = prepare(sequences, verdicts, keep, broken)
    return shared[cells.FREE], taken


def persisted(ready: tuple[int, list[tuple[int, int]]], verdicts: tuple[int, int], slot: int) -> bool:
    """Whether this slot is one that may stand beside a free one: kept and persisted, emptied, or free itself."""
    free, taken = ready
    if verdicts[slot] in (recover.REJECTED, recover.EMPTY):
        return (steps.PERSIST_EMPTY_RECORD, slot) in taken
    return free // 2**slot % 2 == 1 or (steps.PERSIST_RECORD, slot) in taken
