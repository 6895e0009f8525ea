"""Types of the user's own in a state: registered by the program that saves and by the program that loads.

    @lm.register                                      a dataclass, a named tuple or an enum: nothing more to say
    class Settings: ...

    lm.register(Vocabulary, encode=lambda v: v.words, decode=Vocabulary)     anything else: plain values and back

A file holds the *name* of a type and plain values. The name is looked up among the registered ones and nowhere else: no
module is imported and no attribute fetched because a file says so (`F2 data`). A type is matched exactly; a subclass is
registered for itself. Dataclasses come back field by field, without running `__init__`, so they are what they were.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, overload

from . import skeleton as tags
from .errors import NotAState, NotRegistered
from .kinds import made_of

Type = TypeVar("Type", bound=type)


class Own(NamedTuple):
    """A registered type. `fields` are read one by one; without them `take_apart` gives a plain value."""

    kind: type
    name: str
    fields: tuple[str, ...] | None
    take_apart: Callable[[Any], Any]
    put_together: Callable[[Any], Any]


BY_TYPE: dict[type, Own] = {}
BY_NAME: dict[str, Own] = {}


def name_of(kind: type) -> str:
    """The name a type is saved under unless another is given."""
    return f"{kind.__module__}.{kind.__qualname__}"


@overload
def register(kind: Type) -> Type: ...
@overload
def register(
    kind: type | None = None,
    *,
    name: str | None = None,
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
) -> Any: ...
def register(kind: Any = None, *, name: Any = None, encode: Any = None, decode: Any = None) -> Any:
    """Let values of a type be part of states. A function to call, or a decorator; returns the type.

    `name` is what files say, by default module and class, so give one when the class may move. `encode(value)` returns
    plain values, `decode(plain)` the value again; both are needed for what is no dataclass, named tuple or enum. Raises
    TypeError for a type that cannot be registered so, ValueError when the name is another type's.
    """
    if kind is None:
        return lambda decorated: register(decorated, name=name, encode=encode, decode=decode)
    if not isinstance(kind, type):
        raise TypeError(f"register: {kind!r:.60} is not a type")
    if (encode is None) != (decode is None):
        raise TypeError(f"register({kind.__name__}): give encode and decode together")
    if kind.__module__ in ("builtins", "collections", "numpy", "torch"):
        raise TypeError(f"register({kind.__name__}): that type is not your own; its values are saved as they are")
    name = name_of(kind) if name is None else name
    if not isinstance(name, str) or not name:
        raise TypeError(f"register({kind.__name__}): name={name!r:.60}: give text")
    other = BY_NAME.get(name)
    if other is not None and name_of(other.kind) != name_of(kind):
        raise ValueError(f"register({kind.__name__}): {name!r} is taken by {name_of(other.kind)}; give another name")
    if other is not None:  # the same class, defined again in a notebook
        forget(other.kind)
    forget(kind)
    own = Own(kind, name, None, encode, decode) if encode is not None else _known_shape(kind, name)
    BY_TYPE[kind] = BY_NAME[name] = own
    return kind


def forget(kind: type) -> None:
    """Take a type out of the registry, if it is there."""
    own = BY_TYPE.pop(kind, None)
    if own is not None:
        BY_NAME.pop(own.name, None)


def _known_shape(kind: type, name: str) -> Own:
    """How a dataclass, a named tuple or an enum is taken apart."""
    if issubclass(kind, enum.Flag):
        return Own(kind, name, None, lambda value: value.value, lambda plain: kind(_int(plain)))
    if issubclass(kind, enum.Enum):
        return Own(kind, name, None, lambda value: value.name, lambda plain: kind.__members__[plain])
    if dataclasses.is_dataclass(kind):
        fields = tuple(field.name for field in dataclasses.fields(kind))
        try:
            object.__new__(kind)
        except TypeError as problem:
            raise TypeError(f"register({kind.__name__}): {problem}: give encode and decode") from None
        return Own(kind, name, fields, _values_of(fields), lambda plain: _filled(kind, plain))
    if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        fields = kind._fields
        return Own(kind, name, fields, _values_of(fields), lambda plain: tuple.__new__(kind, plain.values()))
    raise TypeError(f"register({kind.__name__}): it is no dataclass, named tuple or enum: give encode and decode")


def _int(plain: Any) -> int:
    if type(plain) is not int:
        raise ValueError(f"{plain!r:.40} where a number belongs")
    return plain


def _values_of(fields: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    def take_apart(value: Any) -> dict[str, Any]:
        beside = sorted(set(getattr(value, "__dict__", ())) - set(fields))
        if beside:
            raise ValueError(
                f"it has an attribute besides its fields, {beside[0]!r}; remove it, or give encode and decode"
            )
        return {field: getattr(value, field) for field in fields}

    return take_apart


def _filled(kind: type, plain: dict[str, Any]) -> Any:
    value = object.__new__(kind)
    for field, content in plain.items():
        object.__setattr__(value, field, content)
    return value


def own_node(own: Own, node: Any) -> list[Any]:
    """The node of a value of a registered type."""
    return [tags.OWN, own.name, node]


def own_from(name: Any, node: Any, value_of: Callable[[Any], Any]) -> Any:
    """A value of the type that this program registered under the name that a payload gives."""
    own = BY_NAME.get(name)
    if own is None:
        raise NotRegistered(
            f"saved as {name!r:.100}, a type that is not registered in this program:"
            " call lastgood.models.register(THE_TYPE, name=...) with that name before loading"
        )
    if own.fields is None:
        made = made_of(own.name, own.put_together, value_of(node))
        if type(made) is not own.kind:
            raise NotAState(f"decode of {own.name} gave a {type(made).__name__}, not a {own.kind.__name__}")
        return made
    if type(node) is not dict or tuple(node) != own.fields:
        there = ", ".join(node) if type(node) is dict else "nothing"
        raise NotAState(
            f"{own.name} has the fields {', '.join(own.fields)} here, {there} in the store:"
            " register it with an encode and a decode that knows the older fields"
        )
    fields = {}
    for field, item in node.items():
        try:
            fields[field] = value_of(item)
        except NotAState as problem:
            problem.path = f".{field}{problem.path}"
            raise
    return made_of(own.name, own.put_together, fields)
