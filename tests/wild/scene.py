"""A directory in memory in which things go wrong at a chosen moment, and states that tell when they were mixed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lastgood.core.memory import MemoryDevice, MemoryDirectory

Trouble = Callable[[int, str, str], None]


class TroubledDevice(MemoryDevice):
    """A file that asks its directory before each step."""

    def __init__(self, directory: Troubled, name: str) -> None:
        super().__init__()
        self._directory, self._name = directory, name

    def write(self, offset: int, data: np.ndarray) -> None:
        try:
            self._directory.about_to("write", self._name)
        except Halfway:
            super().write(offset, data[: data.size // 2])
            raise
        super().write(offset, data)

    def persist(self) -> None:
        self._directory.about_to("persist", self._name)

    def allocate(self, length: int) -> None:
        if length > self.content.size and not getattr(self, "inside", False):
            self._directory.about_to("allocate", self._name)
        super().allocate(length)


class Halfway(OSError):
    """The process died when half of a write was done."""


class Troubled(MemoryDirectory):
    """`trouble(number, operation, file)` is called before each step of a file, and may raise or wait."""

    def __init__(self, trouble: Trouble = lambda number, operation, name: None) -> None:
        super().__init__("troubled")
        self.trouble = trouble
        self.operations: list[tuple[str, str]] = []
        self._turn = threading.Lock()

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self.files[name] = TroubledDevice(self, name)
        return super().open(name, writable=writable)

    def about_to(self, operation: str, name: str) -> None:
        with self._turn:
            number = len(self.operations)
            self.operations.append((operation, name))
        self.trouble(number, operation, name)

    def after_a_crash(self) -> MemoryDirectory:
        """What a new process finds: the files as they are now."""
        found = MemoryDirectory("found")
        found.make()
        for name, device in list(self.files.items()):
            found.files[name] = MemoryDevice(device.content.copy())
        return found


def marked(step: int, layers: int = 4, width: int = 3000) -> dict[str, Any]:
    """A state whose every leaf is the step."""
    state: dict[str, Any] = {f"layer{number}": torch.full((width,), float(step)) for number in range(layers)}
    return state | {"optimizer": {"step": torch.tensor(float(step))}, "step": step, "history": [step]}


def advance(state: dict[str, Any]) -> None:
    """Every leaf one step on, in place, one after another, as an optimizer does it."""
    for value in [*state.values(), state["optimizer"]["step"]]:
        if isinstance(value, torch.Tensor):
            value.add_(1)
    state["step"] += 1
    state["history"][0] += 1


def step_of(state: dict[str, Any]) -> int:
    """The one step that a state is of. Fails for a mix (R2)."""
    seen = {state["step"], state["history"][0]}
    for value in [*state.values(), state["optimizer"]["step"]]:
        if isinstance(value, torch.Tensor):
            seen |= {int(each) for each in value.unique()}
    assert len(seen) == 1, f"a mix of steps {sorted(seen)}"
    return seen.pop()
