"""Lazy capture: what stands still is copied during the next forward and backward; a gate holds the next update.

    step(n): hold what may move ── begin ── submit ──┐ returns
    training:   forward, backward of n+1             │ copier: weights and moments, piece by piece
    optimizer.step(): gate waits for laggards  <─────┘ copied
                      the update of n+1

L1 gate            no optimizer step begins while weights or moments are still being read, whichever optimizer it is:
                   the gate is a hook on all of torch's optimizers, so the training loop stays as it was
L2 held-at-once    whatever may move between two updates is copied before `begin` returns (`standing.py` says what that is)
L3 seen-if-wrong   a tensor that moved all the same voids the save, loudly, and is held at once from then on
L4 one-at-a-time   a snapshot is begun only when the one before it has been copied: one scratch memory serves all

The first snapshot is copied at the boundary and the time until the next update is watched, so that tensors that move in
forward for reasons unknown here are found before they can void a save. The copy goes straight into the store's staging
memory, which is allocated once; what is held at once lies in one scratch area that is reused.
"""

from __future__ import annotations

import dataclasses
import os
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from lastgood.core import Store, Ticket

from .capture import SMALL_BYTES, BoundaryCopy, Capture, LiveBytes, PackedBytes, Snapshot
from .copier import Copier, Copy, ThreadCopier
from .device_link import read_ahead
from .entries import Entry
from .standing import Marks, Memory, Movements, memory_of, standing_tensors


class LazyCopy(Capture):
    """Copies weights and moments behind the training's back, and everything else at the boundary."""

    def __init__(self, copier: Copier | None = None) -> None:
        self.waited_seconds = 0.0
        self.held_bytes = 0
        self._copier = ThreadCopier() if copier is None else copier
        self._entries: Sequence[Entry] = ()
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._movements = Movements()
        self._watched: Marks | None = None
        self.has_watched = False
        self._under_way: Copy | None = None
        self._looked_at: Copy | None = None
        self._scratch = Scratch()
        self._hook: Any = None

    def bind(self, entries: Sequence[Entry]) -> None:
        """Learn the objects, and put the gate in front of every optimizer's step."""
        self._entries = entries
        self._install()

    def _install(self) -> None:
        gate = weakref.WeakMethod(self._gate)

        def before_step(optimizer: torch.optim.Optimizer, args: Any, keywords: Any) -> None:
            method = gate()
            if method is not None:
                method(optimizer)

        self._hook = register_optimizer_step_pre_hook(before_step)
        weakref.finalize(self, self._hook.remove)

    def begin(self, store: Store, snapshot: Snapshot, *, step: int, meta: bytes) -> Ticket:
        """Start the save; what may move has been copied when this returns."""
        self.settle()  # L4
        marks = standing_tensors(self._entries, self._optimizers, self._movements)
        if not self.has_watched:
            self._watched = marks
            return BoundaryCopy().begin(store, snapshot, step=step, meta=meta)
        saving = store.begin(step=step, meta=meta, total_bytes=snapshot.total_bytes)
        try:
            buffers = self._hold(snapshot, marks.memory)
        except BaseException as error:
            saving.abandon(error)
            raise
        copy = self._under_way = Copy(saving, buffers, marks)
        try:
            self._copier.submit(copy)
        except BaseException as error:  # an interrupt on the way to the copier
            copy.give_up(error)
            raise
        return saving.ticket

    def _hold(self, snapshot: Snapshot, still: set[Memory]) -> Callable[[], Any]:
        """Copy what may move (L2); returns what gives all buffers, of the rest as it is when it is asked."""
        self._scratch.start_over()
        readers: list[Callable[[], Any]] = list(snapshot.readers)
        large = [
            place
            for place, read in enumerate(readers)
            if isinstance(read, (LiveBytes, PackedBytes)) and snapshot.lengths[place] >= SMALL_BYTES
        ]
        memory = memory_of([readers[place].tensor for place in large])  # type: ignore[attr-defined]
        may_wait = {place for place, each in zip(large, memory, strict=True) if each in still}
        for place, read in enumerate(readers):
            if place not in may_wait:
                readers[place] = self._scratch.held(read())
        self.held_bytes = self._scratch.used_bytes
        held = dataclasses.replace(snapshot, readers=read_ahead(readers))  # type: ignore[type-var]
        return held.buffers

    def _gate(self, optimizer: torch.optim.Optimizer) -> None:
        """L1: runs before every step of every optimizer of this process."""
        self._optimizers.add(optimizer)
        copy = self._under_way
        if copy is not None and copy.process == os.getpid():  # a forked child has the memory to itself
            self._wait(self._copier.wait_copied, copy)
            if self._looked_at is not copy:  # at the first update only: from then on its tensors change by right
                self._movements.look(copy.marks)
                self._looked_at = copy
        if self._watched:
            self._movements.look(self._watched)
            self._watched, self.has_watched = None, True

    def _wait(self, wait: Callable[[Copy], None], copy: Copy) -> None:
        if not copy.ended.is_set():
            began = time.perf_counter()
            wait(copy)
            self.waited_seconds += time.perf_counter() - began

    def settle(self) -> None:
        """Wait until the copy under way has ended."""
        copy = self._under_way
        if copy is not None and copy.process == os.getpid():
            self._wait(self._copier.wait_ended, copy)
            if self._looked_at is not copy:
                self._movements.look(copy.marks)
        self._under_way = self._looked_at = None

    def close(self) -> None:
        """Wait, and take the gate away."""
        self.settle()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def explain(self) -> str:
        """One line."""
        if not self.has_watched:
            return "lazy: the first save is copied at the boundary, and what moves until the next update is watched"
        return (
            f"lazy: {self.held_bytes:,} bytes are copied at the boundary, the rest during forward and backward;"
            f" updates have waited {self.waited_seconds:.3f} s for it in all"
        )


class Scratch:
    """Memory for what is held at once: one area, grown when a snapshot needs more, else reused."""

    def __init__(self) -> None:
        self.used_bytes = 0
        self._area = numpy.empty(0, numpy.uint8)

    def start_over(self) -> None:
        """What was held before is not needed any more."""
        self.used_bytes = 0

    def held(self, region: Any) -> Callable[[], Any]:
        """A reader of a copy of these bytes. Immutable bytes need none."""
        if type(region) is bytes:
            return lambda: region
        source = numpy.frombuffer(memoryview(region).cast("B"), numpy.uint8) if len(region) else self._area[:0]
        start, stop = self.used_bytes, self.used_bytes + source.size
        if stop > self._area.size:
            self._area = numpy.empty(
                2 * stop, numpy.uint8
            )  # readers given out before keep the area they were made with
            start, stop = 0, source.size
        self.used_bytes = stop
        kept = self._area[start:stop]
        kept[:] = source
        return lambda: kept
