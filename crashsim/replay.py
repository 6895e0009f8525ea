"""A counterexample as a short string, and back: the same schedule, the same crash, the same broken promise.

    x1 . pointer-only-compare . page-cache . 2-4-2-1-0-0-0 . t . newest-survives . u0001111a1b1… . P2
    ^    program                medium       bounds         ^   promise           start, moves   crash
    version                                       digests trusted / ignored / not looked at

The bounds are savers, saves, writers, keep, faults, restarts, one persist. The moves are those of `core_system`, the
crash is a path of `core_recovery`. A string of another version is refused: what its letters meant is not known here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .bounds import EMPTY_STORE, LIMITS, USED_STORE, Bounds
from .promises import PROMISES, Violation
from .search import Counterexample

VERSION = "x1"
_DIGESTS = {"t": "trusted", "i": "ignored", "n": ""}
_MOVE = re.compile(r"[0-9][a-hoxyz]?|(?:(?:K[0-9]*|P[0-9]+)(?::[0-9]+x?)?)+/")
_CRASH = re.compile(r"(?:(?:K[0-9]*|P[0-9]+)(?::[0-9]+x?|/)?)*")


class BadReplay(ValueError):
    """A string that is no replay string of this version. The message is one line."""


class Replay(NamedTuple):
    """What a replay string says."""

    program: str
    bounds: Bounds
    counterexample: Counterexample


def split_path(path: str) -> list[tuple[str, str]]:
    """The crashes of a path, each with what became of the recovery after it: crashed at a step, completed, nothing."""
    return re.findall(r"(K[0-9]*|P[0-9]+)(/|:[0-9]+x?|)", path)


def encode(replay: Replay) -> str:
    """The string for a counterexample."""
    numbers = "-".join(str(number) for number in replay.bounds[:-1])
    found = replay.counterexample
    digests = next(letter for letter, name in _DIGESTS.items() if name == found.violation.digests)
    moves = found.start + "".join(found.moves)
    parts = [VERSION, replay.program, replay.bounds.medium, numbers, digests, found.violation.promise, moves]
    return ".".join([*parts, found.violation.crash])


def decode(string: str) -> Replay:
    """The counterexample in a string; raises BadReplay."""
    parts = string.strip().split(".")
    if parts[0] != VERSION:
        if re.fullmatch(r"x[0-9]+", parts[0]):
            raise BadReplay(f"this replay string is of version {parts[0]}, and only {VERSION} is understood here")
        raise BadReplay(f"not a replay string (they begin with {VERSION}.): {string[:40]!r}")
    if len(parts) != 8:
        raise BadReplay(f"this replay string has {len(parts)} parts where 8 belong: was it cut off?")
    _, program, medium, numbers, digests, promise, moves, crash = parts
    if not re.fullmatch(r"[0-9]{1,2}(-[0-9]{1,2}){6}", numbers):
        raise BadReplay(f"the bounds in this replay string make no sense: {numbers!r}")
    savers, saves, writers, keep, faults, restarts, one_persist = map(int, numbers.split("-"))
    bounds = Bounds(savers, saves, writers, keep, faults, restarts, one_persist, medium)
    for name, (least, most) in LIMITS.items():
        if not least <= getattr(bounds, name) <= most:
            raise BadReplay(f"{name} in this replay string is {getattr(bounds, name)}, not {least} to {most}")
    if digests not in _DIGESTS or promise not in PROMISES:
        raise BadReplay(f"this replay string names unknown digests or an unknown promise: {digests}.{promise}")
    split = _MOVE.findall(moves[1:])
    if moves[:1] not in (EMPTY_STORE, USED_STORE) or "".join(split) != moves[1:] or not _CRASH.fullmatch(crash):
        raise BadReplay("the schedule in this replay string makes no sense: was it cut off?")
    violation = Violation(promise, "", crash, _DIGESTS[digests])
    return Replay(program, bounds, Counterexample(moves[0], tuple(split), violation))
