"""What a save's driver does when the program asks, over interned states; one saver, one move. Trusted.

Everything a saver can do next depends on little: the shared words and where it stands, or the medium and where it
stands. So each move is worked out once and remembered by the numbers of the two, and the search does look-ups.

A move may come with *events*: what a judge has to know about it (`core_events`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .bounds import CHUNK_LETTERS, Bounds
from .core_target import Target, cells, rules, steps
from .programs import ENDED, RAISED, Node
from .store_layout import NOTHING, StoreMedium, content_of

Event = tuple[Any, ...]
PERSISTS = (steps.PERSIST_PAYLOAD, steps.PERSIST_RECORD, steps.PERSIST_EMPTY_RECORD)


class Saver(NamedTuple):
    """Where a saver stands: a node of the save program, and the chunks that are written, or in hand, as a bit mask."""

    node: Node
    written: int


class Touched(NamedTuple):
    """After a shared word was touched: the shared words, the saver."""

    words: int
    saver: int
    events: tuple[Event, ...]


class Done(NamedTuple):
    """After a step was done: the letter of this way of doing it, the medium, the saver."""

    letter: str
    medium: int
    saver: int
    events: tuple[Event, ...]


class Interned:
    """Numbers for values, in the order of their first appearance."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of this value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Driver:
    """All moves of the savers of one target over one store."""

    def __init__(self, target: Target, bounds: Bounds, store: StoreMedium) -> None:
        self.bounds = bounds
        self.store = store
        self.compare_swap = target.compare_swap
        self.writers_persist = target.writers_persist and store.rules.persist_per_thread
        self.program = target.saver(rules.words_for(bounds.slots), bounds.keep, bounds.one_persist)
        self.cells = Interned()
        self.savers = Interned()
        self.idle = self.savers.number(Saver(self.program.first, 0))
        self._touched: dict[tuple[int, int], Touched] = {}
        self._done: dict[tuple[int, int, int], list[Done]] = {}

    def touch(self, words: int, saver: int) -> Touched:
        """One saver touches one shared word."""
        key = (words, saver)
        found = self._touched.get(key)
        if found is None:
            found = self._touched[key] = self._touch(words, saver)
        return found

    def ask(self, medium: int, saver: int, life: int) -> list[Done]:
        """Every way in which the step that one saver asks for can be done."""
        key = (medium, saver, life)
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = list(self._ways(medium, self.savers.values[saver], life))
        return found

    def _touch(self, number: int, saver: int) -> Touched:
        words = self.cells.values[number]
        node = self.savers.values[saver].node
        name, cell, *arguments = node.request
        found = left = words[cell]
        answer = found
        if name == "compare_swap":
            left, answer = self.compare_swap(found, arguments[0], arguments[1])
        elif name == "fetch_add":
            left = found + arguments[0]
        events: list[Event] = []
        if saver == self.idle:
            events.append(("started",))
        if cell == cells.ROOT and left != found:
            events.append(("root", found, left))
        following = self.program.after(node, answer)
        if following.words[cells.MY_TAG] and not node.words[cells.MY_TAG]:
            events.append(("acquired", following.words[cells.MY_TAG]))
        if left != found:
            number = self.cells.number((*words[:cell], left, *words[cell + 1 :]))
        return Touched(number, self._arrived(following, events), tuple(events))

    def _arrived(self, node: Node, events: list[Event]) -> int:
        """The saver's number at this node; one whose save ended is idle again."""
        if node.kind == ENDED:
            acknowledged = steps.ACKNOWLEDGE in node.passed
            events.append(("ended", node.words[cells.OUTCOME], node.worst, acknowledged))
            return self.idle
        if node.kind == RAISED:
            events.append(("raised", node.request[0]))
        return self.savers.number(Saver(node, 0))

    def _ways(self, medium: int, saver: Saver, life: int) -> Iterator[Done]:
        node, store = saver.node, self.store
        step = node.request[0]
        tag = node.words[cells.MY_TAG]
        slot = rules.slot_of(tag)
        if step == steps.WRITE_PAYLOAD:
            yield from self._writes(medium, saver, content_of(tag, life))
            return
        if step == steps.ACKNOWLEDGE:
            yield self._result("", medium, node, rules.DONE, ("acknowledged", tag))
            return
        if step == steps.WAIT:
            yield self._result("", medium, node, rules.DONE, ("waits", self.program.after(node, rules.DONE)))
            return
        if step in PERSISTS or step == steps.PERSIST_MARK:
            file = store.layout.slots if step == steps.PERSIST_MARK else slot
            yield self._result("", store.persist(medium, file), node, rules.DONE)
            if self.bounds.faults:
                status = rules.BROKEN if store.rules.reports_failure else rules.DONE
                yield self._result("x", store.fail_persist(medium, file), node, status, ("fault",))
            return
        if step in (steps.WRITE_RECORD, steps.WRITE_EMPTY_RECORD):
            content = content_of(tag, life) if step == steps.WRITE_RECORD else NOTHING
            done = store.write_record(medium, slot, content)
            part = [store.write(medium, store.layout.record_places(slot)[0], content)] if self.bounds.faults else []
        else:
            assert step == steps.WRITE_MARK, f"the driver does not know the step {steps.NAMES[step]}"
            done, part = store.write(medium, store.layout.mark, 1), []
        yield self._result("", done, node, rules.DONE)
        if self.bounds.faults:  # having written nothing, all of it, or its first sectors
            for letter, left in zip("xzy", (medium, done, *part), strict=False):
                yield self._result(letter, left, node, rules.BROKEN, ("fault",))

    def _writes(self, medium: int, saver: Saver, content: int) -> Iterator[Done]:
        """One writer finishes one chunk; the last one joins. At most `writers` chunks are in hand at once.

        Where a persist is per thread, a writer first stores its chunk (a bit above those of the finished ones), then
        persists it.
        """
        node, chunks, store = saver.node, self.store.layout.chunks, self.store
        slot = rules.slot_of(node.words[cells.MY_TAG])
        waiting = [chunk for chunk in range(chunks) if not saver.written >> chunk & 1]
        for chunk in waiting[: self.bounds.writers]:
            finished, stored = 1 << chunk, 1 << chunks + chunk
            if self.writers_persist and not saver.written & stored:
                after, written = store.write_chunk(medium, slot, chunk, content), saver.written | stored
            elif self.writers_persist:
                after, written = store.persist_chunk(medium, slot, chunk), saver.written - stored + finished
            else:
                after, written = store.write_chunk(medium, slot, chunk, content), saver.written + finished
            if written == 2**chunks - 1:
                yield self._result(CHUNK_LETTERS[chunk], after, node, rules.DONE)
            else:
                yield Done(CHUNK_LETTERS[chunk], after, self.savers.number(Saver(node, written)), ())
        if self.bounds.faults:
            yield self._result("x", medium, node, rules.BROKEN, ("fault",))
        yield self._result("o", medium, node, rules.OVERTAKEN, ("overtaken", node.words[cells.MY_TAG]))

    def _result(self, letter: str, medium: int, node: Node, status: int, *happened: Event) -> Done:
        events = list(happened)
        following = self._arrived(self.program.after(node, status), events)
        return Done(letter, medium, following, tuple(events))
