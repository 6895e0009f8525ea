"""What the arguments of a checkpointer ask for, checked in one line each."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import torch

from lastgood.core import StoreError

from .budget import OverheadBudget, WithFailures
from .cadence import Cadence, as_cadence
from .tuned import read_tuned

EVERY_STEPS = 10
IN_FLIGHT = 4


class Settings(NamedTuple):
    """When to save, and with how much at once."""

    cadence: Cadence
    capture: Any
    in_flight: int
    store_options: dict[str, Any]


def settings(
    every: Any,
    overhead: float | None,
    cadence: Any,
    mean_seconds_between_failures: float | None,
    capture: Any,
    in_flight: int | None,
    store_options: dict[str, Any],
) -> Settings:
    """What was asked for, completed: by the file that `cadence` names, then by the defaults. Raises ValueError, OSError."""
    asked = {"every": every, "overhead": overhead, "cadence": cadence}
    given = [f"{name}={value!r}" for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: give one of them")
    if isinstance(cadence, str | os.PathLike):
        tuned = read_tuned(cadence)
        every, capture = tuned.interval_steps, tuned.capture if capture is None else capture
        in_flight = tuned.in_flight if in_flight is None else in_flight
        store_options = {"staging_bytes": tuned.staging_bytes} | store_options
    elif cadence is not None:
        every = cadence
    made = OverheadBudget(overhead) if overhead is not None else as_cadence(EVERY_STEPS if every is None else every)
    if mean_seconds_between_failures is not None:
        made = WithFailures(made, mean_seconds_between_failures)
    return Settings(
        made,
        "boundary" if capture is None else capture,
        IN_FLIGHT if in_flight is None else in_flight,
        store_options,
    )


def refuse_several_processes() -> None:
    """Raise StoreError in a job of several ranks: each would save its own part and none the whole."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise StoreError(
            f"this job has {distributed.get_world_size()} ranks and Checkpointer saves one process:"
            " save from one rank that holds the whole state, or run with a world size of 1"
        )
