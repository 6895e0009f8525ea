"""Which states count as the same: sequences by their order alone, payload by what recovery can tell of it. Trusted.

Programs compare tags; they never count with them. So only the order of the sequences in a state matters, not their
size, and a state in which saves 3, 7 and 9 are left behaves like one with saves 1, 2 and 3. And of a chunk only one
thing is ever asked: whether its save is the one that a record names. A content that no record of its slot names, nor
will, is *stale*, and one stale content is as good as another.

With both, any number of saves comes to finitely many states (`Bounds.saves` 0). The search keeps one state of each kind as
it is, so every move and replay string is one of the programs as they are. Pinned by tests that search without.

A value counts as a tag when no slot set is as large; a variable that holds a bare sequence is known by its name, and a
program with variables of other names is refused. So is a process that starts again, since a life is no sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .bounds import Bounds, Refused
from .core_driver import Driver, Interned
from .core_target import Target, cells, real_target, rules
from .medium import State as MediumState
from .store_layout import NOTHING, StoreMedium

State = tuple[int, ...]
STALE = -2
_SLOT_SETS = 12
"""So many slots at most: then a slot set is smaller than any tag."""


class Same:
    """Tells which states of one system behave alike."""

    def __init__(self, target: Target, bounds: Bounds, driver: Driver, store: StoreMedium, ghosts: Interned) -> None:
        """Raises Refused where sequences cannot be told from other numbers."""
        names = set(target.save.__code__.co_varnames) - set(real_target().save.__code__.co_varnames)
        if names or bounds.slots > _SLOT_SETS or bounds.restarts:
            why = f"the program has variables of its own: {', '.join(sorted(names))}" if names else "too many slots"
            why = "a process that starts again has no one order of saves" if bounds.restarts else why
            raise Refused(f"sequences cannot be told by their order alone: {why}")
        self.bounds = bounds
        self.driver = driver
        self.store = store
        self.ghosts = ghosts
        self._known: dict[Any, Any] = {}
        self._numbers = Interned()

    def key(self, state: State) -> State:
        """The same for states that behave alike, whoever of the savers is who."""
        words, ghost, savers = ("words", state[0]), ("ghost", state[2]), [("saver", each) for each in state[3:]]
        tags = frozenset().union(*(self._once(("tag", each), self._own_tag) for each in savers))
        medium = ("medium", state[1], tags)
        parts = [words, ghost, medium, *savers]
        live = frozenset().union(*(self._once(("live", each), self._live) for each in parts))
        order = self._once(("order", live), lambda asked: tuple(sorted(asked[1])))
        told = [self._once(("told", each, order), self._told) for each in parts]
        return (*told[:3], *sorted(told[3:]))

    def _once(self, asked: Any, answer: Callable[[Any], Any]) -> Any:
        found = self._known.get(asked)
        if found is None:
            found = self._known[asked] = answer(asked)
        return found

    def _own_tag(self, asked: Any) -> frozenset[int]:
        """The tag of a save under way: its record may still be written."""
        node = self.driver.savers.values[asked[1][1]].node
        return frozenset({node.words[cells.MY_TAG]} - {rules.NO_TAG})

    def _live(self, asked: Any) -> frozenset[int]:
        """Every sequence that occurs in a part of a state."""
        return frozenset(rules.sequence_of(each) for each in self._tags(self._part(asked[1])))

    def _told(self, asked: Any) -> int:
        """The number of a part with its sequences replaced by their places in the order."""
        _, part, order = asked
        ranks = {sequence: rank for rank, sequence in enumerate(order, 1)}
        return self._numbers.number((part[0], self._ranked(self._part(part), ranks)))

    def _tags(self, value: Any) -> Iterable[int]:
        """Every tag within a value."""
        if isinstance(value, tuple | frozenset):
            for each in value:
                yield from self._tags(each)
        elif isinstance(value, int) and value >= rules.SLOT_LIMIT:
            yield value

    def _ranked(self, value: Any, ranks: dict[int, int]) -> Any:
        """A value with the sequence in each of its tags replaced."""
        if isinstance(value, tuple):
            return tuple(self._ranked(each, ranks) for each in value)
        if isinstance(value, frozenset):
            return frozenset(self._ranked(each, ranks) for each in value)
        if isinstance(value, int) and value >= rules.SLOT_LIMIT:
            return rules.tag_of(ranks[rules.sequence_of(value)], rules.slot_of(value))
        return value

    def _part(self, part: Any) -> Any:
        """A part of a state as a value in which every sequence is written as a tag."""
        return self._once(part, getattr(self, f"_{part[0]}"))

    def _words(self, part: Any) -> Any:
        words = list(self.driver.cells.values[part[1]])
        words[cells.SEQUENCE] = rules.tag_of(words[cells.SEQUENCE], 0)
        return tuple(words)

    def _ghost(self, part: Any) -> Any:
        ghost = self.ghosts.values[part[1]]
        return ghost if self.bounds.saves else ghost._replace(started=0)

    def _saver(self, part: Any) -> Any:
        saver = self.driver.savers.values[part[1]]
        node = saver.node
        words = list(node.words)
        words[cells.MY_SEQUENCE] = rules.tag_of(words[cells.MY_SEQUENCE], 0)
        return node.kind, node.request, tuple(words), node.passed, node.worst, _by_name(node.snapshot), saver.written

    def _medium(self, part: Any) -> Any:
        """The medium with every stale content of a payload replaced by one."""
        layout, (base, outstanding) = self.store.layout, self.store.states[part[1]]
        named: list[set[int]] = [set(part[2]) for _ in range(layout.slots)]
        for slot in range(layout.slots):
            named[slot] |= {base[place] for place in layout.record_places(slot)}
            named[slot] |= {each.content for each in outstanding if each.place in layout.record_places(slot)}
            named[slot] -= {NOTHING}

        def fresh(place: int, content: int) -> int:
            slot, within = divmod(place, layout.places_per_slot)
            payload = slot < layout.slots and within >= len(layout.record_places(slot))
            return STALE if payload and content not in named[slot] else content

        operations = tuple(each._replace(content=fresh(each.place, each.content)) for each in outstanding)
        contents = tuple(fresh(place, content) for place, content in enumerate(base))
        return tuple(self.store.rules.canonical(MediumState(contents, operations)))


def _by_name(snapshot: Any) -> Any:
    """Where a frame stands, with a bare sequence written as a tag."""
    if isinstance(snapshot, tuple) and len(snapshot) == 2 and snapshot[0] == "sequence":
        return snapshot[0], rules.tag_of(snapshot[1], 0)
    return tuple(_by_name(each) for each in snapshot) if isinstance(snapshot, tuple) else snapshot
