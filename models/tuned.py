"""The file that `lastgood tune` writes, as a checkpointer reads it: `Checkpointer(…, cadence="lastgood-tuned.json")`.

    {"lastgood_tuned": 1, "interval_steps": 10, "in_flight": 2, "staging_bytes": 134217728, "capture": "lazy", …}

What else is in it (what was measured, what is expected) is for people and for `lastgood goodput`.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

VERSION = 1
CAPTURES = ("boundary", "lazy", "auto")


class Tuned(NamedTuple):
    """A setting that was measured on this machine."""

    interval_steps: int
    in_flight: int
    staging_bytes: int
    capture: str


def read_tuned(path: str | os.PathLike[str]) -> Tuned:
    """The setting in a file. Raises ValueError, in one line, for any other file, and OSError."""
    name = os.fspath(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        content = json.loads(text)
        version = content["lastgood_tuned"]
        tuned = Tuned(*(content[field] for field in Tuned._fields))
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"cadence={name!r}: this is not a file that `lastgood tune` wrote") from None
    if version != VERSION:
        raise ValueError(f"cadence={name!r}: written by another version of `lastgood tune` ({version!r}): run it again")
    for field in ("interval_steps", "in_flight", "staging_bytes"):
        value = getattr(tuned, field)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"cadence={name!r}: {field} is {value!r}: run `lastgood tune` again")
    if tuned.capture not in CAPTURES:
        raise ValueError(f"cadence={name!r}: capture is {tuned.capture!r}: run `lastgood tune` again")
    return tuned
