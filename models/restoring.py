"""Putting a decoded checkpoint back into live objects, all of it or none (`checkpointer.py`, K1).

First everything is compared and nothing touched. Then the entries whose comparison cannot tell everything (schedulers,
samplers, the user's own classes) are restored; if one of them raises, those before it are given their old state back.
Modules, optimizers and plain values come after them, in the order of the state, and the global random streams last,
since restoring an object may draw from them.

Not strict, what does not fit is left as it is here and told of: a module's keys one by one, any other entry as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lastgood.core import Record, Store, StoreError

from .decode import Decoded, decode
from .encode import encode
from .entries import NOTHING, Entry, Plain
from .errors import NotPlainData, StateMismatch
from .rng import check_streams, restore_streams

logger = logging.getLogger("lastgood")

LISTED_PROBLEMS = 5


@dataclass
class Plan:
    """What a restore will do: the saved value for each entry, and the random streams, if they are to be set."""

    parts: list[tuple[Entry, Any]] = field(default_factory=list)
    streams: Any = None
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Restored:
    """What was restored: the plain values by name, what did not fit and stayed as it is, what else the checkpoint held."""

    record: Record
    values: dict[str, Any]
    left_out: list[str]
    extra: dict[str, Any]


def restore_newest(
    store: Store, entries: Sequence[Entry], *, rng: bool, strict: bool, only: Sequence[str] | None
) -> Restored:
    """Restore the newest whole checkpoint of a store into these entries, or those of them that are named in `only`."""
    record, payload = store.read_with_record()
    for reason in store.passed_over:
        logger.warning("%s: %s; restoring step %d", store.path, reason, record.step)
    where = f"step {record.step} of {store.path}"
    try:
        decoded = decode(payload)
    except StoreError as problem:
        raise type(problem)(f"{where}: {problem}") from problem
    del payload
    if only is not None:
        (entries, decoded), rng = only_these(entries, only, decoded), False
    made = plan(entries, decoded, rng=rng, strict=strict, where=where)
    values = restore(made, strict=strict)
    if made.problems:
        logger.warning("%s: left as they are here: %s", where, listed(made.problems))
    return Restored(record, values, made.problems, decoded.extra if isinstance(decoded.extra, dict) else {})


def plan(entries: Sequence[Entry], decoded: Decoded, *, rng: bool, strict: bool, where: str) -> Plan:
    """Compare everything, change nothing. Strict, raises one StateMismatch that lists all that does not fit."""
    extra = decoded.extra if isinstance(decoded.extra, dict) else {}
    saved, kinds = decoded.state, extra.get("kinds") or {}
    if not isinstance(saved, dict):
        raise StateMismatch(
            f"{where} holds a {type(saved).__name__}, not named parts: read it with lastgood.models.load"
        )
    made = Plan()
    names = {entry.name for entry in entries}
    made.problems += [f"{entry.name}: missing in the store" for entry in entries if entry.name not in saved]
    made.problems += [f"{name}: unexpected, only in the store" for name in saved if name not in names]
    for entry in entries:
        if entry.name in saved:
            value, problems = entry.fitting(saved[entry.name], kinds.get(entry.name))
            made.problems += problems
            if value is not NOTHING:
                made.parts.append((entry, value))
    if rng:
        made.streams = fitting_streams(extra.get("streams"), made.problems)
    if strict and made.problems:
        mismatch = StateMismatch(f"{where} does not fit, nothing was changed: {listed(made.problems)}")
        mismatch.problems = tuple(made.problems)
        raise mismatch
    return made


def fitting_streams(streams: Any, problems: list[str]) -> Any:
    """The saved random streams, or None and the problem noted."""
    if streams is None:
        problems.append("random streams: missing in the store (pass rng=False to go on without)")
        return None
    try:
        check_streams(streams)
    except StateMismatch as problem:
        problems.append(str(problem))
        return None
    return streams


def listed(problems: Sequence[str]) -> str:
    """The problems in one line."""
    more = len(problems) - LISTED_PROBLEMS
    return "; ".join(problems[:LISTED_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def only_these(entries: Sequence[Entry], names: Sequence[str], decoded: Decoded) -> tuple[list[Entry], Decoded]:
    """The entries of these names, and of the checkpoint what they need. Raises ValueError for a name that is not here."""
    known = {entry.name for entry in entries}
    unknown = [name for name in names if name not in known]
    if isinstance(names, str) or unknown:
        raise ValueError(f"only={names!r}: give a list of names out of {sorted(known)}")
    saved = decoded.state
    chosen = {name: saved[name] for name in names if name in saved} if isinstance(saved, dict) else saved
    return [entry for entry in entries if entry.name in names], Decoded(chosen, decoded.extra)


def restore(made: Plan, *, strict: bool) -> dict[str, Any]:
    """Do as planned; returns the plain values by name. What an object refuses is undone, or, not strict, left out."""
    undo: list[tuple[Entry, Any]] = []
    for entry, saved in made.parts:
        if entry.checked_in_full:
            continue
        before = None
        try:
            before = own_copy(entry)
            entry.restore(saved)
        except Exception as problem:
            reason = f"{entry.name} does not accept its saved state"
            put_back([(entry, before)] if not strict else [*undo, (entry, before)])
            if strict:
                raise StateMismatch(f"{reason}, nothing was changed: {type(problem).__name__}: {problem}") from problem
            made.problems.append(f"{reason}: {type(problem).__name__}: {problem}")
        except BaseException:
            put_back([*undo, (entry, before)])
            raise
        undo.append((entry, before))
    plain: dict[str, Any] = {}
    for entry, saved in made.parts:
        if entry.checked_in_full:
            entry.restore(saved)
        if isinstance(entry, Plain):
            plain[entry.name] = entry.read()
    if made.streams is not None:
        restore_streams(made.streams)
    return plain


def put_back(before: Sequence[tuple[Entry, Any]]) -> None:
    """Give entries the state that they had, the last one first."""
    for entry, state in reversed(before):
        if state is not None:
            entry.restore(state)


def own_copy(entry: Entry) -> Any:
    """The entry's state now, in memory of its own; None when it cannot be written as data, so cannot be undone."""
    try:
        return decode(encode(entry.read()).to_bytes()).state
    except NotPlainData:
        return None
