"""How a store lies on a simulated medium: slot files, each a record and a payload, and the mark. Trusted.

        file 0 (slot 0)                    file 1 (slot 1)                       file n
    +----------+-----------------+     +----------+-----------------+         +------+
    | record   | payload         |     | record   | payload         |   ...   | mark |
    | 2 places | `chunks` places |     | 2 places | `chunks` places |         | 1    |
    +----------+-----------------+     +----------+-----------------+         +------+

A record is one 4 KiB page that the disk may tear between sectors: two places, valid only when both hold the same. A
payload is looked at only as a whole, so its places are its chunks, each whole or not. Contents are

    0        nothing was ever written, or an empty record
    MIXED    a torn record, a payload in parts
    n > 0    written by one save: its tag, and the life of the process (counted over restarts) it belonged to

Payload digests are taken as injective: a payload passes under a record's digests exactly when one save wrote both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .medium import NO_FILE, Image, Medium, Operation, Persist, Rules, State

RECORD_PLACES = 2
NOTHING = 0
MIXED = -1
_LIFE = 2**32


def content_of(tag: int, life: int) -> int:
    """What the save with this tag writes in this life."""
    return life * _LIFE + tag


def tag_in(content: int) -> int:
    """The tag of the save that wrote this content."""
    return content % _LIFE


def life_in(content: int) -> int:
    """The life that the save belonged to."""
    return content // _LIFE


class Layout(NamedTuple):
    """Places and files of a store with so many slots and chunks."""

    slots: int
    chunks: int

    @property
    def places_per_slot(self) -> int:
        """Record and payload."""
        return RECORD_PLACES + self.chunks

    @property
    def mark(self) -> int:
        """The place of the mark, which is a file of its own."""
        return self.slots * self.places_per_slot

    def file_of_places(self) -> list[int]:
        """The file of every place."""
        return [place // self.places_per_slot for place in range(self.mark)] + [self.slots]

    def record_places(self, slot: int) -> range:
        """Places of a slot's record."""
        start = slot * self.places_per_slot
        return range(start, start + RECORD_PLACES)

    def chunk_place(self, slot: int, chunk: int) -> int:
        """The place of one chunk of a slot's payload."""
        return slot * self.places_per_slot + RECORD_PLACES + chunk

    def record(self, image: Image, slot: int) -> int:
        """The record in a slot: the content both its places agree on, or MIXED."""
        start = slot * self.places_per_slot
        return _agreed(image[start : start + RECORD_PLACES])

    def payload(self, image: Image, slot: int) -> int:
        """The payload in a slot: the content all its places agree on, or MIXED."""
        start = slot * self.places_per_slot
        return _agreed(image[start + RECORD_PLACES : start + self.places_per_slot])

    def collapse(self, image: Image) -> Image:
        """The image with every torn record and every payload in parts replaced by one that stands for all of them."""
        found: list[int] = []
        for slot in range(self.slots):
            found += [self.record(image, slot)] * RECORD_PLACES + [self.payload(image, slot)] * self.chunks
        return (*found, image[self.mark])

    def name_of(self, place: int) -> str:
        """What lies at a place, for people."""
        slot, within = divmod(place, self.places_per_slot)
        if slot == self.slots:
            return "the mark"
        if within < RECORD_PLACES:
            return f"record {slot} ({('first', 'last')[within]} sectors)"
        return f"payload {slot}, chunk {within - RECORD_PLACES}"


class Contents(NamedTuple):
    """What a program finds in a store."""

    records: tuple[int, ...]
    payloads: tuple[int, ...]
    mark: int


def _agreed(contents: Image) -> int:
    first = contents[0]
    return first if contents.count(first) == len(contents) else MIXED


class StoreMedium:
    """A store on a medium, its states numbered, every transition computed once."""

    def __init__(self, layout: Layout, rules: Rules, losses: int | None = None) -> None:
        """With `losses`, a power loss takes at most so many writes: the least harm first, for minimal counterexamples."""
        self.layout = layout
        self.losses = losses
        self.rules = rules
        self.medium = Medium(rules)
        self.states: list[State] = []
        self._file_of = layout.file_of_places()
        self._numbers: dict[State, int] = {}
        self._written: dict[tuple[int, Operation], int] = {}
        self._recorded: dict[tuple[int, int, int], int] = {}
        self._persisted: dict[tuple[int, Persist], int] = {}
        self._failed: dict[tuple[int, Persist], int] = {}
        self._images: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self._visible: dict[int, Image] = {}
        self._contents: dict[int, Contents] = {}

    def settled(self, image: Sequence[int]) -> int:
        """The number of the state that holds exactly this, all of it durable."""
        return self.number(State(tuple(image), ()))

    def number(self, state: State) -> int:
        """The number of this state, and of all that its medium cannot tell from it."""
        found = self._numbers.get(state)  # most are in their canonical form already
        if found is None:
            canonical = self.rules.canonical(state)
            found = self._numbers.get(canonical)
            if found is None:
                found = self._numbers[canonical] = len(self.states)
                self.states.append(canonical)
        return found

    # Threads are told apart only where the medium asks: whoever saves to a slot, or recovers it, is the thread with the
    # number of its file, every writer of a chunk is a thread of its own.

    def write(self, number: int, place: int, content: int) -> int:
        """After one place was written, by the saver."""
        file = self._file_of[place]
        return self._issue(number, Operation(place, content, file, scope=(file,)))

    def write_record(self, number: int, slot: int, content: int) -> int:
        """After a slot's record was written, by the saver."""
        key = (number, slot, content)
        found = self._recorded.get(key)
        if found is None:
            state = self.states[number]
            for place in self.layout.record_places(slot):
                state = self.medium.issue(state, Operation(place, content, slot, scope=(slot,)))
            found = self._recorded[key] = self.number(state)
        return found

    def write_chunk(self, number: int, slot: int, chunk: int, content: int) -> int:
        """After one chunk of a payload was written, by a writer."""
        return self._write_chunk(number, slot, chunk, content, self._writer(slot, chunk))

    def rewrite_payload(self, number: int, slot: int, content: int) -> int:
        """After recovery wrote a whole payload again."""
        for chunk in range(self.layout.chunks):
            number = self._write_chunk(number, slot, chunk, content, slot)
        return number

    def persist(self, number: int, file: int) -> int:
        """After a file was persisted, by the saver."""
        return self._persist(number, Persist(file, file))

    def persist_chunk(self, number: int, slot: int, chunk: int) -> int:
        """After the writer of a chunk persisted what it wrote."""
        return self._persist(number, Persist(NO_FILE, self._writer(slot, chunk)))

    def fail_persist(self, number: int, file: int) -> int:
        """After a persist of a file failed."""
        key = (number, Persist(file, file))
        found = self._failed.get(key)
        if found is None:
            found = self._failed[key] = self.number(self.medium.fail_persist(self.states[number], key[1]))
        return found

    def _writer(self, slot: int, chunk: int) -> int:
        return self.layout.slots + 1 + slot * self.layout.chunks + chunk

    def _write_chunk(self, number: int, slot: int, chunk: int, content: int, thread: int) -> int:
        place = self.layout.chunk_place(slot, chunk)
        return self._issue(number, Operation(place, content, thread, scope=(slot,), note=self.rules.payload_note))

    def _issue(self, number: int, operation: Operation) -> int:
        key = (number, operation)
        found = self._written.get(key)
        if found is None:
            found = self._written[key] = self.number(self.medium.issue(self.states[number], operation))
        return found

    def _persist(self, number: int, persist: Persist) -> int:
        key = (number, persist)
        found = self._persisted.get(key)
        if found is None:
            found = self._persisted[key] = self.number(self.medium.persist(self.states[number], persist))
        return found

    def visible(self, number: int) -> Image:
        """What a program reads."""
        found = self._visible.get(number)
        if found is None:
            found = self._visible[number] = self.medium.visible(self.states[number])
        return found

    def contents(self, number: int) -> Contents:
        """What a program finds, slot by slot."""
        found = self._contents.get(number)
        if found is None:
            layout, image = self.layout, self.visible(number)
            found = self._contents[number] = Contents(
                tuple(layout.record(image, slot) for slot in range(layout.slots)),
                tuple(layout.payload(image, slot) for slot in range(layout.slots)),
                image[layout.mark],
            )
        return found

    def power_losses(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """Every state a power loss leaves, with the outstanding operations that were lost."""
        found = self._images.get(number)
        if found is None:
            images = self.medium.images(self.states[number], self.layout.collapse)
            found = [(self.number(State(each.image, ())), each.lost) for each in images]
            if self.losses is not None:
                found = [each for each in found if len(each[1]) <= self.losses]
            self._images[number] = found
        return found

    def evictions(self, number: int) -> list[int]:
        """Every other state in which a process that starts again may find the medium."""
        return [self.number(each) for each in self.rules.evictions(self.states[number])]

    def images_seen(self) -> int:
        """Crash images enumerated so far: pairs of a medium's state and an image it can leave."""
        return sum(len(images) for images in self._images.values())

    def outstanding(self, number: int) -> tuple[Operation, ...]:
        """What is not known to be durable."""
        return self.states[number].outstanding
