"""Putting a decoded checkpoint back into live objects, all of it or none (`checkpointer.py`, K1).

First everything is compared and nothing touched. Then the entries whose comparison cannot tell everything (schedulers,
samplers, the user's own classes) are restored; if one of them raises, those before it are given their old state back.
Modules, optimizers and plain values come after them, in the order of the state, and the global random streams last,
since restoring an object may draw from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .decode import Decoded, decode
from .encode import encode
from .entries import Entry, Plain
from .errors import NotPlainData, StateMismatch
from .rng import check_streams, restore_streams

LISTED_PROBLEMS = 12


def check(entries: Sequence[Entry], decoded: Decoded, *, rng: bool, where: str) -> None:
    """Raise one StateMismatch that lists everything which does not fit. Changes nothing."""
    problems: list[str] = []
    extra = decoded.extra if isinstance(decoded.extra, dict) else {}
    saved, kinds = decoded.state, extra.get("kinds") or {}
    if not isinstance(saved, dict):
        raise StateMismatch(
            f"{where} holds a {type(saved).__name__}, not named parts: read it with lastgood.models.load"
        )
    names = {entry.name for entry in entries}
    problems += [f"{entry.name}: missing in the store" for entry in entries if entry.name not in saved]
    problems += [f"{name}: unexpected, only in the store" for name in saved if name not in names]
    for entry in entries:
        if entry.name in saved:
            problems += entry.problems(saved[entry.name], kinds.get(entry.name))
    if rng:
        if extra.get("streams") is None:
            problems.append("random streams: missing in the store (pass rng=False to go on without)")
        else:
            try:
                check_streams(extra["streams"])
            except StateMismatch as problem:
                problems.append(str(problem))
    if problems:
        more = len(problems) - LISTED_PROBLEMS
        tail = f"; and {more} more" if more > 0 else ""
        raise StateMismatch(f"{where} does not fit, nothing was changed: {'; '.join(problems[:LISTED_PROBLEMS])}{tail}")


def restore(entries: Sequence[Entry], decoded: Decoded, *, rng: bool) -> dict[str, Any]:
    """Restore every entry from a checkpoint that `check` accepted; returns the plain values by name."""
    saved = decoded.state
    doubtful = [entry for entry in entries if not entry.checked_in_full]
    undo: list[tuple[Entry, Any]] = []
    for entry in doubtful:
        try:
            undo.append((entry, own_copy(entry)))
            entry.restore(saved[entry.name])
        except BaseException as problem:
            for earlier, before in reversed(undo):
                if before is not None:
                    earlier.restore(before)
            if not isinstance(problem, Exception):
                raise
            reason = f"{type(problem).__name__}: {problem}"
            raise StateMismatch(
                f"{entry.name} does not accept its saved state, nothing was changed: {reason}"
            ) from problem
    plain: dict[str, Any] = {}
    for entry in entries:
        if entry.checked_in_full:
            entry.restore(saved[entry.name])
        if isinstance(entry, Plain):
            plain[entry.name] = entry.read()
    if rng:
        restore_streams(decoded.extra["streams"])
    return plain


def own_copy(entry: Entry) -> Any:
    """The entry's state now, in memory of its own; None when it cannot be written as data, so cannot be undone."""
    try:
        return decode(encode(entry.read()).to_bytes()).state
    except NotPlainData:
        return None
