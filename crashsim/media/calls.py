"""What programs do to a medium, as data: one call a line, written down and read back. Trusted.

    create a; append a xy; fsync a; rename a b          files: paths, one letter a page
    store 0 A0 x; clwb 0 A; sfence 0                    memory: thread, word 0 of line A
    submit 1 AB x; drain; complete 1                    a disk: request, sectors

After a colon stands how a call went wrong: the name of an error, or the number of units that a write came to instead of
all of them.

    fsync a: EIO        append a xyz: 1        create a: ENOSPC
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LIE = "LIE"
"""Beside the names of errors: the call said that all went well, and it did not."""


class Call(NamedTuple):
    """One call, and how it went wrong: an error, or how many units it came to; nothing when all went well."""

    name: str
    arguments: tuple[str, ...]
    outcome: str = ""

    def __str__(self) -> str:
        words = " ".join((self.name, *self.arguments))
        return f"{words}: {self.outcome}" if self.outcome else words

    @property
    def failed(self) -> bool:
        """Whether it did nothing of what it was asked for."""
        return bool(self.outcome) and not self.outcome.isdigit()

    def came_to(self, units: str) -> str:
        """The part of these units that was done."""
        return units[: int(self.outcome)] if self.outcome.isdigit() else units


Program = tuple[Call, ...]


def parse(text: str) -> Program:
    """The program that is written here, calls separated by semicolons."""
    program = []
    for line in filter(None, map(str.strip, text.split(";"))):
        asked, _, outcome = line.partition(":")
        name, *arguments = asked.split()
        program.append(Call(name, tuple(arguments), outcome.strip()))
    return tuple(program)


def written(program: Iterable[Call]) -> str:
    """The program as text."""
    return "; ".join(map(str, program))
