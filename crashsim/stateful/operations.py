"""What a store does to a disk, one operation a step; how one is refused; and what a power loss takes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import NamedTuple

NAMES = -1
"""What stands in the place of a file's number where names are meant."""


class Operation(NamedTuple):
    """What a store is about to do: "create", "write", "persist", "read", "resize", "rename", "remove", "persist-names"."""

    kind: str
    name: str
    offset: int = 0
    length: int = 0
    file: int = NAMES

    def __str__(self) -> str:
        """As people say it."""
        place = f" at {self.offset}" if self.kind in ("write", "read") else ""
        return f"{self.kind} {self.name}{place}".strip()


ON_THE_WAY = ("persist", "write", "read", "resize", "create", "rename", "remove", "persist-names")
"""Every kind of operation, those first that most depends on."""


class Refusal(NamedTuple):
    """The world says no: an errno, and how many quarters of a write were done before."""

    error: int = errno.EIO
    quarters: int = 0


class Loss(NamedTuple):
    """Which outstanding micro-operations a power loss takes: whole operations, by bits, and parts of one that is torn.

    Bit i of `operations` stands for the i-th, counted round; the `torn`-th loses the sectors whose bits are set in
    `sectors`, counted round too. All zero loses nothing, which is what failures shrink towards.
    """

    operations: int = 0
    torn: int = -1
    sectors: int = 0


NOTHING = Loss()
"""Everything was written back in time."""
EVERYTHING = Loss(operations=-1)
"""The loss of all that is outstanding."""


Hook = Callable[[Operation], Refusal | None]


def nothing_refused(operation: Operation) -> None:
    """The hook of a disk that nobody schedules."""


def raise_refusal(refusal: Refusal | None, name: str) -> None:
    """Raise the OSError of a refusal."""
    if refusal is not None:
        raise OSError(refusal.error, os.strerror(refusal.error), name)
