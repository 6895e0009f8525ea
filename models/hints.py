"""What to tell somebody whose state holds a value that is not data: what it is, and what to put there instead."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
import types
from argparse import Namespace
from typing import Any

import numpy

REGISTER = "register its type with lastgood.models.register, where it is saved and where it is loaded"

HINTS: tuple[tuple[Any, str], ...] = (
    ((types.FunctionType, types.MethodType, types.BuiltinFunctionType), "remove it, or save the numbers it depends on"),
    (type, "save its name as text"),
    (enum.Enum, REGISTER + ", or save its .value or .name"),
    (pathlib.PurePath, "save str(...) of it"),
    (datetime.tzinfo, "use datetime.timezone or zoneinfo.ZoneInfo, or save a time in UTC"),
    (Namespace, "save vars(...) of it"),
    (numpy.ndarray, "save numpy.asarray(...) of it"),
    (types.GeneratorType, "save list(...) of what is left of it"),
)


def hint_for(value: Any) -> str:
    """Say of a value that it is not plain data, and what to do about it. Never calls the value's own code."""
    kind = type(value)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"{name} is not plain data; {_advice(value, kind)}"


def _advice(value: Any, kind: type) -> str:
    for kinds, advice in HINTS:
        if isinstance(value, kinds):
            return advice
    if dataclasses.is_dataclass(kind):
        return f"{REGISTER}, or save dataclasses.asdict(...) of it"
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return f"{REGISTER}, or save tuple(...) of it"
    if hasattr(kind, "state_dict"):
        return "save its state_dict()"
    for base in (str, bytes, bool, int, float, complex, dict, list, tuple, set, frozenset):
        if issubclass(kind, base):
            return f"save {base.__name__}(...) of it"
    return "save the numbers, text, lists, dicts and tensors that it is made of, or " + REGISTER
