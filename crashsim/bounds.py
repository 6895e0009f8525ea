"""What a search covers, in numbers. Every verdict is a verdict within these."""

from __future__ import annotations

from typing import NamedTuple

CHUNK_LETTERS = "abcdefgh"
EMPTY_STORE = "e"
USED_STORE = "u"


class Refused(ValueError):
    """What cannot be searched in this way. The message is one line."""


class Bounds(NamedTuple):
    """Sizes of the store, how much happens to it, and on which medium.

    `savers` saves at once, `saves` in all (0: any number), each by `writers` threads, the newest `keep` kept; at most
    `faults` steps fail; the process starts again at most `restarts` times and goes on saving (crashes without that are
    always tried).
    """

    savers: int = 2
    saves: int = 4
    writers: int = 2
    keep: int = 1
    faults: int = 0
    restarts: int = 0
    one_persist: int = 0
    medium: str = "page-cache"

    @property
    def slots(self) -> int:
        """A store has a slot for every saver and every kept checkpoint."""
        return self.savers + self.keep

    @property
    def chunks(self) -> int:
        """At least two, so that a payload can be there in part."""
        return max(2, self.writers)

    def sentence(self) -> str:
        """The bounds in words."""
        words = [
            _counted(self.savers, "saver"),
            _counted(self.saves, "save") if self.saves else "any number of saves",
            _counted(self.writers, "writer"),
            f"keep {self.keep}",
            _counted(self.slots, "slot"),
            _counted(self.faults, "fault"),
            _counted(self.restarts, "restart"),
        ]
        return ", ".join([*words, *(["one persist a save"] if self.one_persist else []), f"medium {self.medium}"])


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


LIMITS = {
    "savers": (1, 9),
    "saves": (0, 99),
    "writers": (1, len(CHUNK_LETTERS)),
    "keep": (1, 16),
    "faults": (0, 99),
    "restarts": (0, 9),
}
"""The smallest and largest value that each number may have."""


# --- how large a search will be --------------------------------------------------------------------------------------

MEASURED = {
    1: {1: 35, 2: 65, 4: 125, 8: 245},
    2: {2: 1_165, 3: 6_573, 4: 28_841, 5: 101_000, 6: 298_000, 8: 2_010_000},
    3: {3: 66_782, 4: 979_668},
}
"""States on the page cache with two writers, by savers that really overlap and by saves: what was counted."""

ANY_NUMBER = {1: 59, 2: 104_363}
"""The same where any number of saves is allowed."""

_PER_SAVER = 34  # a further saver, where nothing was counted
_PER_SAVE = 9  # a further save of three savers or more; of two it is what the last two counts say
_PER_FAULT = 6.1
_PER_RESTART = 2.9
_BY_WRITERS = {1: 0.8, 2: 1.0, 3: 3.0, 4: 14.0}
_BY_MEDIUM = {"strict": 2.7, "block": 3.1, "pmem": 3.2, "pmem-eadr": 3.2}
STATES_A_SECOND = 20_000
BYTES_A_STATE = 1_200
AT_MOST = 10_000_000
"""States that a search may be expected to have before somebody is asked whether that is meant."""


class Estimate(NamedTuple):
    """How large a search will be, to an order of magnitude, and what to do instead when that is too large."""

    states: int
    seconds: float
    memory_bytes: int
    instead: str

    @property
    def is_too_large(self) -> bool:
        """Whether it should not be begun without asking."""
        return self.states > AT_MOST

    @property
    def sentence(self) -> str:
        """One line for people."""
        size = f"about {_rounded(self.states)} states, {_duration(self.seconds)} and {_rounded(self.memory_bytes / 1e9)} GB"
        return f"these bounds are too large to finish: {size}; {self.instead}" if self.is_too_large else size


def estimate(bounds: Bounds) -> Estimate:
    """What a search within these bounds will take, told before it begins."""
    states = _states(bounds)
    smaller = bounds
    while _states(smaller) > AT_MOST and smaller.saves != 1:
        smaller = smaller._replace(saves=(smaller.saves or 10) - 1)
    walks = "take --random 10000 walks"
    fits = _states(smaller) <= AT_MOST and smaller.saves >= smaller.savers
    instead = f"{walks}, or --saves {smaller.saves}, which is exhaustive" if fits else f"{walks}, or fewer --savers"
    return Estimate(round(states), states / STATES_A_SECOND, round(states * BYTES_A_STATE), instead)


def _states(bounds: Bounds) -> float:
    overlapping = min(bounds.savers, bounds.saves or bounds.savers)
    known = MEASURED[min(overlapping, max(MEASURED))]
    counted = [saves for saves in known if saves <= bounds.saves]
    nearest = max(counted) if counted else min(known)
    states = float(known[nearest])
    if not bounds.saves:
        states = ANY_NUMBER.get(overlapping, 104_363 * 1000.0 ** (overlapping - 2))
    elif overlapping == 1:
        states *= bounds.saves / nearest
    else:
        states *= (_PER_SAVE if overlapping > 2 else 2.6) ** (bounds.saves - nearest)
        states *= _PER_SAVER ** max(0, overlapping - max(MEASURED))
    states *= _BY_WRITERS.get(bounds.writers, 14.0 * 5.0 ** (bounds.writers - 4)) if overlapping > 1 else bounds.writers
    return states * _BY_MEDIUM.get(bounds.medium, 1.0) * _PER_FAULT**bounds.faults * _PER_RESTART**bounds.restarts


def _rounded(number: float) -> str:
    """Two digits that mean something, or the power of ten."""
    if number < 1:
        return f"{number:.1g}"
    digits = len(str(round(number)))
    if digits > 12:
        return f"10^{digits - 1}"
    return f"{round(number, 2 - digits):,.0f}" if digits > 2 else f"{number:.0f}"


def _duration(seconds: float) -> str:
    for limit, unit, name in ((120, 1, "second"), (7200, 60, "minute"), (172_800, 3600, "hour")):
        if seconds < limit:
            return _counted(max(1, round(seconds / unit)), name)
    return f"{_rounded(seconds / 86_400)} days"
