"""What a move says about the promises without any crash: who got which slot, where the root went, how a save ended.

    monotone    the root only ever goes to a newer tag
    no-reuse    a slot handed out is neither being written by another save nor holds a checkpoint to be kept
    bounded     a slot handed out is one of those that the store was created with
    no-leak     when no save is under way every slot is free, quarantined or kept; nobody waits in vain
    loud        a save that ends says the truth about itself

Trusted. The judge remembers a little that no program can see (`Ghost`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .bounds import Bounds
from .core_driver import Driver, Event
from .core_target import cells, rules, steps
from .core_words import slots_unaccounted, tag_text
from .programs import ASKS, TOUCHES, Node
from .promises import BOUNDED, LOUD, MONOTONE, NO_LEAK, NO_REUSE

Broken = tuple[str, str]
"""A promise, and what happened to it."""


class Ghost(NamedTuple):
    """What the judge remembers: never read by the programs."""

    started: int
    faults: int
    life: int
    acknowledged: tuple[int, ...]  # the newest `keep` acknowledged or recovered tags, newest first
    marked: bool  # whether any save was acknowledged, in this life or an earlier one


def remembered(ghost: Ghost, event: Event, keep: int) -> Ghost | None:
    """The ghost after an event that only has to be remembered; None for one that has to be judged."""
    if event[0] == "started":
        return ghost._replace(started=ghost.started + 1)
    if event[0] in ("fault", "overtaken"):
        return ghost._replace(faults=ghost.faults + (event[0] == "fault"))
    if event[0] == "acknowledged":
        newest = sorted({*ghost.acknowledged, event[1]}, reverse=True)[:keep]
        return ghost._replace(acknowledged=tuple(newest), marked=True)
    return None


class EventJudge:
    """Judges events of one driver's savers."""

    def __init__(self, driver: Driver, bounds: Bounds) -> None:
        self.driver = driver
        self.bounds = bounds

    def broken_by(self, event: Event, words: Sequence[int], ghost: Ghost, others: Sequence[int]) -> Iterator[Broken]:
        """What is wrong with this event, with these shared words after it and the other savers where they are."""
        kind = event[0]
        if kind == "root" and rules.sequence_of(event[2]) <= rules.sequence_of(event[1]):
            yield MONOTONE, f"the published checkpoint goes from {tag_text(event[1])} back to {tag_text(event[2])}"
        elif kind == "acquired":
            yield from self._reused(event[1], ghost, others)
        elif kind == "raised":
            promise = NO_LEAK if event[1].startswith("S5") else MONOTONE
            yield promise, f"the program's own assertion fails: {event[1]}"
        elif kind == "waits":
            if self._starves(event[1], words) and not any(self._goes_on(other, words) for other in others):
                in_vain = (
                    "the mark, which nobody writes"
                    if event[1].words[cells.MY_TAG]
                    else "a slot that never comes: nobody else holds one"
                )
                yield NO_LEAK, f"a save waits for {in_vain}"
        elif kind == "ended":
            yield from self._ended(event, words, others)

    def _reused(self, tag: int, ghost: Ghost, others: Sequence[int]) -> Iterator[Broken]:
        """A slot was handed to the save with this tag: was it anybody's, and is it one at all?"""
        slot = rules.slot_of(tag)
        if slot >= self.bounds.slots:
            yield BOUNDED, f"slot {slot} is handed out, and the store was created with {self.bounds.slots}"
            return
        for held in ghost.acknowledged:
            if rules.slot_of(held) == slot:
                yield NO_REUSE, f"slot {slot} is handed out while it holds {tag_text(held)}, which is to be kept"
        for other in others:
            node: Node = self.driver.savers.values[other].node
            owned = node.words[cells.MY_TAG]
            writing = owned and not node.words[cells.OUTCOME] and steps.ACKNOWLEDGE not in node.passed
            if writing and rules.slot_of(owned) == slot:
                yield NO_REUSE, f"slot {slot} is handed out while save {rules.sequence_of(owned)} writes into it"

    def _goes_on(self, saver: int, words: Sequence[int]) -> bool:
        """Whether this saver holds a slot and does not itself wait in vain: then others may wait for it."""
        node: Node = self.driver.savers.values[saver].node
        if not node.words[cells.MY_TAG]:
            return False
        waits = node.kind == ASKS and node.request[0] == steps.WAIT
        return not (waits and self._starves(self.driver.program.after(node, rules.DONE), words))

    def _starves(self, node: Node, words: Sequence[int]) -> bool:
        """Whether a save that waits, left alone, comes to wait again without having found what it waits for."""
        while node.kind == TOUCHES and node.request[0] == "load":
            node = self.driver.program.after(node, words[node.request[1]])
        return node.kind == ASKS and bool(node.request[0] == steps.WAIT)

    def _ended(self, event: Event, words: Sequence[int], others: Sequence[int]) -> Iterator[Broken]:
        """A save ended: does it say the truth, and is every slot accounted for when it was the last one?"""
        _, outcome, worst, acknowledged = event
        if outcome == rules.PENDING:
            yield LOUD, "a save ends without an outcome"
        if worst == rules.BROKEN and outcome != rules.FAILED:
            yield LOUD, "a step of a save failed, and the save does not say so"
        if acknowledged and outcome not in (rules.PUBLISHED, rules.SUPERSEDED):
            yield LOUD, "a save that was acknowledged ends as failed"
        if outcome == rules.PUBLISHED and not acknowledged:
            yield LOUD, "a save ends as published without having been acknowledged"
        if all(other == self.driver.idle for other in others):
            problem = slots_unaccounted(words, self.bounds.slots, self.bounds.keep)
            if problem:
                yield NO_LEAK, f"the last save to end leaves {problem}"
