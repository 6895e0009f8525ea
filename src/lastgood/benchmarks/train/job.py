"""The training job that every contender saves: weights and two moments of each, a step that leaves the CPU free or not.

emulated   forward and backward are a sleep, as on an accelerator; the update changes a little of every tensor, so that a
           checkpoint with two moments in it is seen to be wrong
torch      layers, AdamW and a small batch, on one thread
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..raw import MEGABYTE

STEP_KINDS = ("emulated", "torch")
COPIES = 3
"""Weights, first and second moments."""
WIDTH = 1024
BATCH = 16
TOUCHED = 1024


class Nudge(torch.optim.Optimizer):
    """Adds one to the first numbers of every weight and moment."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter] = {
                "exp_avg": parameter.detach() * 0.5,  # numbers that nothing compresses
                "exp_avg_sq": parameter.detach() * 0.25,
            }

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One update."""
        for parameter, moments in self.state.items():
            for tensor in (parameter, *moments.values()):
                tensor.view(-1)[:TOUCHED].add_(1.0)


class Job:
    """A model, its optimizer, and one iteration in two halves."""

    model: nn.Module
    optimizer: torch.optim.Optimizer

    def __init__(self, state_mb: int, step_kind: str, step_seconds: float) -> None:
        assert step_kind in STEP_KINDS
        self._sizes = (state_mb, step_kind, step_seconds)
        torch.manual_seed(0)
        numbers = state_mb * MEGABYTE // (4 * COPIES)
        layers = max(1, round(numbers / (WIDTH * WIDTH)))
        width = max(16, round((numbers / layers) ** 0.5))
        self.model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
        self._emulated = step_kind == "emulated"
        self._step_seconds = step_seconds
        self._batch = torch.randn(BATCH, width)
        if self._emulated:
            self.optimizer = Nudge(self.model.parameters())
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
            self.compute()
            self.update()

    def twin(self) -> Job:
        """Another job of the same sizes."""
        return Job(*self._sizes)

    def compute(self) -> None:
        """Forward and backward."""
        if self._emulated:
            time.sleep(self._step_seconds)
            return
        self.optimizer.zero_grad(set_to_none=False)
        loss = self.model(self._batch).square().mean()
        loss.backward()

    def update(self) -> None:
        """The optimizer's step."""
        self.optimizer.step()

    def parts(self) -> dict[str, Any]:
        """What a checkpointer is given."""
        return {"model": self.model, "optimizer": self.optimizer}

    def tensors(self) -> dict[str, torch.Tensor]:
        """The live state by name, flat, as the peers take it."""
        found = {f"model.{name}": parameter.data for name, parameter in self.model.named_parameters()}
        for number, moments in enumerate(self.optimizer.state.values()):
            found |= {f"optimizer.{number}.{name}": value for name, value in moments.items()}
        return found

    @property
    def state_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors().values())


class OwnJob(Job):
    """Somebody's own training: `make()` returns a model, its optimizer, and a function for forward and backward."""

    def __init__(self, make: Callable[[], tuple[nn.Module, torch.optim.Optimizer, Callable[[], Any]]]) -> None:
        self._make = make
        made: Any = make()
        try:
            self.model, self.optimizer, self._compute = made
        except (TypeError, ValueError):
            told = "must return a model, its optimizer, and a function for forward and backward"
            raise TypeError(f"the job's function {told}, this one returned {type(made).__name__}") from None

    def twin(self) -> Job:
        """Made the same way; one update, so that the optimizer has its moments."""
        other = OwnJob(self._make)
        other.compute()
        other.update()
        return other

    def compute(self) -> None:
        """Theirs."""
        self._compute()


def own_job(name: str) -> Job:
    """The job that `module:function` makes; modules of the current directory are found too."""
    module, _, function = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    make = getattr(importlib.import_module(module), function, None)
    if not callable(make):
        raise TypeError(f"{module} has no function {function}")
    return OwnJob(make)


def differences(expected: dict[str, torch.Tensor], found: dict[str, torch.Tensor]) -> list[str]:
    """Names of the tensors that are missing or not the same, bit for bit."""
    return [
        name
        for name, tensor in expected.items()
        if name not in found or not torch.equal(tensor, found[name].to(tensor.dtype).reshape(tensor.shape))
    ]
