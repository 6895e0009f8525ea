"""The save program with one mistake planted, to see that a check notices it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from lastgood.core import save as save_module


def with_mistake(right: str, wrong: str) -> Callable[..., Iterator[int]]:
    """A copy of `save` in which the one place that says `right` says `wrong`."""
    source = inspect.getsource(save_module.save)
    assert source.count(right) == 1, f"the program says {right!r} {source.count(right)} times"
    names: dict[str, Any] = dict(vars(save_module))
    exec(compile(source.replace(right, wrong), "mistaken save", "exec"), names)
    program: Callable[..., Iterator[int]] = names["save"]
    return program
