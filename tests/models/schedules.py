"""Random schedules of a training loop and a lazy copy behind it, one piece at a time, with an optimizer that looks.

The copier here runs only when the schedule lets it: between any two things that the training does, any number of pieces may
be copied, or none. When the training waits for a copy, the copier is alone and finishes it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch

from lastgood.core import Store
from lastgood.core.memory import MemoryDirectory
from lastgood.models.capture import SMALL_BYTES
from lastgood.models.copier import Copy
from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.entries import entries_of
from lastgood.models.lazy import LazyCopy

LARGE = SMALL_BYTES // 4 + 4
"""Elements of a tensor that is copied lazily."""


class SteppedCopier:
    """Copies a piece when it is told to."""

    def __init__(self) -> None:
        self.copies: list[tuple[Copy, Iterator[None]]] = []

    def submit(self, copy: Copy) -> None:
        self.copies.append((copy, copy.run()))

    def advance(self) -> bool:
        """One piece of the oldest copy; False when there is nothing to do."""
        while self.copies:
            try:
                next(self.copies[0][1])
                return True
            except StopIteration:
                self.copies.pop(0)
        return False

    def wait_copied(self, copy: Copy) -> None:
        while not copy.copied.is_set():
            self.advance()

    def wait_ended(self, copy: Copy) -> None:
        while not copy.ended.is_set():
            self.advance()


class Touched(Exception):
    """An update wrote to a tensor whose copy was not complete."""


class WatchfulSGD(torch.optim.SGD):
    """Momentum SGD that checks, before every single write, that nobody is still reading."""

    copier: SteppedCopier

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if any(not copy.copied.is_set() for copy, _ in self.copier.copies):
                    raise Touched
                with torch.no_grad():
                    momentum = self.state[parameter].setdefault("momentum_buffer", torch.zeros_like(parameter))
                    momentum.mul_(0.5).add_(parameter.grad)
                    parameter.sub_(momentum)
                self.between()


class Scene:
    """A small model of large tensors, a buffer that forward changes, and a lazy capture into a store in memory."""

    def __init__(self, store: Store, draw: random.Random, *, gate: bool = True) -> None:
        self.draw, self.store = draw, store
        self.model = torch.nn.Module()
        for number in range(3):
            self.model.register_parameter(f"w{number}", torch.nn.Parameter(torch.full((LARGE,), float(number))))
        self.model.register_buffer("seen", torch.zeros(LARGE))
        self.copier = SteppedCopier()
        self.optimizer = WatchfulSGD(self.model.parameters(), lr=1.0)
        self.optimizer.copier, self.optimizer.between = self.copier, self.maybe_copy
        self.state: dict[str, Any] = {"model": self.model, "optimizer": self.optimizer, "step": 0}
        self.capture = LazyCopy(self.copier)
        self.capture.bind(entries_of(self.state))
        self.capture.has_watched = True
        if not gate:
            self.capture._gate = lambda optimizer: None  # type: ignore[method-assign]
            self.capture._hook.remove()
        self.expected: dict[int, bytes] = {}
        self.tickets: list[Any] = []

    def maybe_copy(self) -> None:
        """Any number of pieces, most often one or none."""
        while self.draw.random() < 0.45 and self.copier.advance():
            pass

    def save(self, step: int) -> None:
        parts = {
            name: value.state_dict() if hasattr(value, "state_dict") else value for name, value in self.state.items()
        }
        snapshot = encode(parts)
        self.expected[step] = snapshot.to_bytes()
        self.tickets.append(self.capture.begin(self.store, snapshot, step=step, meta=b""))

    def iterate(self, step: int) -> None:
        """Forward changes the buffer, backward makes gradients, then the update; pieces are copied in between."""
        self.maybe_copy()
        with torch.no_grad():
            self.model.seen.add_(1.0)
        self.maybe_copy()
        for parameter in self.model.parameters():
            parameter.grad = torch.ones_like(parameter)
            self.maybe_copy()
        self.optimizer.step()
        self.state["step"] = step
        self.maybe_copy()

    def run(self, steps: int) -> None:
        """Train, save at random, then hold every checkpoint that is still there against its boundary."""
        for step in range(1, steps + 1):
            self.iterate(step)
            if self.draw.random() < 0.6:
                self.save(step)
        self.capture.close()
        for ticket in self.tickets:
            ticket.wait()
        for record in self.store.records():
            if record.step in self.expected:
                found = self.store.read(record).tobytes()
                assert found == self.expected[record.step], f"step {record.step} is a mix"
                assert decode(found).state["step"] == record.step


def new_store() -> Store:
    return Store.create(MemoryDirectory(), slot_bytes=2**18, in_flight=3, keep=2, chunk_bytes=16384)
