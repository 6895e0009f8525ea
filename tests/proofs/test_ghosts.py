"""`newest-survives`, after a failed save, a kill and a power loss. The trace `ghosts-left`, taken by the core's own programs.

Save 1 could not persist its record, though the record had reached the medium: the slot was quarantined. The next save
took that slot and wrote an empty record over the doubtful one; the process was killed before that was durable. On
reopening, the record was read as empty, from the cache, and the slot was free. The user then saved, saw it acknowledged,
lost power, and got save 1 back: a checkpoint older than the acknowledged one, whole, its digests right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lastgood.core import cells, recover, rules, save, steps

SLOTS = 2


class Disk:
    """Records of two slots: what the cache says, what the medium says, and what is still to be written back."""

    def __init__(self) -> None:
        self.cached = [0] * SLOTS
        self.medium = [0] * SLOTS
        self.dirty = [False] * SLOTS

    def write(self, slot: int, tag: int) -> None:
        self.cached[slot] = tag
        self.dirty[slot] = True

    def persist(self, slot: int) -> None:
        if self.dirty[slot]:
            self.medium[slot] = self.cached[slot]
            self.dirty[slot] = False

    def lose_power(self) -> None:
        self.cached = list(self.medium)
        self.dirty = [False] * SLOTS


def open_store(disk: Disk) -> Any:
    """Recover from what can be read; the shared words."""
    mine = cells.new_mine()
    tags = list(disk.cached)
    verdict = [recover.CANDIDATE if tag else recover.EMPTY for tag in tags]
    for _ in recover.survey(mine, tags, verdict, SLOTS):
        mine[cells.STATUS] = rules.DONE
    shared = cells.new_cells()
    for step in recover.make_ready(shared, mine, tags, verdict, SLOTS, 1, 0):
        slot = int(mine[cells.MY_SLOT])
        if step in (steps.REWRITE_RECORD, steps.WRITE_EMPTY_RECORD):
            disk.write(slot, int(tags[slot]) if step == steps.REWRITE_RECORD else 0)
        elif step in (steps.PERSIST_RECORD, steps.PERSIST_EMPTY_RECORD):
            disk.persist(slot)
    return shared


def save_once(disk: Disk, shared: Any, *, fails_at: int = -1, killed_at: int = -1) -> int:
    """Run one save; its sequence when it acknowledged, else 0."""
    mine = cells.new_mine()
    program: Iterator[int] = save.save(shared, mine, 1, 1, 0)
    acknowledged = 0
    for step in program:
        slot = int(mine[cells.MY_SLOT])
        if step == killed_at:
            return 0
        if step in (steps.WRITE_RECORD, steps.WRITE_EMPTY_RECORD):
            disk.write(slot, int(mine[cells.MY_TAG]) if step == steps.WRITE_RECORD else 0)
        elif step in (steps.PERSIST_RECORD, steps.PERSIST_EMPTY_RECORD):
            disk.persist(slot)
        elif step == steps.ACKNOWLEDGE:
            acknowledged = int(mine[cells.MY_SEQUENCE])
        mine[cells.STATUS] = rules.BROKEN if step == fails_at else rules.DONE
    return acknowledged


def test_the_ghost_of_a_failed_save_does_not_come_back() -> None:
    disk = Disk()
    shared = open_store(disk)
    assert save_once(disk, shared, fails_at=steps.PERSIST_RECORD) == 0
    (ghost_slot,) = (slot for slot in range(SLOTS) if disk.medium[slot])
    shared[cells.FREE] = 0  # the other slot is in use elsewhere: the next save takes the quarantined one
    save_once(disk, shared, killed_at=steps.PERSIST_EMPTY_RECORD)

    shared = open_store(disk)
    shared[cells.FREE] -= rules.mask_of_slot(ghost_slot)  # another save is about to use it
    acknowledged = save_once(disk, shared)
    disk.lose_power()
    assert acknowledged > 0
    assert disk.medium[ghost_slot] == 0
    assert rules.sequence_of(max(disk.medium)) == acknowledged


def test_without_the_kill_it_does_not_come_back_either() -> None:
    """The same, but the empty record became durable: the story ends well, so it is told right."""
    disk = Disk()
    shared = open_store(disk)
    assert save_once(disk, shared, fails_at=steps.PERSIST_RECORD) == 0
    (ghost_slot,) = (slot for slot in range(SLOTS) if disk.medium[slot])
    shared[cells.FREE] = 0
    acknowledged = save_once(disk, shared)
    disk.lose_power()
    assert acknowledged == 2
    assert disk.medium[ghost_slot] == rules.tag_of(acknowledged, ghost_slot)
