"""What a save adds to the training's time: lazy capture against the boundary copy, in one run.

The same model is trained twice in one process, with a save now and then; forward and backward take longer than the copy.
The medium is memory, and each save is durable before the next one begins, so that only the capture is compared.

    lazy_over_boundary       time that `step` took and that the update waited at the gate, lazy over boundary
    lazy_slowdown            how much longer an iteration took while it was copied behind it, over one without a save:
                             the copy shares memory and cores with it, which is no waiting but is not free either
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch

from lastgood.core.arena import Arena
from lastgood.core.memory import MemoryDirectory
from lastgood.models import Checkpointer

WIDTH = 1024
LAYER_BYTES = WIDTH * WIDTH * 4


class Training:
    """A perceptron whose weights and momentum make up the state, with iterations of a chosen length."""

    def __init__(self, state_bytes: int) -> None:
        layers = max(2, state_bytes // (2 * LAYER_BYTES))
        self.model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.batch = torch.randn(8, WIDTH)

    def iterate(self) -> None:
        """Forward, backward, update."""
        self.optimizer.zero_grad()
        self.model(self.batch).square().mean().backward()
        self.optimizer.step()

    def last_longer_than(self, seconds: float) -> None:
        """Enlarge the batch until an iteration takes that long."""
        while True:
            began = time.perf_counter()
            self.iterate()
            took = time.perf_counter() - began
            if took > seconds or len(self.batch) >= 8192:
                return
            self.batch = torch.randn(len(self.batch) * 2, WIDTH)


def measure_lazy(*, quick: bool) -> dict[str, Any]:
    """The figures of this page."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        training = Training(256 * 2**20)
        training.iterate()
        boundary = measure_capture(training, "boundary", saves=3)
        training.last_longer_than(4 * boundary["held"])
        saves = 7 if quick else 15
        boundary = measure_capture(training, "boundary", saves=saves)
        with counted_arenas() as arenas:
            lazy = measure_capture(training, "lazy", saves=saves)
        return {
            "lazy_over_boundary": lazy["held"] / boundary["held"],
            "lazy_slowdown": lazy["iteration"] / lazy["idle_iteration"],
            "boundary_held_ms": boundary["held"] * 1e3,
            "lazy_held_ms": lazy["held"] * 1e3,
            "iteration_ms": lazy["idle_iteration"] * 1e3,
            "arena_allocations": len(arenas),
        }
    finally:
        torch.set_num_threads(threads)


def measure_capture(training: Training, capture: str, *, saves: int) -> dict[str, float]:
    """Least time held, as others on the machine only add to it; median iteration after a save, and without one."""
    held, iterations, idle = [], [], []
    directory: Any = MemoryDirectory()
    state = {"model": training.model, "optimizer": training.optimizer}
    with Checkpointer(directory, state, every=1_000_000_000, capture=capture, in_flight=1, keep=1) as checkpointer:
        for number in range(saves + 1):
            began = time.perf_counter()
            training.iterate()
            idle.append(time.perf_counter() - began)
            before = checkpointer.statistics().stalled_seconds
            ticket = checkpointer.save(number)
            began = time.perf_counter()
            training.iterate()
            iterations.append(time.perf_counter() - began)
            held.append(checkpointer.statistics().stalled_seconds - before)
            ticket.wait()
    return {"held": min(held[1:]), "iteration": median(iterations[1:]), "idle_iteration": median(idle[1:])}


@contextmanager
def counted_arenas() -> Iterator[list[Arena]]:
    """The staging arenas made inside, whoever makes them."""
    made: list[Arena] = []
    plain = Arena.__init__

    def counting(arena: Arena, *arguments: Any) -> None:
        plain(arena, *arguments)
        made.append(arena)

    Arena.__init__ = counting  # type: ignore[method-assign]
    try:
        yield made
    finally:
        Arena.__init__ = plain  # type: ignore[method-assign]
