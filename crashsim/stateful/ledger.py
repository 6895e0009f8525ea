"""What was saved, what was acknowledged, and so what may be found: the oracle. Every verdict begins with a promise.

    newest-survives   what is found is no older than any acknowledged save that is still to be kept and was not damaged
    never-wrong       what is found is byte for byte what one save was given
    monotone          two reads of one process never go back, and no sequence is used twice
    loud              an empty answer only where nothing was acknowledged; nothing fails that was not refused

*Older*: by the store's own sequence where it has one; else a save that had ended before the other began.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..promises import LOUD, MONOTONE, NEVER_WRONG, NEWEST_SURVIVES


class BrokenPromise(AssertionError):
    """One promise does not hold; the message begins with its name."""


def require(holds: object, promise: str, sentence: str) -> None:
    """Raise BrokenPromise unless it holds."""
    if not holds:
        raise BrokenPromise(f"{promise}: {sentence}")


@dataclass
class Save:
    """One save that was begun. `began` and `ended` are ticks of the ledger's clock."""

    number: int
    payload: bytes
    began: int
    ended: int | None = None
    is_acknowledged: bool = False
    is_damaged: bool = False
    is_let_go: bool = False
    """Enough newer ones were acknowledged once; it need not be there again, though more may be kept now."""


class Demand(NamedTuple):
    """What must be found by somebody who asks now: nothing older than these; and whether "nothing" is an answer."""

    floor: tuple[Save, ...] = ()
    is_anything_there: bool = False


class Ledger:
    """All saves of one run of the machine."""

    def __init__(self, keep: int, sequence: Callable[[int], int | None]) -> None:
        """`sequence(number)` is a save's place in the store's own order, if it has one."""
        self.saves: dict[int, Save] = {}
        self.is_damaged = False
        self._keep = keep
        self._sequence = sequence
        self._clock = 0
        self._under_way: dict[int, Save] = {}
        self._acknowledged: list[Save] = []
        self._by_sequence: dict[int, int] = {}
        self._read_last: Save | None = None

    def tick(self) -> int:
        """The next instant."""
        self._clock += 1
        return self._clock

    # --- what happens ------------------------------------------------------------------------------------------------

    def begin(self, size: int) -> Save:
        """A new save with a payload of its own."""
        number = len(self.saves) + 1
        save = Save(number, payload_of(number, size), self.tick())
        self.saves[number] = self._under_way[number] = save
        return save

    def end(self, number: int) -> None:
        """It returned, failed, or its process died: it does nothing more."""
        self._under_way.pop(number).ended = self.tick()

    def acknowledge(self, number: int) -> None:
        """The store called it durable."""
        save = self.saves[number]
        if not save.is_acknowledged:
            save.is_acknowledged = True
            self._acknowledged = self._sorted([*self._acknowledged, save])
            self.keep(self._keep)
            sequence = self._sequence(number)
            if sequence is not None:
                other = self._by_sequence.setdefault(sequence, number)
                is_free = other == number or self.saves[other].is_damaged  # a lost record's sequence may come again
                require(is_free, MONOTONE, f"saves {other} and {number} both have sequence {sequence}")

    def die(self) -> None:
        """The process is gone, and with it every save that was under way."""
        self._read_last = None
        for number in list(self._under_way):
            self.end(number)

    def keep(self, count: int) -> None:
        """So many are kept from now on."""
        self._keep = count
        for save in self._acknowledged[count:]:
            save.is_let_go = True

    def damage(self, touched: set[int] | None) -> None:
        """Bytes have changed where these saves lie; None: where any may lie."""
        self.is_damaged = True
        for number in self.saves if touched is None else touched:
            self.saves[number].is_damaged = True

    # --- what may be found -------------------------------------------------------------------------------------------

    def is_older(self, one: Save, other: Save) -> bool:
        """Whether `one` certainly comes before `other`."""
        if one is other:
            return False
        first, second = self._sequence(one.number), self._sequence(other.number)
        if first is not None and second is not None:
            return first < second
        return one.ended is not None and one.ended < other.began

    def _sorted(self, saves: list[Save]) -> list[Save]:
        """Newest first; of two that overlapped, where nobody knows which is newer, neither counts as older."""
        after = {save.number: sum(self.is_older(save, other) for other in saves) for save in saves}
        return sorted(saves, key=lambda save: after[save.number])

    def newest(self) -> list[Save]:
        """The newest acknowledged saves, as many as are kept, damaged ones too; newest first."""
        return [save for save in self._acknowledged[: self._keep] if not save.is_let_go]

    def floor(self) -> list[Save]:
        """The saves that nothing older may be found for."""
        return [save for save in self.newest() if not save.is_damaged]

    def demand(self) -> Demand:
        """What must be found from now on."""
        return Demand(tuple(self.floor()), bool(self._acknowledged))

    def judge(self, found: bytes | None, demand: Demand, where: str) -> Save | None:
        """What was found, against what could be demanded when it was asked for; returns the save that it is."""
        if found is None:
            acknowledged = numbers(self.newest())
            says = f"{where} nothing was ever saved, it says, though {acknowledged} acknowledged"
            require(not demand.is_anything_there, LOUD, says)
            return None
        save = self.recognise(found)
        require(save is not None, NEVER_WRONG, f"{where} {len(found)} bytes are found that no save was given")
        assert save is not None
        for other in demand.floor:
            says = f"{where} save {save.number} is found though save {other.number} was acknowledged"
            require(not self.is_older(save, other), NEWEST_SURVIVES, says)
        return save

    def judge_in_process(self, found: bytes | None, demand: Demand, where: str) -> None:
        """As `judge`, and two reads of one process never go back."""
        save = self.judge(found, demand, where)
        if save is not None and not save.is_damaged:
            last = self._read_last
            back = last is not None and not last.is_damaged and self.is_older(save, last)
            require(not back, MONOTONE, f"{where} save {save.number} is read after save {last and last.number}")
            self._read_last = save

    def judge_failure(self, error: BaseException, demand: Demand, where: str, *, is_excused: bool) -> None:
        """An answer that is an exception: right only where all that must be there was damaged, or a step was refused."""
        if isinstance(error, BrokenPromise) or not isinstance(error, Exception):
            raise error
        floor = list(demand.floor)
        promise = NEWEST_SURVIVES if floor else LOUD
        what = f"though {numbers(floor)} acknowledged" if floor else "though nothing was refused"
        if not is_excused and (floor or not self.is_damaged):
            raise BrokenPromise(f"{promise}: {where} {type(error).__name__}: {error}, {what}") from error

    def recognise(self, found: bytes) -> Save | None:
        """The save with these bytes."""
        save = self.saves.get(int.from_bytes(found[:4], "little"))
        return save if save is not None and save.payload == found else None


def numbers(saves: list[Save]) -> str:
    """For a sentence."""
    names = " and ".join(f"save {save.number}" for save in saves) or "nothing"
    return f"{names} {'were' if len(saves) > 1 else 'was'}"


def payload_of(number: int, size: int) -> bytes:
    """At least four bytes: the number in front, then bytes that no other number has."""
    assert size >= 4
    return (number.to_bytes(4, "little") + random.Random(number).randbytes(size))[:size]
