"""The save protocol as an abstract model, searched as compiled code: larger bounds, within seconds. Checked.

    Abstract(Bounds(savers=3)).search()      every state that three savers with four saves reach, judged

`abstract_protocol` has the protocol, a second text beside the real programs. What makes its verdict count is a test: within
small bounds both reach the same states by the same moves, on every medium named in `MEDIA` here, for the real protocol
and for each of the mistakes in `MISTAKES`, and a difference planted in one of them is noticed.

numba is loaded when a model is made, not before.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .bounds import Bounds, estimate
from .promises import LOUD, MONOTONE, NEVER_WRONG, NEWEST_SURVIVES, NO_LEAK, NO_REUSE

MEDIA = {"page-cache": 0, "block": 1, "pmem": 2}
"""The media that are modelled, by what a persist covers: its file, the whole device, or what its own thread has written."""

MISTAKES = {"drop-payload-persist": 1, "drop-record-persist": 2, "pointer-only-compare": 4, "swap-over-newer": 8}
"""Mutants that the model can make too, by the names they have there."""

PROMISE_OF = ("", "", NEWEST_SURVIVES, NEVER_WRONG, MONOTONE, NO_REUSE, NO_LEAK, LOUD)
"""The promise behind each answer of the judge."""

AT_ONCE = 500_000


@dataclass
class AbstractResult:
    """What a search came to; `trace` leads to what is broken, as (saver, choice) from one of the first two states."""

    states: int = 0
    transitions: int = 0
    seconds: float = 0.0
    exhaustive: bool = False
    promise: str = ""
    trace: tuple[tuple[int, int], ...] = ()


class Abstract:
    """The model within bounds: faults, restarts and more than one checkpoint kept are beyond it."""

    def __init__(self, bounds: Bounds, mistake: str = "") -> None:
        """Raises ValueError for bounds that the model does not have."""
        if bounds.keep != 1 or bounds.faults or bounds.restarts or bounds.one_persist or not bounds.saves:
            raise ValueError(
                "the abstract model keeps one checkpoint, with two persists, counts saves, and nothing fails or restarts"
            )
        if bounds.medium not in MEDIA:
            raise ValueError(f"the abstract model does not know the medium {bounds.medium}, only {', '.join(MEDIA)}")
        self.bounds = bounds
        self.mistake = MISTAKES[mistake] if mistake else 0
        self.content_bits = (bounds.saves + 1).bit_length()
        self.slot_bits = max(1, (bounds.slots - 1).bit_length())
        self._numpy = importlib.import_module("numpy")
        self._kernels: Any = importlib.import_module(".abstract_search", __package__)
        placed = _placed(self._widths())
        sizes = [bounds.savers, bounds.slots, bounds.saves, bounds.writers, bounds.chunks]
        sizes += [self.content_bits, self.slot_bits, MEDIA[bounds.medium], self.mistake, len(placed), placed[-1][0] + 1]
        self.sizes = self._numpy.array(sizes, self._numpy.int64)
        self._layout = self._numpy.array(placed, self._numpy.int64)
        self._rows: Any = ()

    def search(
        self, *, judging: bool = True, room: int = 0, progress: Callable[[int, int], None] | None = None
    ) -> AbstractResult:
        """Visit every state, nearest first, until one is broken. Without `judging`, every state whatever breaks.

        There is room for so many states at first, or for as many as there will be at a guess.
        """
        room = room or 1 << min(22, max(12, estimate(self.bounds).states.bit_length()))
        numpy, kernels, sizes = self._numpy, self._kernels, self.sizes
        began = time.perf_counter()
        tally = numpy.zeros(7, numpy.int64)
        rows, parents = numpy.zeros((room, sizes[-1]), numpy.int64), numpy.full(room, -1, numpy.int64)
        table = numpy.full(4 * room, -1, numpy.int32)
        for index, state in enumerate(self._initial()):
            kernels.pack(numpy.array(state, numpy.int64), self._layout, self.bounds.savers, rows[index])
        tally[kernels.KNOWN_ROWS] = 2
        kernels.enter_all(rows, 2, table)
        while tally[kernels.DONE_ROWS] < tally[kernels.KNOWN_ROWS] and not tally[kernels.BROKEN]:
            count = int(tally[kernels.KNOWN_ROWS])
            if 2 * count > len(rows):
                rows, parents = self._grown(rows, count), self._grown(parents, count)
                table = numpy.full(4 * len(rows), -1, numpy.int32)
                kernels.enter_all(rows, count, table)
            until = int(tally[kernels.DONE_ROWS]) + AT_ONCE
            kernels.explore(rows, parents, table, self._layout, sizes, tally, until, judging)
            if progress is not None:
                progress(int(tally[kernels.DONE_ROWS]), int(tally[kernels.KNOWN_ROWS] - tally[kernels.DONE_ROWS]))
        self._rows = rows[: int(tally[kernels.KNOWN_ROWS])]
        result = AbstractResult(int(tally[kernels.KNOWN_ROWS]), int(tally[kernels.MOVES]))
        result.seconds = time.perf_counter() - began
        result.exhaustive = not tally[kernels.BROKEN]
        if tally[kernels.BROKEN]:
            result.promise = PROMISE_OF[int(tally[kernels.BROKEN])]
            last = int(tally[kernels.LAST_SAVER]), int(tally[kernels.LAST_CHOICE])
            result.trace = (*self._path(parents, int(tally[kernels.BROKEN_AT])), last)
        return result

    def packed(self, numbers: Sequence[int]) -> bytes:
        """A state, given as numbers, in the form in which equal ones are equal."""
        row = self._numpy.zeros(self.sizes[-1], self._numpy.int64)
        self._kernels.pack(self._numpy.array(numbers, self._numpy.int64), self._layout, self.bounds.savers, row)
        return bytes(row)

    def states(self) -> set[bytes]:
        """Every state of the last search."""
        return {bytes(row) for row in self._rows}

    def moves(self) -> Iterator[tuple[bytes, bytes]]:
        """Every move of the last search that breaks nothing: from which state, and to which."""
        numpy, kernels = self._numpy, self._kernels
        before, after = numpy.zeros((2, self.sizes[-2]), numpy.int64)
        mine = numpy.zeros(5, numpy.int64)
        for row in self._rows:
            kernels.unpack(row, self._layout, before)
            for saver in range(self.bounds.savers):
                for choice in range(self.bounds.chunks + 1):
                    if kernels.move(before, saver, choice, self.sizes, after, mine) == kernels.HOLDS:
                        yield bytes(row), self.packed(after)

    def _widths(self) -> list[int]:
        """Bits of each number of a state."""
        bounds, tag = self.bounds, self.content_bits + self.slot_bits
        place = 2 * self.content_bits + bounds.saves + 1
        chunks = bounds.chunks * (2 if MEDIA[bounds.medium] == MEDIA["pmem"] else 1)
        saver = 5 + chunks + bounds.slots + 2 * tag
        places = bounds.slots * (1 + bounds.chunks)
        shared = [self.content_bits, self.content_bits, tag, 2, 3, tag, bounds.slots]
        return shared + [place] * places + [saver] * bounds.savers

    def _initial(self) -> list[list[int]]:
        """An empty store, and one that holds one checkpoint."""
        bounds, bits = self.bounds, self.content_bits
        clean = 1 | 1 << bits
        tag, every = 1 << self.slot_bits, 2**bounds.slots - 1
        per_slot = 1 + bounds.chunks
        nothing = [0] * (bounds.slots * per_slot)
        idle = [0] * bounds.savers
        empty = [0, 0, 0, 0, 0, 0, every, *nothing, *idle]
        return [empty, [0, 1, tag, 1, 0b11, tag, every - 1, *[clean] * per_slot, *nothing[per_slot:], *idle]]

    def _path(self, parents: Any, index: int) -> tuple[tuple[int, int], ...]:
        path = []
        while parents[index] >= 0:
            rest, choice = divmod(int(parents[index]), self.bounds.chunks + 1)
            index, saver = divmod(rest, self.bounds.savers)
            path.append((saver, choice))
        return tuple(reversed(path))

    def _grown(self, array: Any, count: int) -> Any:
        """The same rows with four times the room."""
        larger = self._numpy.full((4 * len(array), *array.shape[1:]), -1, array.dtype)
        larger[:count] = array[:count]
        return larger


def _placed(widths: list[int]) -> list[tuple[int, int, int]]:
    """Word, shift and limit of each number; none lies across two words, and none reaches the sign."""
    placed, word, shift = [], 0, 0
    for width in widths:
        if shift + width > 63:
            word, shift = word + 1, 0
        placed.append((word, shift, 2**width - 1))
        shift += width
    return placed
