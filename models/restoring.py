"""Putting a decoded checkpoint back into live objects, all of it or none (`checkpointer.py`, K1).

First everything is compared and nothing touched. Then what is here is copied aside, and the entries are restored in the
order of the state, the global random streams last, since restoring an object may draw from them. Whatever raises on the
way, a hook or a class of the user's or Ctrl-C, everything is put back (`putting_back.py`).

Not strict, what does not fit is left as it is here and told of: a module's keys one by one, any other entry as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lastgood.core import Record, Store, StoreError

from .decode import Decoded, decode
from .entries import NOTHING, Entry, Plain
from .errors import StateMismatch
from .putting_back import Kept, in_words, put_all_back
from .rng import capture_streams, check_streams, restore_streams

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
    """Do as planned; returns the plain values by name. Whatever is raised, everything is put back before it is passed on.

    Not strict, what one object refuses is put back and left out, and the rest is restored.
    """
    kept = keep_aside(made, strict)
    streams, begun, name = capture_streams(), [], ""
    try:
        for entry, saved in made.parts:
            if entry.name not in kept:
                continue
            name, before = entry.name, kept[entry.name]
            begun.append(before)
            try:
                entry.restore(saved)
            except Exception as problem:
                if strict:
                    raise
                outcome = put_all_back([begun.pop()])
                made.problems.append(f"{name} does not accept its saved state: {in_words(problem)} ({outcome})")
        if made.streams is not None:
            name = "random streams"
            restore_streams(made.streams)
        restored = {each.name for each in begun}
        return {each.name: each.read() for each, _ in made.parts if isinstance(each, Plain) and each.name in restored}
    except BaseException as problem:
        outcome = put_all_back(begun)
        restore_streams(streams)
        if not isinstance(problem, Exception):
            logger.warning("restoring was interrupted: %s", outcome)
            raise
        raise StateMismatch(f"{name} does not accept its saved state, {outcome}: {in_words(problem)}") from problem


def keep_aside(made: Plan, strict: bool) -> dict[str, Kept]:
    """What is here now, by name, before anything is changed. Raises StateMismatch, strict, for what cannot be kept."""
    kept = {}
    for entry, _ in made.parts:
        try:
            kept[entry.name] = Kept(entry)
        except StateMismatch as problem:
            if strict:
                raise
            made.problems.append(str(problem))
    return kept
