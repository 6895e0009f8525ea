"""What the arguments of a checkpointer ask for, checked in one line each."""

from __future__ import annotations

from typing import Any

import torch

from lastgood.core import StoreError

from .budget import OverheadBudget, WithFailures
from .cadence import Cadence, as_cadence

EVERY_STEPS = 10


def make_cadence(every: Any, overhead: float | None, mean_seconds_between_failures: float | None) -> Cadence:
    """The cadence that `every` or `overhead` asks for; every 10 steps when neither does."""
    if every is not None and overhead is not None:
        raise ValueError(f"every={every!r} and overhead={overhead!r}: give one of the two")
    if overhead is not None:
        cadence: Cadence = OverheadBudget(overhead)
    else:
        cadence = as_cadence(EVERY_STEPS if every is None else every)
    return cadence if mean_seconds_between_failures is None else WithFailures(cadence, mean_seconds_between_failures)


def refuse_several_processes() -> None:
    """Raise StoreError in a job of several ranks: each would save its own part and none the whole."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise StoreError(
            f"this job has {distributed.get_world_size()} ranks and Checkpointer saves one process:"
            " save from one rank that holds the whole state, or run with a world size of 1"
        )
