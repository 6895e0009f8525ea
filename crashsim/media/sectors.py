"""Requests to a disk, cut into micro-operations, for the media that hold sectors. Trusted.

    write S x       x in every sector of S, submitted and completed        drain         a persist of the whole device
    submit n S x    submitted as request n                                 fua S x       a write that is its own persist
    complete n      request n has completed

Sectors are 512 bytes, named A, B, C, …; so many neighbours as make up an atom are written in one micro-operation when a
request covers all of them. Contents are written in the order of the sectors' names, a point for one that still holds
what it held at first.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..medium import NO_FILE, Medium, Operation, Persist, Rules, State
from .block import IN_FLIGHT
from .calls import Call, Program
from .memory import written_images

DEVICE = 0
AT_ONCE = -1
"""The request number of a write that completes at once."""


class Sectors:
    """The sectors of one disk, which a program writes."""

    def __init__(self, rules: Rules, program: Program, *, sectors_per_atom: int = 1) -> None:
        """Run this program; its sectors are those that it names."""
        self._names = sorted({each for call in program for each in _sectors(call)})
        self._sectors_per_atom = sectors_per_atom
        self.medium = Medium(rules)
        self.state = State((0,) * len(self._names), ())
        for call in program:
            self._do(call)

    def images(self) -> set[str]:
        """Every content that a power loss can leave now."""
        return written_images(self.medium, self.state)

    def _do(self, call: Call) -> None:
        if call.name == "drain":
            does = self.medium.fail_persist if call.failed else self.medium.persist
            self.state = does(self.state, Persist(DEVICE, 0))
        elif call.name == "complete":
            self._complete(int(call.arguments[0]))
        elif call.name in ("write", "submit", "fua"):
            request = int(call.arguments[0]) if call.name == "submit" else AT_ONCE
            before = len(self.state.outstanding)
            for atom in self._atoms(_sectors(call)):
                places = [self._names.index(each) for each in atom]
                content = ord(call.arguments[-1])
                also = tuple((place, content) for place in places[1:])
                operation = Operation(places[0], content, request, call.failed, (DEVICE,), IN_FLIGHT, also)
                self.state = self.medium.issue(self.state, operation)
            if call.name == "fua" and not call.failed:
                count = len(self.state.outstanding)
                self.state = self.medium.settle(self.state, [index >= before for index in range(count)])
            self._complete(AT_ONCE)
        else:
            raise ValueError(f"a disk knows no call {call.name!r}")

    def _complete(self, request: int) -> None:
        """Nothing changes on the medium: from now on a persist covers the request."""
        outstanding = tuple(
            each._replace(note=0, thread=NO_FILE) if (each.thread, each.note) == (request, IN_FLIGHT) else each
            for each in self.state.outstanding
        )
        self.state = State(self.state.base, outstanding)

    def _atoms(self, sectors: str) -> Iterator[str]:
        """These neighbouring sectors, cut at every boundary between atoms."""
        atom = ""
        for each in sectors:
            if atom and (ord(each) - ord("A")) % self._sectors_per_atom == 0:
                yield atom
                atom = ""
            atom += each
        yield atom


def _sectors(call: Call) -> str:
    return call.arguments[-2] if call.name in ("write", "submit", "fua") else ""
