"""Writing restored data into the data that is here, so that whoever else holds it sees the new contents.

Dicts, lists, sets, tensors and arrays keep their identity. What cannot be written into is replaced by the restored value: a
read-only array, a tensor whose elements share memory, one made in inference mode, a sparse one with other places.
"""

from __future__ import annotations

from typing import Any

import numpy
import torch


def write_into(here: Any, saved: Any) -> Any:
    """Bring `saved` into what is here where that can be written into, and return the value that now holds it."""
    if here is saved:  # reached again: it was brought here before
        return here
    if isinstance(here, torch.Tensor) and isinstance(saved, torch.Tensor):
        return here if write_tensor(here, saved) else saved
    if type(here) is not type(saved):
        return saved
    if isinstance(here, numpy.ndarray) and here.shape == saved.shape and here.dtype == saved.dtype:
        if not here.flags.writeable:
            return saved
        here[...] = saved
        return here
    if isinstance(here, dict):
        merged = {key: write_into(here[key], value) if key in here else value for key, value in saved.items()}
        here.clear()
        here.update(merged)
        return here
    if isinstance(here, list):
        here[:] = [write_into(old, new) for old, new in zip(here, saved, strict=False)] + saved[len(here) :]
        return here
    if isinstance(here, (set, bytearray)):
        here.clear()
        here.update(saved) if isinstance(here, set) else here.extend(saved)
        return here
    if type(here) is tuple and len(here) == len(saved):
        return tuple(write_into(old, new) for old, new in zip(here, saved, strict=True))
    return saved


def write_tensor(here: torch.Tensor, values: torch.Tensor) -> bool:
    """Write into a tensor of the same shape and dtype; returns False, and has changed nothing, when it is none or torch
    does not allow it."""
    try:
        if here.dtype != values.dtype or here.shape != values.shape:
            return False
        with torch.no_grad():
            here.copy_(values)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return False
    return True
