"""The states of the real programs, told in the words of the abstract model; and its moves, for comparison."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from lastgood.crashsim import abstract_protocol as kernels
from lastgood.crashsim.abstract import Abstract
from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import Target, cells, rules, steps
from lastgood.crashsim.programs import TOUCHES
from lastgood.crashsim.search import breadth_first
from lastgood.crashsim.store_layout import RECORD_PLACES, tag_in

Edge = tuple[bytes, bytes]

TOUCHED = {
    ("fetch_add", cells.SEQUENCE): kernels.COUNT,
    ("load", cells.FREE): kernels.LOOK,
    ("load", cells.QUARANTINED): kernels.LOOK_IN_QUARANTINE,
    ("compare_swap", cells.FREE): kernels.TAKE,
    ("load", cells.MARKED): kernels.LOOK_AT_MARK,
    ("compare_swap", cells.ROOT): kernels.SWAP,
}
ASKED = {
    steps.WRITE_PAYLOAD: kernels.WRITE,
    steps.PERSIST_PAYLOAD: kernels.PERSIST_PAYLOAD,
    steps.WRITE_RECORD: kernels.WRITE_RECORD,
    steps.PERSIST_RECORD: kernels.PERSIST_RECORD,
    steps.WRITE_MARK: kernels.WRITE_MARK,
    steps.PERSIST_MARK: kernels.PERSIST_MARK,
    steps.ACKNOWLEDGE: kernels.ACKNOWLEDGE,
}


class RealStates:
    """One target within bounds, every state of it in the abstract model's form."""

    def __init__(self, target: Target, bounds: Bounds) -> None:
        self.system = CoreSystem(target, bounds, ("trusted",))
        self.model = Abstract(bounds)
        self._told: dict[tuple[int, ...], bytes] = {}
        self.words = functools.cache(self._words)
        self.medium = functools.cache(self._medium)
        self.saver = functools.cache(self._saver)

    def everything(self) -> tuple[set[bytes], set[Edge]]:
        """Every state and move that is reached by moves that break nothing, whatever a crash would break."""
        states: set[bytes] = set()
        edges: set[Edge] = set()
        outer = self

        class Watched:
            def initial(self) -> Any:
                states.update(outer.told(state) for _, state in outer.system.initial())
                return outer.system.initial()

            def moves(self, state: tuple[int, ...]) -> Iterator[Any]:
                here = outer.told(state)
                for token, following, broken in outer.system.moves(state):
                    if broken is None:
                        there = outer.told(following)
                        states.add(there)
                        edges.add((here, there))
                        yield token, following, None

            def canonical(self, state: tuple[int, ...]) -> tuple[int, ...]:
                return outer.system.canonical(state)

            def judge(self, state: tuple[int, ...]) -> None:
                return None

        assert breadth_first(Watched()).exhaustive
        return states, edges

    def told(self, state: tuple[int, ...]) -> bytes:
        found = self._told.get(state)
        if found is None:
            ghost = self.system.ghosts.values[state[2]]
            counter, root, marked, free = self.words(state[0])
            mark, places = self.medium(state[1])
            acknowledged = self.tag(ghost.acknowledged[0] if ghost.acknowledged else 0)
            numbers = [ghost.started, counter, root, marked, mark, acknowledged, free, *places]
            found = self._told[state] = self.model.packed([*numbers, *map(self.saver, state[3:])])
        return found

    def tag(self, tag: int) -> int:
        return rules.sequence_of(tag) << self.model.slot_bits | rules.slot_of(tag)

    def _words(self, number: int) -> tuple[int, int, int, int]:
        words = self.system.driver.cells.values[number]
        return words[cells.SEQUENCE], self.tag(words[cells.ROOT]), words[cells.MARKED], words[cells.FREE]

    def _medium(self, number: int) -> tuple[int, list[int]]:
        """The mark's place, and those of each slot: the two halves of a record are always alike, and count as one."""
        layout, bits = self.system.layout, self.model.content_bits
        base, outstanding = self.system.store.states[number][:2]
        places = []
        for place, content in enumerate(base):
            written = [each.content for each in outstanding if each.place == place]
            if place == layout.mark:
                mark = packed_place(content, written, 1)
            else:
                places.append(packed_place(rules.sequence_of(tag_in(content)), [each >> 12 for each in written], bits))
        for start in range(0, layout.mark, layout.places_per_slot):
            assert len(set(places[start : start + RECORD_PLACES])) == 1
        return mark, [each for place, each in enumerate(places) if place % layout.places_per_slot >= RECORD_PLACES - 1]

    def _saver(self, number: int) -> int:
        if number == self.system.driver.idle:
            return 0
        node, written = self.system.driver.savers.values[number]
        own = node.words[cells.MY_TAG]
        tag = own or rules.tag_of(node.words[cells.MY_SEQUENCE], 0)
        seen, mask = node.history[0], 0
        if node.kind == TOUCHES:
            name, cell, *arguments = node.request
            at = TOUCHED.get((name, cell))
            if at == kernels.TAKE:
                mask = arguments[0]
            elif at == kernels.SWAP:
                seen = arguments[0]
            elif (name, cell) == ("load", cells.ROOT):
                at = kernels.LOOK_FOR_NEWER
            elif (name, cell) == ("compare_swap", cells.MARKED):
                at = kernels.TAKE_MARK if arguments[0] == rules.MARK_ABSENT else kernels.RELEASE_MARK
            elif (name, cell) == ("fetch_add", cells.FREE):
                published = node.words[cells.OUTCOME] == rules.PUBLISHED
                at, seen = (kernels.RELEASE_SEEN, node.history[-1]) if published else (kernels.RELEASE_OWN, 0)
                assert arguments[0] == 1 << (rules.slot_of(seen if published else own))
            assert at is not None, node.request
        else:
            waits = kernels.WAIT_FOR_MARK if own else kernels.WAIT_FOR_SLOT
            at = waits if node.request[0] == steps.WAIT else ASKED[node.request[0]]
        return int(kernels.saver_of(at, written, mask, self.tag(seen), self.tag(tag), self.model.sizes))


def packed_place(base: int, written: list[int], bits: int) -> int:
    last = written[-1] if written else base
    return base | last << bits | sum({1 << each for each in written} - {1 << base, 1 << last}) >> 1 << 2 * bits


def of_the_model(model: Abstract) -> tuple[set[bytes], set[Edge]]:
    """The same for the abstract model."""
    model.search(judging=False)
    return model.states(), set(model.moves())
