"""What a search covers, in numbers. Every verdict is a verdict within these."""

from __future__ import annotations

from typing import NamedTuple

CHUNK_LETTERS = "abcdefgh"
EMPTY_STORE = "e"
USED_STORE = "u"


class Bounds(NamedTuple):
    """Sizes of the store, how much happens to it, and on which medium.

    `savers` saves at once, `saves` in all, each by `writers` threads, the newest `keep` kept; at most `faults` steps
    fail; the process starts again at most `restarts` times and goes on saving (crashes without that are always tried).
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
            _counted(self.saves, "save"),
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
    "saves": (1, 99),
    "writers": (1, len(CHUNK_LETTERS)),
    "keep": (1, 16),
    "faults": (0, 99),
    "restarts": (0, 9),
}
"""The smallest and largest value that each number may have."""
