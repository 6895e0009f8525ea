"""One disk, the processes that come and go over it, and the promises at every step. Knows nothing of Hypothesis.

    no process ── open ──> open ── begin, read, advance, refuse, settle ──> ... ── close ──> no process
         ^                   └──────────── crash: killed, or power lost with any image ───────┘

Opening, saving, reading and closing each run in a fibre of their own, so every one of them can be stopped, refused or cut
off at every step. Besides, these are looked at every time, as a fresh process would find them, on a copy of the disk:

    before a persist             a power loss that takes what it would cover; and one that takes nothing
    after a change of names      a power loss that takes nothing
    at an acknowledgement        a power loss that takes all that is outstanding
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..promises import BOUNDED, LOUD, NEVER_WRONG
from .adapter import Adapter, Busy
from .disk import Disk
from .fibres import ENDED, READY, Fibre, Schedule
from .ledger import Demand, Ledger, require
from .operations import EVERYTHING, NOTHING, Loss, Operation, Refusal, nothing_refused

PATIENCE_ROUNDS = 3000
"""More than any number of saves can take; whoever is not done by then hangs."""
LONG = 200
"""Steps after which somebody who is moved alone, perhaps waiting for another in a loop, is left standing."""


class World:
    """A disk, its present process if any, and what was acknowledged."""

    def __init__(self, adapter: Adapter) -> None:
        """A new disk, and nobody there."""
        self.adapter = adapter
        self._begin_again()

    def _begin_again(self) -> None:
        self.disk = Disk()
        self.ledger = Ledger(self.adapter.keep, self.adapter.sequence)
        self.schedule: Schedule | None = None
        self.store: Any = None
        self.calls: dict[str, Fibre] = {}
        self.refused: set[str] = set()

    # --- a process comes and goes ------------------------------------------------------------------------------------

    def open(self) -> None:
        """A process begins, and stands before its first step."""
        self.schedule = schedule = Schedule()
        self.refused = set()
        self.adapter.begin_process(schedule)
        self.disk.hook = schedule.pause
        self._call("open", lambda: self.adapter.open(self.disk), self._opened)

    def _opened(self, fibre: Fibre) -> None:
        self.store = fibre.result
        self.ledger.keep(self.adapter.keep)
        if fibre.error is not None:
            self.ledger.judge_failure(fibre.error, self.ledger.demand(), "opening:", is_excused=bool(self.refused))
            self.end_process()

    def close(self) -> None:
        """The process ends in good order; nothing may be under way."""
        self._call("close", lambda: self.adapter.close(self.store), self._closed)
        self.settle()

    def _closed(self, fibre: Fibre) -> None:
        if fibre.error is not None:
            self.ledger.judge_failure(fibre.error, Demand(), "closing:", is_excused=bool(self.refused))
        self.end_process()

    def end_process(self) -> None:
        """It is gone, wherever it stood."""
        if self.schedule is not None:
            self.schedule.kill()
            self.adapter.end_process()
        self.disk.hook = nothing_refused
        self.disk.kill_process()
        self.ledger.die()
        self.schedule, self.store, self.calls = None, None, {}

    def crash(self, loss: Loss | None) -> None:
        """The process dies. Without a `loss` the cache stays; else the power fails."""
        self.end_process()
        if loss is not None:
            self.disk.lose_power(loss)
        self._judge(self.disk.copy(), f"after {named(loss)}:")

    def start_over(self) -> None:
        """Another disk: what was on this one is lost to damage."""
        self.end_process()
        self._begin_again()

    # --- what a crash would leave ------------------------------------------------------------------------------------

    def ask_what_a_crash_would_leave(self) -> None:
        """Now: a kill; a power loss that takes everything, or any one operation, or all but that one."""
        count = self.disk.outstanding_operations()
        self._ask(None)
        if count:
            self._ask(EVERYTHING)
        for index in range(min(count, 8)):
            self._ask(Loss(operations=1 << index))
            self._ask(Loss(operations=~(1 << index)))

    def _ask(self, loss: Loss | None, when: str = "") -> None:
        twin = self.disk.copy()
        twin.kill_process()
        if loss is not None:
            twin.lose_power(loss)
        self._judge(twin, f"after {named(loss)}{when}:")

    def _judge(self, disk: Disk, where: str) -> None:
        demand = self.ledger.demand()
        try:
            found = self.adapter.peek(disk)
        except BaseException as error:
            self.ledger.judge_failure(error, demand, where, is_excused=False)
        else:
            self.ledger.judge(found, demand, where)

    # --- saving and reading ------------------------------------------------------------------------------------------

    def saves_under_way(self) -> int:
        """Begun and not ended."""
        return sum(name.startswith("save") for name in self.calls)

    def begin(self, size: int) -> Fibre:
        """A save with a payload of `size` bytes, which stands before its first step."""
        save = self.ledger.begin(size)
        store, adapter = self.store, self.adapter

        def ended(fibre: Fibre) -> None:
            where = f"save {save.number}:"
            if fibre.error is not None and not isinstance(fibre.error, Busy):
                self.ledger.judge_failure(fibre.error, Demand(), where, is_excused=bool(self.refused))
            elif fibre.result is True:
                self._acknowledge(save.number)
            elif fibre.result is False:
                newer = [each for each in self.ledger.newest() if self.ledger.is_older(save, each)]
                require(newer, LOUD, f"{where} it gave way to a newer one, and none was acknowledged")
            self.ledger.end(save.number)

        return self._call(f"save {save.number}", lambda: adapter.save(store, save.number, save.payload), ended)

    def read(self) -> Fibre:
        """A read in the process that saves, which stands before its first step."""
        store, adapter = self.store, self.adapter
        return self._question("read", lambda: adapter.read(store), self.ledger.judge_in_process)

    def look_beside(self) -> Fibre:
        """A reader in another process, beside the one that saves; it stands before its first step."""
        disk, adapter = self.disk, self.adapter
        return self._question("look beside", lambda: adapter.look_beside(disk), self.ledger.judge)

    def _question(self, name: str, ask: Callable[[], bytes | None], judge: Callable[..., object]) -> Fibre:
        demand = self.ledger.demand()

        def ended(fibre: Fibre) -> None:
            if fibre.error is not None:
                self.ledger.judge_failure(fibre.error, demand, f"{name}:", is_excused=bool(self.refused))
            elif "read" not in self.refused:
                judge(fibre.result, demand, f"{name}:")
            elif fibre.result is not None:
                require(self.ledger.recognise(fibre.result), NEVER_WRONG, f"{name}: no save was given these bytes")

        return self._call(name, ask, ended)

    def do(self, chore: str) -> Fibre:
        """Something else in the process that saves; it stands before its first step."""

        def ended(fibre: Fibre) -> None:
            if fibre.error is not None:
                self.ledger.judge_failure(fibre.error, Demand(), f"{chore}:", is_excused=bool(self.refused))

        store, adapter = self.store, self.adapter
        return self._call(chore, lambda: adapter.do(store, chore), ended)

    def damage(self, name: str, offset: int, mask: int) -> None:
        """A byte changes while nobody looks. There is no process."""
        touched = self.adapter.saves_in(self.disk.copy(), name)
        self.disk.damage(name, offset, mask)
        self.ledger.damage(touched)

    # --- steps -------------------------------------------------------------------------------------------------------

    def ready(self) -> list[Fibre]:
        """Who can make a step."""
        return self.schedule.ready() if self.schedule is not None else []

    def step(self, fibre: Fibre, refusal: Refusal | None = None) -> None:
        """One of those makes its step, or is refused it; and what every step must leave in order."""
        assert self.schedule is not None
        operation = fibre.step if isinstance(fibre.step, Operation) else None
        if operation is not None and refusal is not None:
            self.refused.add(operation.kind)
        if operation is not None and is_persist(operation):
            twin = self.disk.copy()
            twin.lose_power_without(operation.file)
            self._judge(twin, f"after a power loss just before {operation}, with all else written back:")
            self._ask(NOTHING, f" just before {operation}")
        self.schedule.resume(fibre, refusal)
        if operation is not None and operation.kind in ("rename", "remove"):
            self._ask(NOTHING, f" just after {operation}")
        if self.store is not None:
            for number in self.adapter.durable(self.store):
                self._acknowledge(number)
            self.adapter.check(self.store)
        limit = self.adapter.room_bytes
        require(limit is None or self.disk.total_bytes <= limit, BOUNDED, f"{self.disk.total_bytes} bytes in files")
        if fibre.state == ENDED and self.calls.get(fibre.name) is fibre:
            del self.calls[fibre.name]
            fibre.when_ended(fibre)

    def advance(self, fibre: Fibre, steps: int) -> None:
        """One of them makes so many steps; with 0, as many as it takes to stand before a persist."""
        for _ in range(steps or LONG):
            if fibre not in self.ready():
                break
            self.step(fibre)
            if steps == 0 and is_persist(fibre.step):
                break

    def go_on_until(self, kind: str, passed: int) -> Fibre | None:
        """Everybody goes on, step by step in turn, until somebody stands before such an operation, after so many others."""
        for _ in range(LONG):
            for fibre in self.ready():
                if fibre not in self.ready():
                    continue
                if isinstance(fibre.step, Operation) and fibre.step.kind == kind:
                    if passed == 0:
                        return fibre
                    passed -= 1
                self.step(fibre)
            if not self.calls:
                break
        return None

    def go_on_without(self, held: Fibre) -> None:
        """Everybody else goes on, step by step in turn, as far as can be."""
        for _ in range(LONG):
            others = [fibre for fibre in self.ready() if fibre is not held and not fibre.has_limit]
            for fibre in others:
                if fibre in self.ready():
                    self.step(fibre)
            if not others or not self.calls:
                break

    def settle(self) -> None:
        """Everybody goes on to the end, step by step in turn; then everything is in its place."""
        for _ in range(PATIENCE_ROUNDS):
            ready = self.ready()
            if not self.calls and not any(fibre.state == READY for fibre in ready):
                break
            require(ready, LOUD, f"{sorted(self.calls)} wait for ever")
            for fibre in ready:
                if fibre in self.ready():
                    self.step(fibre)
        require(not self.calls, LOUD, f"{sorted(self.calls)} never end")
        if self.store is not None:
            hook, self.disk.hook = self.disk.hook, nothing_refused
            self.adapter.check_at_rest(self.store, self.ledger.floor())
            self.disk.hook = hook

    def _call(self, name: str, work: Callable[[], Any], ended: Callable[[Fibre], None]) -> Fibre:
        assert self.schedule is not None
        fibre = self.schedule.start(name, work)
        fibre.when_ended = ended
        self.calls[name] = fibre
        return fibre

    def _acknowledge(self, number: int) -> None:
        if not self.ledger.saves[number].is_acknowledged:
            self.ledger.acknowledge(number)
            self._ask(EVERYTHING, f" just when save {number} was acknowledged")


def is_persist(step: object) -> bool:
    """Whether this is where something becomes durable."""
    return isinstance(step, Operation) and step.kind.startswith("persist")


def named(loss: Loss | None) -> str:
    """For a sentence."""
    if loss is None:
        return "a kill"
    if loss == EVERYTHING:
        return "a power loss that takes all that is outstanding"
    if loss == NOTHING:
        return "a power loss that takes nothing"
    return f"a power loss ({loss})"
