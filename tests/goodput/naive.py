"""The same replay the slow way: the clock ticks, and at every tick each part of the job does the least it can.

Only for systems that store every save, one write after the other on the device. All costs are whole numbers of ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TICK_SECONDS = 0.125


@dataclass
class Naive:
    step: int
    hold: int
    write: int
    down: int
    """Restart and load."""
    places: int
    interval: int
    is_paused: bool = False

    kept: float = 0.0
    redone: int = 0
    done: list[int] = field(default_factory=list)
    """GPU-ticks of each whole step that still counts."""
    current: int = 0
    """GPU-ticks of the step under way."""
    ticks_in_step: int = 0
    since_save: int = 0
    holding: int = 0
    waiting: bool = False
    starting: int = 0
    durable: int = 0
    under_way: list[list[int]] = field(default_factory=list)
    """Each save in flight: its step, ticks of writing left, ticks of copying left."""

    def play(self, gpus: list[int]) -> float:
        """One number of GPUs for each tick; returns the GPU-ticks kept."""
        before = gpus[0]
        for present in gpus:
            if present < before:
                self.fail()
            elif before == 0 and present:
                self.starting = self.down
            before = present
            if present:
                self.tick(present)
        return sum(self.done) + self.current

    def fail(self) -> None:
        self.redone += len(self.done) - self.durable
        self.done = self.done[: self.durable]
        self.current = self.ticks_in_step = self.since_save = self.holding = 0
        self.waiting = False
        self.under_way = []
        self.starting = self.down

    def tick(self, gpus: int) -> None:
        if self.starting:
            self.starting -= 1
            return
        if self.waiting and len(self.under_way) < self.places:
            self.begin()
        if self.holding:
            self.holding -= 1
            self.write_on()
            if not self.holding and self.is_paused:
                self.durable = len(self.done)
            return
        if self.waiting:
            self.write_on()
            return
        self.current += gpus
        self.ticks_in_step += 1
        self.write_on()
        if self.ticks_in_step == self.step:
            self.done.append(self.current)
            self.current = self.ticks_in_step = 0
            self.since_save += 1
            if self.since_save == self.interval:
                self.since_save = 0
                if self.is_paused:
                    self.holding = self.hold
                elif len(self.under_way) < self.places:
                    self.begin()
                else:
                    self.waiting = True

    def begin(self) -> None:
        self.waiting = False
        self.holding = self.hold
        self.under_way.append([len(self.done), self.write, self.hold])

    def write_on(self) -> None:
        for save in self.under_way:
            save[2] -= 1
        unwritten = next((save for save in self.under_way if save[1]), None)
        if unwritten:
            unwritten[1] -= 1
        while self.under_way and self.under_way[0][1] == 0 and self.under_way[0][2] <= 0:
            self.durable = self.under_way.pop(0)[0]
