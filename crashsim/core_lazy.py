"""The same search with fewer interleavings: what a saver does to its own slot alone is put off until it matters. Trusted.

Writing a chunk, writing or persisting the record: on a medium where a persist covers its own file only, such a step
commutes with everything that other savers do, as long as no other has the same slot. So a saver stays where its
*private* steps begin, and takes them together with its next step that others can notice:

    state       every saver before its private steps
    move        some of one saver's private steps, then one that is not private
    judged      every medium that the savers' private steps can have come to meanwhile, in any combination

The last line is what keeps it aware of persists: a crash still meets each saver anywhere among its private steps. Every
state that was left out is one of those combinations, which tests check state by state. With many writers it pays most:
the orders in which they finish are no longer told apart.

A move is written as the moves that it consists of, with spaces between.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from .bounds import Refused
from .core_system import CoreSystem, Move, State
from .core_target import cells, rules, steps
from .programs import ASKS
from .promises import Violation
from .search import Counterexample

PRIVATE = (steps.WRITE_PAYLOAD, steps.PERSIST_PAYLOAD, steps.WRITE_RECORD, steps.PERSIST_RECORD)
ITS_FILE_ONLY = ("page-cache", "ext4", "mmap", "pmem", "pmem-eadr", "failing-fsync")
"""Media on which a persist covers nothing of another file's."""


class Place(NamedTuple):
    """Somewhere among a saver's private steps: how it came there, what the medium is then, where it stands."""

    moves: tuple[str, ...]
    medium: int
    saver: int


class LazySystem:
    """A system whose savers put off their private steps."""

    def __init__(self, system: CoreSystem) -> None:
        """Raises Refused where private steps are not private."""
        if system.bounds.medium not in ITS_FILE_ONLY or system.bounds.restarts:
            why = (
                "a process starts again"
                if system.bounds.restarts
                else f"on {system.bounds.medium} a persist is no one's"
            )
            raise Refused(f"savers' own steps cannot be put off: {why}")
        self.system = system
        self._places: dict[tuple[int, int, int], list[Place]] = {}
        self._media: dict[tuple[int, ...], tuple[int, ...]] = {}

    def initial(self) -> list[tuple[str, State]]:
        """Where the system starts."""
        return self.system.initial()

    def canonical(self, state: State) -> State:
        """What the system takes for the same."""
        return self.system.canonical(state)

    def moves(self, state: State) -> Iterator[Move]:
        """Some private steps of one saver, and one that is not private."""
        shared = self._sharing(state)
        for index in range(3, len(state)):
            for place in (
                self.places(state[1], state[index], index - 3) if index not in shared else [_here(state, index)]
            ):
                here = _with(state, index, place)
                private = () if index in shared else [each.moves[-1] for each in self._onward(place, index - 3)]
                for token, following, broken in self.system.moves(here):
                    if int(token[0]) == index - 3 and token not in private:
                        yield " ".join((*place.moves, token)), following, broken

    def judge(self, state: State) -> Violation | None:
        """What some crash can break, wherever among its private steps each saver is."""
        for medium in self._met(state):
            violation = self.system.judge((state[0], medium, *state[2:]))
            if violation is not None:
                return violation
        return None

    def told(self, found: Counterexample) -> Counterexample:
        """A counterexample in the moves of the system as it is, with the private steps that its last state needs."""
        moves = tuple(token for move in found.moves for token in move.split())
        state = dict(self.initial())[found.start]
        for token in moves:
            state, broken = next((after, broken) for move, after, broken in self.system.moves(state) if move == token)
            if broken is not None:
                return Counterexample(found.start, moves, broken)
        for tokens, each in self.expanded(state):
            violation = self.system.judge(each)
            if violation is not None:
                return Counterexample(found.start, (*moves, *tokens), violation)
        raise AssertionError("a counterexample that is none")

    def expanded(self, state: State) -> Iterator[tuple[tuple[str, ...], State]]:
        """Every state that this one stands for, with the private steps that lead there; the fewest first."""
        shared = self._sharing(state)
        open_indices = [index for index in range(3, len(state)) if index not in shared]
        found: list[tuple[tuple[str, ...], State]] = [((), state)]
        for index in open_indices:
            found = [
                ((*tokens, *place.moves), _with(each, index, place))
                for tokens, each in found
                for place in self.places(each[1], each[index], index - 3)
            ]
        yield from sorted(found, key=lambda each: len(each[0]))

    def places(self, medium: int, saver: int, thread: int) -> list[Place]:
        """Everywhere among its private steps that a saver can be: here, and on from here."""
        key = (medium, saver, thread)
        found = self._places.get(key)
        if found is None:
            found = [Place((), medium, saver)]
            seen = {(medium, saver)}
            for place in found:
                for each in self._onward(place, thread):
                    if each[1:] not in seen:
                        seen.add(each[1:])
                        found.append(each)
            self._places[key] = found
        return found

    def _onward(self, place: Place, thread: int) -> Iterator[Place]:
        """One private step further, in every way."""
        node = self.system.driver.savers.values[place.saver].node
        if node.kind == ASKS and node.request[0] in PRIVATE:
            for letter, medium, saver, events in self.system.driver.ask(place.medium, place.saver, 0):
                if not events:
                    yield Place((*place.moves, f"{thread}{letter}"), medium, saver)

    def _sharing(self, state: State) -> set[int]:
        """Savers that have the same slot as another: nothing that they do is private."""
        slots: dict[int, list[int]] = {}
        for index in range(3, len(state)):
            tag = self.system.driver.savers.values[state[index]].node.words[cells.MY_TAG]
            if tag != rules.NO_TAG:
                slots.setdefault(rules.slot_of(tag), []).append(index)
        return set(itertools.chain.from_iterable(each for each in slots.values() if len(each) > 1))

    def _met(self, state: State) -> tuple[int, ...]:
        """Every medium that a crash can meet here."""
        key = (state[1], *state[3:])
        found = self._media.get(key)
        if found is None:
            found = self._media[key] = tuple(dict.fromkeys(each[1] for _, each in self.expanded(state)))
        return found


def _here(state: State, index: int) -> Place:
    return Place((), state[1], state[index])


def _with(state: State, index: int, place: Place) -> State:
    return (state[0], place.medium, *state[2:index], place.saver, *state[index + 1 :])
