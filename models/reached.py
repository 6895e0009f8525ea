"""Values that can be changed in place: each is written once, however often a walk reaches it, and comes back as one.

    first walk     finds out which values are reached again; nearly every state has none, and is done
    second walk    [SHARED, number, node] where such a value is met first, [AGAIN, number] from then on

Members of a set are written in sorted order, so nothing inside one is a first occurrence. Whoever walks once only
(`safetensors_file.py`) writes a value each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import skeleton as tags


class Reached:
    """What one walk has reached, by identity, which is good only while the values live: they are held."""

    def __init__(self, before: Reached | None = None) -> None:
        """`before` is of the walk that found out what is reached again. `open` are those that the walk is inside of."""
        self.again: set[int] = set()
        self.values: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.open: set[int] = set()
        self.open_sets = 0
        self.before = before
        self.shared = before.again if before is not None else frozenset()


def once(encode_value: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """How a walk writes a value of a kind that can be changed in place."""

    def encode_once(walk: Any, value: Any) -> Any:
        reached, key = walk.reached, id(value)
        if key not in reached.values:
            reached.values[key] = value
            if key not in reached.shared or reached.open_sets:
                return encode_value(walk, value)
            number = reached.numbers[key] = len(reached.numbers)
            return [tags.SHARED, number, encode_value(walk, value)]
        reached.again.add(key)
        if not walk.met.asks:
            return None  # the state is walked again
        if key in reached.numbers and key not in reached.open:
            return [tags.AGAIN, reached.numbers[key]]
        return encode_value(walk, value)  # which refuses one that contains itself

    return encode_once
