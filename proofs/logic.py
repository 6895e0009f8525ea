"""Two ways to read one transition system: with z3, for any number of slots and savers, or with Python, for a few.

`protocol` is written once, with these words in the place of Python's own `and`, `or`, `not` and `if`. A `Symbols` logic
makes formulas of it, and a `Values` logic makes true or false. What z3 proves and what the search finds is therefore
said of the same text. Trusted: that the words mean the same in both, which the tests compare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

Condition = Any
"""A bool, or z3's."""
Of = Callable[[Any], Any]
"""What each slot, or each saver, has: a value for every one of them."""


def put(values: Of, changed: Any, value: Any, logic: Logic) -> Of:
    """The same values, but for one slot or saver."""
    return lambda which: logic.when(which == changed, value, values(which))


def everywhere(value: Any) -> Of:
    """The same value for every slot or saver."""
    return lambda which: value


class Logic:
    """The words that a transition system is written in."""

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

    def every_slot(self, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of every slot."""
        raise NotImplementedError

    def every_saver(self, condition: Callable[[Any], Condition]) -> Condition:
        """This holds of every saver."""
        raise NotImplementedError

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


class Symbols(Logic):
    """Formulas for z3. Slots and savers are of sorts that z3 knows nothing about: there may be any number of them."""

    def __init__(self) -> None:
        """Make the two sorts."""
        self.slot_sort = z3.DeclareSort("Slot")
        self.saver_sort = z3.DeclareSort("Saver")
        self._bound = 0

    def both(self, *conditions: Condition) -> Condition:
        return z3.And(*conditions)

    def either(self, *conditions: Condition) -> Condition:
        return z3.Or(*conditions)

    def no(self, condition: Condition) -> Condition:
        return z3.Not(condition)

    def when(self, condition: Condition, then: Any, otherwise: Any) -> Any:
        return z3.If(condition, then, otherwise)

    def every_slot(self, condition: Callable[[Any], Condition]) -> Condition:
        return self._every(self.slot_sort, condition)

    def every_saver(self, condition: Callable[[Any], Condition]) -> Condition:
        return self._every(self.saver_sort, condition)

    def _every(self, sort: z3.SortRef, condition: Callable[[Any], Condition]) -> Condition:
        self._bound += 1
        which = z3.Const(f"{sort.name()}{self._bound}", sort)
        return z3.ForAll([which], condition(which))


class Values(Logic):
    """Plain Python, for so many slots and savers. They are numbers from 0."""

    def __init__(self, slot_count: int, saver_count: int) -> None:
        """Say how many there are."""
        self.slots = range(slot_count)
        self.savers = range(saver_count)

    def both(self, *conditions: Condition) -> Condition:
        return all(conditions)

    def either(self, *conditions: Condition) -> Condition:
        return any(conditions)

    def no(self, condition: Condition) -> Condition:
        return not condition

    def when(self, condition: Condition, then: Any, otherwise: Any) -> Any:
        return then if condition else otherwise

    def every_slot(self, condition: Callable[[Any], Condition]) -> Condition:
        return all(condition(slot) for slot in self.slots)

    def every_saver(self, condition: Callable[[Any], Condition]) -> Condition:
        return all(condition(saver) for saver in self.savers)
