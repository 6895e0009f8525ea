"""Two ways to read one transition system: with z3, for any number of slots and savers, or with Python, for a few.

`protocol` is written once, with these words in the place of Python's own `and`, `or`, `not` and `if`. A `Symbols` logic
makes formulas of it, and a `Values` logic makes true or false. What z3 proves and what the search finds is therefore
said of the same text. Trusted: that the words mean the same in both, which the tests compare.

Slots and savers have no order. *Cells*, the places of the row of kept checkpoints, have: `before` says which of two
comes first, and there are a `first` and a `last` one, perhaps the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

Condition = Any
"""A bool, or z3's."""
Of = Callable[[Any], Any]
"""What each slot, saver or cell has: a value for every one of them."""


def put(values: Of, changed: Any, value: Any, logic: Logic) -> Of:
    """The same values, but for one slot, saver or cell."""
    return lambda which: logic.when(which == changed, value, values(which))


def everywhere(value: Any) -> Of:
    """The same value for every slot, saver or cell."""
    return lambda which: value


class Logic:
    """The words that a transition system is written in."""

    first: Any
    last: Any

    def both(self, *conditions: Condition) -> Condition:
        """All of these hold."""
        raise NotImplementedError

    def either(self, *conditions: Condition) -> Condition:
        """One of these holds."""
        raise NotImplementedError

    def no(self, condition: Condition) -> Condition:
        """This does not hold."""
        raise NotImplementedError

    def when(self, condition: Condition, then: Any, otherwise: Any) -> Any:
        """One of two values."""
        raise NotImplementedError

    def every(self, kind: str, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of every slot, saver or cell."""
        raise NotImplementedError

    def before(self, cell: Any, other: Any) -> Condition:
        """The one cell comes before the other."""
        raise NotImplementedError

    def digest(self, payload: Any) -> Any:
        """The digest of a payload."""
        raise NotImplementedError

    def every_slot(self, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of every slot."""
        return self.every("slot", condition)

    def every_saver(self, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of every saver."""
        return self.every("saver", condition)

    def every_cell(self, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of every cell."""
        return self.every("cell", condition)

    def some_slot(self, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of some slot."""
        return self.no(self.every_slot(lambda slot: self.no(condition(slot))))

    def implies(self, condition: Condition, conclusion: Condition) -> Condition:
        """If the one, then the other."""
        return self.either(self.no(condition), conclusion)

    def one_of(self, value: Any, *possible: Any) -> Condition:
        """The value is one of these."""
        return self.either(*(value == other for other in possible))

    def larger(self, first: Any, second: Any) -> Any:
        """The larger of two numbers."""
        return self.when(first < second, second, first)

    def follows(self, cell: Any, other: Any) -> Condition:
        """The other cell comes right after this one."""
        between = self.every_cell(lambda third: self.no(self.both(self.before(cell, third), self.before(third, other))))
        return self.both(self.before(cell, other), between)

    def up_to(self, cell: Any, other: Any) -> Condition:
        """The one cell is the other, or comes before it."""
        return self.either(cell == other, self.before(cell, other))


class Symbols(Logic):
    """Formulas for z3. Slots, savers and cells are of sorts that z3 knows nothing about: there may be any number.

    `axioms` say what is given of them: that cells are in an order, and that two payloads never have one digest.
    """

    def __init__(self) -> None:
        """Make the sorts."""
        self.sorts = {kind: z3.DeclareSort(kind.capitalize()) for kind in ("slot", "saver", "cell")}
        cell = self.sorts["cell"]
        digest_sort = z3.DeclareSort("Digest")
        self._before = z3.Function("before", cell, cell, z3.BoolSort())
        self._digest = z3.Function("digest", z3.IntSort(), digest_sort)
        self._payload_of = z3.Function("payload_of", digest_sort, z3.IntSort())
        self.first, self.last = z3.Consts("first last", cell)
        self._depth = 0
        self.axioms = self._axioms()

    def _axioms(self) -> list[z3.BoolRef]:
        before = self._before
        one, two, three = z3.Consts("one two three", self.sorts["cell"])
        return [
            z3.ForAll([one], z3.Not(before(one, one))),
            z3.ForAll([one, two, three], z3.Implies(z3.And(before(one, two), before(two, three)), before(one, three))),
            z3.ForAll([one, two], z3.Or(one == two, before(one, two), before(two, one))),
            z3.ForAll([one], z3.Or(one == self.first, before(self.first, one))),
            z3.ForAll([one], z3.Or(one == self.last, before(one, self.last))),
        ]

    def digests_differ(self) -> z3.BoolRef:
        """Two payloads never have one digest: there is a way back."""
        payload = z3.Int("payload")
        return z3.ForAll([payload], self._payload_of(self._digest(payload)) == payload)

    def both(self, *conditions: Condition) -> Condition:
        return z3.And(*conditions)

    def either(self, *conditions: Condition) -> Condition:
        return z3.Or(*conditions)

    def no(self, condition: Condition) -> Condition:
        return z3.Not(condition)

    def when(self, condition: Condition, then: Any, otherwise: Any) -> Any:
        return z3.If(condition, then, otherwise)

    def every(self, kind: str, condition: Callable[[Any], Condition]) -> Condition:
        which = z3.Const(f"{kind}_{self._depth}", self.sorts[kind])
        self._depth += 1  # what is the same formula has the same text, whenever it is made
        try:
            return z3.ForAll([which], condition(which))
        finally:
            self._depth -= 1

    def before(self, cell: Any, other: Any) -> Condition:
        return self._before(cell, other)

    def digest(self, payload: Any) -> Any:
        return self._digest(payload)


class Few(Symbols):
    """The same formulas for a few slots, savers and cells, so that z3 can show a state that breaks one of them."""

    def __init__(self, **counts: int) -> None:
        """Say how many there are of each kind."""
        self.members: dict[str, Sequence[Any]] = {}
        self.sorts = {}
        for kind, count in counts.items():
            context = f"{kind.capitalize()}{count}"
            if context not in SORTS:
                SORTS[context] = z3.EnumSort(context, [f"{kind}_{number}" for number in range(count)])
            self.sorts[kind], self.members[kind] = SORTS[context]
        cells = self.members["cell"]
        self.first, self.last = cells[0], cells[-1]
        self.axioms = []

    def every(self, kind: str, condition: Callable[[Any], Condition]) -> Condition:
        return z3.And(*(condition(which) for which in self.members[kind]))

    def before(self, cell: Any, other: Any) -> Condition:
        cells = self.members["cell"]
        pairs = [(one, two) for place, one in enumerate(cells) for two in cells[place + 1 :]]
        return z3.Or(*(z3.And(cell == one, other == two) for one, two in pairs))

    def digest(self, payload: Any) -> Any:
        return payload


SORTS: dict[str, Any] = {}
"""Sorts with so many members, made once: z3 refuses a second one of the same name."""


class Values(Logic):
    """Plain Python, for so many slots, savers and cells. They are numbers from 0."""

    def __init__(self, slots: int, savers: int, cells: int) -> None:
        """Say how many there are."""
        self.members = {"slot": range(slots), "saver": range(savers), "cell": range(cells)}
        self.first, self.last = 0, cells - 1

    def both(self, *conditions: Condition) -> Condition:
        return all(conditions)

    def either(self, *conditions: Condition) -> Condition:
        return any(conditions)

    def no(self, condition: Condition) -> Condition:
        return not condition

    def when(self, condition: Condition, then: Any, otherwise: Any) -> Any:
        return then if condition else otherwise

    def every(self, kind: str, condition: Callable[[Any], Condition]) -> Condition:
        return all(condition(which) for which in self.members[kind])

    def before(self, cell: Any, other: Any) -> Condition:
        return cell < other

    def digest(self, payload: Any) -> Any:
        return payload
