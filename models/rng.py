"""The random streams that training draws from: Python's `random`, numpy's global one, torch's on the CPU and on CUDA.

Capturing draws nothing. Restoring comes last in a resume, since making models, optimizers and loaders draws numbers. A
stream that the saving machine had and this one lacks (a second GPU) is an error, not a silence: `restore` says so.

What is not here belongs to whoever made it: a `torch.Generator`, a `numpy.random.Generator` or a `random.Random` of
your own is an entry of the state like any other object (`entries.py`).
"""

from __future__ import annotations

import random
from typing import Any

import numpy
import torch

from .errors import StateMismatch

Streams = dict[str, Any]


def capture_streams() -> Streams:
    """The state of every global stream, as plain data of its own memory."""
    version, words, normal = random.getstate()
    streams: Streams = {
        "python": (version, numpy.array(words, dtype=numpy.uint64), normal),
        "numpy": numpy.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        streams["cuda"] = torch.cuda.get_rng_state_all()
    return streams


def check_streams(streams: Streams) -> None:
    """Raise StateMismatch when a captured stream has no counterpart here. Changes nothing."""
    saved = len(streams.get("cuda", ()))
    here = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if saved > here:
        raise StateMismatch(
            f"the checkpoint holds the random streams of {saved} CUDA devices, here are {here}:"
            " resume on as many, or pass rng=False to go on with other random numbers"
        )


def restore_streams(streams: Streams) -> None:
    """Set every global stream to what was captured."""
    check_streams(streams)
    version, words, normal = streams["python"]
    random.setstate((version, tuple(words.tolist()), normal))
    numpy.random.set_state(streams["numpy"])
    torch.set_rng_state(streams["torch"])
    for device, state in enumerate(streams.get("cuda", ())):
        torch.cuda.set_rng_state(state, device)
