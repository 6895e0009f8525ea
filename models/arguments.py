"""What the arguments of a checkpointer ask for, checked in one line each."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import MutableMapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import torch

from lastgood.core import Store, StoreError

from .budget import OverheadBudget, WithFailures
from .cadence import Cadence, as_cadence, time_above_0
from .tuned import read_tuned

EVERY_STEPS = 10
IN_FLIGHT = 4
MOST_AT_ONCE = {"in_flight": 64, "keep": 16}
STORE_OPTIONS = frozenset(
    name
    for method in (Store.create, Store.open)
    for name, parameter in inspect.signature(method).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
) - {"slot_bytes", "read_only", "new_run", "in_flight", "keep"}
"""What `Checkpointer` passes on to the store."""


class Settings(NamedTuple):
    """When to save, and with how much at once."""

    cadence: Cadence
    capture: Any
    sizes: dict[str, int]
    store_options: dict[str, Any]


def settings(
    asked: dict[str, Any],
    mean_seconds_between_failures: float | str | None,
    capture: Any,
    in_flight: int | None,
    keep: int,
    store_options: dict[str, Any],
    owner: type,
) -> Settings:
    """What was asked for, completed: by the file that `cadence` names, then by the defaults. Raises ValueError, OSError,
    and TypeError for an option that neither `owner` nor a store has."""
    refuse_unknown_options(store_options, owner)
    every, overhead, cadence = asked.values()
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
        made = WithFailures(made, time_above_0(mean_seconds_between_failures, "mean_seconds_between_failures"))
    return Settings(
        made,
        "boundary" if capture is None else capture,
        checked_sizes(IN_FLIGHT if in_flight is None else in_flight, keep),
        store_options,
    )


def checked_state(state: Any) -> Any:
    """A mapping of named parts. Raises TypeError for anything else."""
    if not isinstance(state, MutableMapping) or not all(isinstance(name, str) and name for name in state):
        raise TypeError("state: give a dict of named parts, like {'model': model, 'optimizer': optimizer}")
    return state


def checked_sizes(in_flight: Any, keep: Any) -> dict[str, int]:
    """How many at once, and how many stay. Raises ValueError."""
    sizes = {"in_flight": in_flight, "keep": keep}
    for name, value in sizes.items():
        most = MOST_AT_ONCE[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"{name}={value!r}: give a whole number, 1 to {most}")
    return sizes


def refuse_unknown_options(options: dict[str, Any], method: Any) -> None:
    """Raise TypeError, with what may have been meant, for an option that neither a checkpointer nor a store has."""
    known = STORE_OPTIONS | inspect.signature(method).parameters.keys() - {"self", "store_options"}
    for name in options:
        if name not in STORE_OPTIONS:
            near = get_close_matches(name, known, 1)
            meant = (
                f"did you mean {near[0]!r}?" if near else f"those of the store are {', '.join(sorted(STORE_OPTIONS))}"
            )
            raise TypeError(f"Checkpointer has no option {name!r}: {meant}")


def whole_step(step: Any) -> int:
    """The step as a whole number. Raises TypeError for what is none."""
    try:
        return operator.index(step)
    except TypeError:
        raise TypeError(f"step={step!r}: give the number of updates made so far, a whole number") from None


def refuse_several_processes() -> None:
    """Raise StoreError in a job of several ranks: each would save its own part and none the whole."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
        raise StoreError(
            f"this job has {distributed.get_world_size()} ranks and Checkpointer saves one process:"
            " save from one rank that holds the whole state, or run with a world size of 1"
        )
