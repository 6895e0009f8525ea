"""Machine words for z3 that the core's own rules run on, unmodified: signed, of a fixed width, wrapping as hardware does.

CrossHair's integers have no end; those of compiled code wrap at 2^63. A `Word` stands for any such integer at once: the
rules add, multiply, divide and compare it with Python's operators, as the compiler would in int64. A comparison that a
rule branches on forks the run: `runs` calls the function once for each way through it and says under which condition
that way is taken. Trusted: that the operators below mean what numba compiles (a test compares them with compiled code).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import z3

WIDTH = 64


class Word:
    """A signed integer of `bits.size()` bits that wraps."""

    def __init__(self, bits: z3.BitVecRef) -> None:
        """Wrap z3's bits."""
        self.bits = bits

    def _other(self, other: Word | int) -> z3.BitVecRef:
        return other.bits if isinstance(other, Word) else z3.BitVecVal(other, self.bits.size())

    def __add__(self, other: Word | int) -> Word:
        return Word(self.bits + self._other(other))

    __radd__ = __add__

    def __sub__(self, other: Word | int) -> Word:
        return Word(self.bits - self._other(other))

    def __mul__(self, other: Word | int) -> Word:
        return Word(self.bits * self._other(other))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Word:
        """Divide and round down, as Python and numba do (z3 and hardware round towards zero)."""
        if divisor & (divisor - 1) == 0:
            return Word(self.bits >> (divisor.bit_length() - 1))
        by = self._other(divisor)
        towards_zero = self.bits / by
        return Word(z3.If(z3.SRem(self.bits, by) < 0, towards_zero - 1, towards_zero))

    def __mod__(self, divisor: int) -> Word:
        """Take the remainder with the divisor's sign, as Python and numba do."""
        if divisor & (divisor - 1) == 0:
            return Word(self.bits & (divisor - 1))
        by = self._other(divisor)
        remainder = z3.SRem(self.bits, by)
        return Word(z3.If(remainder < 0, remainder + by, remainder))

    def __rpow__(self, base: int) -> Word:
        """Two to this power; the only base there is."""
        assert base == 2, "only powers of two are modelled"
        return Word(z3.BitVecVal(1, self.bits.size()) << self.bits)

    def __lt__(self, other: Word | int) -> Choice:
        return Choice(self.bits < self._other(other))

    def __le__(self, other: Word | int) -> Choice:
        return Choice(self.bits <= self._other(other))

    def __gt__(self, other: Word | int) -> Choice:
        return Choice(self.bits > self._other(other))

    def __ge__(self, other: Word | int) -> Choice:
        return Choice(self.bits >= self._other(other))

    def __eq__(self, other: object) -> Choice:  # type: ignore[override]
        assert isinstance(other, Word | int), "words compare with words"
        return Choice(self.bits == self._other(other))

    def __ne__(self, other: object) -> Choice:  # type: ignore[override]
        assert isinstance(other, Word | int), "words compare with words"
        return Choice(self.bits != self._other(other))

    __hash__ = None  # type: ignore[assignment]


class Choice:
    """A comparison of words. Branching on it asks the run that is under way which side to take."""

    def __init__(self, condition: z3.BoolRef) -> None:
        """Wrap z3's condition."""
        self.condition = condition

    def __bool__(self) -> bool:
        assert Run.current is not None, "words are compared inside `runs` only"
        return Run.current.take(self.condition)


class Run:
    """One way through a function: the sides taken so far, and the first new branch, which takes its true side."""

    current: Run | None = None

    def __init__(self, given: z3.BoolRef, sides: list[bool]) -> None:
        """Follow `sides`, then go on with every side that can be."""
        self.solver = z3.Solver()
        self.solver.add(given)
        self.sides = sides
        self.depth = 0
        self.conditions: list[z3.BoolRef] = []

    def take(self, condition: z3.BoolRef) -> bool:
        """Take a side of this branch, one that can be taken at all."""
        if self.depth == len(self.sides):
            self.sides.append(self.solver.check(condition) != z3.unsat)
        side = self.sides[self.depth]
        self.depth += 1
        chosen = condition if side else z3.Not(condition)
        self.solver.add(chosen)
        self.conditions.append(chosen)
        return side


def runs(function: Callable[..., Any], *arguments: Any, given: z3.BoolRef) -> Iterator[tuple[z3.BoolRef, Any]]:
    """Every way through `function` that `given` allows: the condition under which it is taken, and what it returns."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        run = Run(given, waiting.pop())
        known = len(run.sides)
        Run.current = run
        try:
            result = function(*arguments)
        finally:
            Run.current = None
        for depth in range(known, len(run.sides)):
            if run.sides[depth] and other_side_possible(run, given, depth):
                waiting.append([*run.sides[:depth], False])
        yield z3.And(given, *run.conditions), result


def other_side_possible(run: Run, given: z3.BoolRef, depth: int) -> bool:
    """Whether the false side of this branch can be taken after the same branches before it."""
    solver = z3.Solver()
    solver.add(given, *run.conditions[:depth])
    taken = run.conditions[depth]
    return bool(solver.check(z3.Not(taken)) != z3.unsat)


def as_bits(value: Word | int, width: int = WIDTH) -> z3.BitVecRef:
    """The bits of a rule's answer, which may be a plain int on some ways through it."""
    return value.bits if isinstance(value, Word) else z3.BitVecVal(value, width)
