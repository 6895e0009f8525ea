"""Where in a state something is, as a message tells it: `model['layers'][3].weight`.

A walk keeps keys and positions as they are, since hardly any path is ever told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Step(str):
    """A step that is written as it is: a name, a field."""

    __slots__ = ()


def told(path: Iterable[Any]) -> str:
    """The path as text."""
    return "".join(map(_step, path))


def _step(step: Any) -> str:
    if type(step) is Step:
        return step
    return f"[{step!r}]" if isinstance(step, (str, int)) else f"[{type(step).__name__} key]"
