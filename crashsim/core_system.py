"""The real save program, several at once over one store, as a transition system for the search. Trusted.

A state is a row of small numbers, each naming an interned part:

    (words, medium, ghost, saver 0, saver 1, …)

words     the shared words            ghost    what only the judge knows: saves started, faults used, acknowledged …
medium    the store's medium          saver    where one saver stands in its save, and which chunks it has written

One move is one thing that one saver does: touch one shared word, write one chunk, or have its driver do the one step it
asks for. A move is written down as the saver's digit and a letter when there is a choice:

    0        saver 0 does what it is about to do          0x   ... and it fails; 0y, 0z: having written a part, all
    0a 0b    saver 0 writes chunk a, b                     0o   saver 0 is told that it was overtaken
    P3/ K/   a crash, recovery to the end (`core_aftermath` has the details), and every saver starts anew

Chunks are written in any order in which no more than `writers` are in hand at once. Savers are interchangeable, so
states that differ in who is who count as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .bounds import EMPTY_STORE, USED_STORE, Bounds
from .core_aftermath import Aftermath
from .core_driver import Driver, Event, Interned
from .core_events import EventJudge, Ghost, remembered
from .core_recovery import Recovery
from .core_same import Same
from .core_target import Target, cells, rules
from .core_words import tag_text
from .media import MEDIA
from .programs import ASKS, TOUCHES
from .promises import LOUD, MONOTONE, NEWEST_SURVIVES, NO_HARM, PROMISES, Violation
from .replay import split_path
from .store_layout import NOTHING, Layout, StoreMedium, content_of, life_in, tag_in

State = tuple[int, ...]
Move = tuple[str, State, Violation | None]


class CoreSystem:
    """Initial states, moves and judgements of one target within bounds; what `search` explores."""

    def __init__(
        self,
        target: Target,
        bounds: Bounds,
        digests: Sequence[str],
        promises: Sequence[str] = tuple(PROMISES),
        *,
        restart_once: bool = False,
        losses: int | None = None,
        by_order: bool = False,
    ) -> None:
        """Judge `promises`, recovering in each way of `digests`. With `restart_once`, a search that never visits a state
        twice is spared the moves into another life that it has seen from an equal medium. With `losses`, a power
        loss takes at most so many writes. With `by_order`, and for any number of saves, sequences are told apart by
        their order alone (`core_same`)."""
        self.target = target
        self.bounds = bounds
        self.digests = tuple(digests)
        self.promises = frozenset(promises)
        self.layout = Layout(bounds.slots, bounds.chunks)
        self.store = StoreMedium(self.layout, MEDIA[bounds.medium](), losses)
        self.driver = Driver(target, bounds, self.store)
        self.events = EventJudge(self.driver, bounds)
        self.aftermaths = [self._aftermath(each) for each in digests]
        self.ghosts = Interned()
        wanted = by_order or not bounds.saves
        self.same = Same(target, bounds, self.driver, self.store, self.ghosts) if wanted else None
        self._clean: set[tuple[int, int, int]] = set()
        self._restarted: set[tuple[int, int]] | None = set() if restart_once else None

    def _aftermath(self, digests: str) -> Aftermath:
        bounds, faults = self.bounds, self.bounds.faults > 0
        recovery = Recovery(self.target, self.store, bounds.keep, bounds.one_persist, digests, faults=faults)
        return Aftermath(recovery, faults=faults)

    # --- where it starts ---------------------------------------------------------------------------------------------

    def initial(self) -> list[tuple[str, State]]:
        """An empty store, and one that was opened with `keep` checkpoints in it."""
        layout, keep = self.layout, self.bounds.keep
        words = [0] * cells.CELL_COUNT
        image = [NOTHING] * (layout.mark + 1)
        words[cells.FREE] = 2**layout.slots - 1
        empty = self._state(words, image, ())
        for slot in range(keep):
            tag = rules.tag_of(slot + 1, slot)
            words[cells.ROOT if slot == keep - 1 else cells.KEPT + keep - 2 - slot] = tag
            words[cells.FREE] -= rules.mask_of_slot(slot)
            start = slot * layout.places_per_slot
            image[start : start + layout.places_per_slot] = [content_of(tag, 0)] * layout.places_per_slot
        words[cells.SEQUENCE] = keep
        words[cells.MARKED] = image[layout.mark] = 1
        held = tuple(rules.tag_of(slot + 1, slot) for slot in range(keep - 1, -1, -1))
        return [(EMPTY_STORE, empty), (USED_STORE, self._state(words, image, held))]

    def _state(self, words: list[int], image: list[int], acknowledged: tuple[int, ...]) -> State:
        ghost = Ghost(0, 0, 0, acknowledged, bool(acknowledged))
        first = (self.driver.cells.number(tuple(words)), self.store.settled(image), self.ghosts.number(ghost))
        return (*first, *self._all_idle())

    def _all_idle(self) -> tuple[int, ...]:
        return (self.driver.idle,) * self.bounds.savers

    def canonical(self, state: State) -> State:
        """What is equal for states that differ only in which saver is which, and by order in the size of sequences."""
        if self.same is not None:
            return self.same.key(state)
        return state[:3] + tuple(sorted(state[3:]))

    # --- where it goes -----------------------------------------------------------------------------------------------

    def moves(self, state: State) -> Iterator[Move]:
        """Every move from here: how it is written down, where it leads, the promise it breaks."""
        words, medium, ghost = state[:3]
        driver = self.driver
        remembers = self.ghosts.values[ghost]
        for index in range(3, len(state)):
            saver = state[index]
            kind = driver.savers.values[saver].node.kind
            if kind == TOUCHES:
                if saver == driver.idle and self._all_started(remembers):
                    continue
                touched = driver.touch(words, saver)
                moved = (touched.words, medium, ghost, *state[3:index], touched.saver, *state[index + 1 :])
                if touched.events:
                    yield self._judged(str(index - 3), moved, index, touched.events)
                else:
                    yield str(index - 3), moved, None
            elif kind == ASKS:
                for letter, changed, following, events in driver.ask(medium, saver, remembers.life):
                    moved = (words, changed, ghost, *state[3:index], following, *state[index + 1 :])
                    if not events:
                        yield f"{index - 3}{letter}", moved, None
                    elif self._allowed(state, events[0]):
                        yield self._judged(f"{index - 3}{letter}", moved, index, events)
        if self.bounds.restarts:
            yield from self._restarts(state)

    def _all_started(self, ghost: Ghost) -> bool:
        """Whether the bounds allow no further save."""
        return bool(self.bounds.saves and ghost.started == self.bounds.saves)

    def _allowed(self, state: State, event: Event) -> bool:
        """Whether the bounds, or the driver's own rules, let this happen here."""
        if event[0] == "fault":
            return bool(self.ghosts.values[state[2]].faults < self.bounds.faults)
        if event[0] == "overtaken":
            words = self.driver.cells.values[state[0]]
            oldest_kept = words[cells.ROOT if self.bounds.keep == 1 else cells.KEPT + self.bounds.keep - 2]
            return rules.is_overtaken(oldest_kept, event[1])
        return True

    def _judged(self, token: str, moved: State, index: int, events: tuple[Event, ...]) -> Move:
        """The move with what it makes the judge remember, and the first promise that it breaks."""
        ghost = self.ghosts.values[moved[2]]
        words = self.driver.cells.values[moved[0]]
        others = [*moved[3:index], *moved[index + 1 :]]
        found = None
        for event in events:
            after = remembered(ghost, event, self.bounds.keep)
            if after is not None:
                ghost = after
                continue
            for promise, sentence in self.events.broken_by(event, words, ghost, others):
                if promise in self.promises and found is None:
                    found = Violation(promise, sentence)
        return token, (*moved[:2], self.ghosts.number(ghost), *moved[3:]), found

    def _restarts(self, state: State) -> Iterator[Move]:
        """Every crash followed by a completed recovery; the savers start anew on what it left."""
        ghost = self.ghosts.values[state[2]]
        if ghost.life == self.bounds.restarts or self._all_started(ghost):
            return
        if self._restarted is not None:
            if state[1:3] in self._restarted:
                return
            self._restarted.add((state[1], state[2]))
        for aftermath in self.aftermaths:
            for (medium, words), path in aftermath.judge(state[1]).ready.items():
                held = [words[cells.ROOT], *words[cells.KEPT : cells.KEPT + self.bounds.keep - 1]]
                kept = tuple(tag for tag in held if tag != rules.NO_TAG)
                following = self.ghosts.number(ghost._replace(life=ghost.life + 1, acknowledged=kept))
                yield path, (self.driver.cells.number(words), medium, following, *self._all_idle()), None

    def images(self) -> int:
        """Crash images that were judged: of every medium that was met, each image it can leave."""
        return sum(len(self.store.power_losses(medium)) for medium in {medium for medium, _, _ in self._clean})

    # --- what a crash here comes to ----------------------------------------------------------------------------------

    def judge(self, state: State) -> Violation | None:
        """The promise that some crash from here breaks, if any: the one that takes the fewest crashes to see."""
        medium = state[1]
        published = self.driver.cells.values[state[0]][cells.ROOT]
        key = (medium, state[2], published)
        if key in self._clean:
            return None
        ghost = self.ghosts.values[state[2]]
        acknowledged = ghost.acknowledged[0] if ghost.acknowledged else rules.NO_TAG
        found: list[Violation] = []
        for aftermath in self.aftermaths:
            judged = aftermath.judge(medium)
            for promise, tag, was in (
                (NEWEST_SURVIVES, acknowledged, "acknowledged"),
                (MONOTONE, published, "published"),
            ):
                if judged.lowest < rules.sequence_of(tag):
                    returned = aftermath.result_at(medium, judged.lowest_path)
                    sentence = f"recovery {returned}, though {tag_text(tag)} was {was}"
                    found.append(Violation(promise, sentence, judged.lowest_path, aftermath.digests))
            for content, path in judged.returned.items() if ghost.life else ():
                if life_in(content) < ghost.life and content and tag_in(content) not in ghost.acknowledged:
                    tag = tag_text(tag_in(content))
                    sentence = f"recovery returns {tag} of an earlier life, which the recovery in between had not found"
                    found.append(Violation(NEWEST_SURVIVES, sentence, path, aftermath.digests))
            for promise, (path, sentence) in judged.problems.items():
                found.append(Violation(promise, sentence, path, aftermath.digests))
        found += self._harmed(medium, ghost)
        if ghost.marked:
            found += self._mark_lost(medium, acknowledged)
        wanted = [each for each in found if each.promise in self.promises]
        if not wanted:
            self._clean.add(key)
        return min(wanted, key=lambda each: len(split_path(each.crash)), default=None)

    def _harmed(self, medium: int, ghost: Ghost) -> Iterator[Violation]:
        """Checkpoints still to be kept that are, for whoever reads them now, no longer what they were."""
        contents = self.store.contents(medium)
        for tag in ghost.acknowledged:
            slot = rules.slot_of(tag)
            for what, content in (("record", contents.records[slot]), ("payload", contents.payloads[slot])):
                if content <= NOTHING or tag_in(content) != tag:
                    yield Violation(NO_HARM, f"{tag_text(tag)} is still to be kept, and its {what} has been changed")
                    return

    def _mark_lost(self, medium: int, acknowledged: int) -> Iterator[Violation]:
        for index, (image, _) in enumerate(self.store.power_losses(medium)):
            if not self.store.contents(image).mark:
                sentence = f"{tag_text(acknowledged)} was acknowledged, and the mark that says so is lost"
                yield Violation(LOUD, sentence, f"P{index}")
                return
