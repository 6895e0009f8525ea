"""Small values of the standard library, numpy and torch, each taken apart into plainer values and put together again.

A new kind is one row of `KINDS`. What a row takes apart is encoded like any other value, so its parts may be anything
that can be saved. `put_together` is only called with what a payload held and must raise for what makes no sense.

Generators of random numbers come back as new generators in the same state; a generator that two places share comes back
as two, so a program that shares one passes it to `Checkpointer` as an entry of its own.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import random
import uuid
import zoneinfo
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch

from .errors import NotAState

FACTORIES: dict[str, Any] = {
    each.__name__: each
    for each in (
        list,
        dict,
        set,
        frozenset,
        tuple,
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        bytearray,
        OrderedDict,
        Counter,
    )
}
"""What a defaultdict may make its missing values with; anything else is code."""

BIT_GENERATORS: dict[str, Any] = {
    each.__name__: each
    for each in (
        numpy.random.PCG64,
        numpy.random.PCG64DXSM,
        numpy.random.MT19937,
        numpy.random.Philox,
        numpy.random.SFC64,
    )
}

LAYOUTS = {str(each): each for each in vars(torch).values() if isinstance(each, torch.layout)}
MEMORY_FORMATS = {str(each): each for each in vars(torch).values() if isinstance(each, torch.memory_format)}
"""Of both, all that this torch has: what is taken can be given back."""


class Kind(NamedTuple):
    """A type, its name in a skeleton, and the two directions."""

    type: type
    name: str
    take_apart: Callable[[Any], Any]
    put_together: Callable[[Any], Any]


def _datetime(parts: Any) -> datetime.datetime:
    *numbers, zone, fold = parts
    return datetime.datetime(*numbers, tzinfo=zone, fold=fold)


def _time(parts: Any) -> datetime.time:
    *numbers, zone, fold = parts
    return datetime.time(*numbers, tzinfo=zone, fold=fold)


def _zone(parts: Any) -> datetime.timezone:
    offset, name = parts
    if name is None and not offset:
        return datetime.UTC
    return datetime.timezone(offset) if name is None else datetime.timezone(offset, name)


def _zone_parts(zone: datetime.timezone) -> Any:
    arguments: tuple[Any, ...] = zone.__getinitargs__()  # type: ignore[attr-defined]
    return arguments[0], arguments[1] if len(arguments) > 1 else None


def _zone_key(zone: zoneinfo.ZoneInfo) -> str:
    if zone.key is None:
        raise ValueError("a time zone without a key, read from a file")
    return zone.key


def _torch_generator(state: Any) -> torch.Generator:
    made = torch.Generator()
    made.set_state(state)
    return made


def _torch_generator_state(generator: torch.Generator) -> Any:
    if generator.device.type != "cpu":
        raise ValueError(f"a generator on {generator.device}; save its get_state()")
    return generator.get_state()


def _bits(parts: Any) -> Any:
    name, seeds, state = parts
    made = BIT_GENERATORS[name](0 if seeds is None else numpy.random.SeedSequence(**seeds))
    made.state = state
    return made


def _bits_parts(bits: Any) -> Any:
    """Which algorithm, where its children's seeds come from, its state."""
    name = type(bits).__name__
    if BIT_GENERATORS.get(name) is not type(bits):
        raise ValueError(f"a bit generator of type {name}; save its state")
    seeds = bits.seed_seq
    kept = None
    if type(seeds) is numpy.random.SeedSequence:
        names = ("entropy", "spawn_key", "pool_size", "n_children_spawned")
        kept = {each: getattr(seeds, each) for each in names}
    return name, kept, bits.state


def _old_generator(parts: Any) -> numpy.random.RandomState:
    bits, state = parts
    made = numpy.random.RandomState(bits)
    made.set_state(state)
    return made


def _python_generator(state: Any) -> random.Random:
    made = random.Random()
    made.setstate(state)
    return made


def _name_in(table: dict[str, Any]) -> Callable[[Any], str]:
    """Taking apart what can only be found again in a table by its name."""

    def name(value: Any) -> str:
        if table.get(str(value)) is not value:
            raise ValueError(f"{value}, which torch has no name for")
        return str(value)

    return name


def _times(value: Any) -> tuple[int, ...]:
    return value.hour, value.minute, value.second, value.microsecond


KINDS: tuple[Kind, ...] = (
    Kind(range, "range", lambda v: (v.start, v.stop, v.step), lambda p: range(*p)),
    Kind(slice, "slice", lambda v: (v.start, v.stop, v.step), lambda p: slice(*p)),
    Kind(decimal.Decimal, "decimal", str, decimal.Decimal),
    Kind(fractions.Fraction, "fraction", lambda v: (v.numerator, v.denominator), lambda p: fractions.Fraction(*p)),
    Kind(uuid.UUID, "uuid", lambda v: v.int, lambda p: uuid.UUID(int=p)),
    Kind(type(pathlib.Path()), "path", str, pathlib.Path),
    Kind(pathlib.PurePosixPath, "posix path", str, pathlib.PurePosixPath),
    Kind(pathlib.PureWindowsPath, "windows path", str, pathlib.PureWindowsPath),
    Kind(datetime.date, "date", lambda v: (v.year, v.month, v.day), lambda p: datetime.date(*p)),
    Kind(datetime.time, "time", lambda v: (*_times(v), v.tzinfo, v.fold), _time),
    Kind(
        datetime.datetime,
        "datetime",
        lambda v: (v.year, v.month, v.day, *_times(v), v.tzinfo, v.fold),
        _datetime,
    ),
    Kind(
        datetime.timedelta,
        "timedelta",
        lambda v: (v.days, v.seconds, v.microseconds),
        lambda p: datetime.timedelta(*p),
    ),
    Kind(datetime.timezone, "timezone", _zone_parts, _zone),
    Kind(zoneinfo.ZoneInfo, "zone", _zone_key, zoneinfo.ZoneInfo),
    Kind(random.Random, "random", lambda v: v.getstate(), _python_generator),
    Kind(
        numpy.random.Generator,
        "numpy generator",
        lambda v: _bits_parts(v.bit_generator),
        lambda p: numpy.random.Generator(_bits(p)),
    ),
    Kind(
        numpy.random.RandomState,
        "numpy random state",
        lambda v: (_bits_parts(v._bit_generator), v.get_state(legacy=False)),
        lambda p: _old_generator((_bits(p[0]), p[1])),
    ),
    Kind(torch.Generator, "torch generator", _torch_generator_state, _torch_generator),
    Kind(torch.layout, "torch layout", _name_in(LAYOUTS), LAYOUTS.__getitem__),
    Kind(torch.memory_format, "torch memory format", _name_in(MEMORY_FORMATS), MEMORY_FORMATS.__getitem__),
)

BY_TYPE = {kind.type: kind for kind in KINDS}
BY_NAME = {kind.name: kind for kind in KINDS}


def kind_from(name: Any, parts: Any) -> Any:
    """The value of a kind from its parts. Raises NotAState for a name that is not in the table, or parts that misfit."""
    kind = BY_NAME.get(name)
    if kind is None:
        raise NotAState(f"not readable here: {name!r:.40} is no kind of value that is known")
    return made_of(name, kind.put_together, parts)


def made_of(name: str, put_together: Callable[[Any], Any], parts: Any) -> Any:
    """A value from its parts; whatever is wrong with them is told of this kind of value."""
    try:
        return put_together(parts)
    except NotAState:
        raise
    except Exception as problem:
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise NotAState(f"not readable here: {name} cannot be made of what was saved: {reason}") from problem
