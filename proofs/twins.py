"""How a twin, or a mutant, takes the place of what it weakens: by name, for a while, and then everything is as before."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any


def find(dotted: str) -> tuple[Any, str]:
    """The holder of a dotted name and the last part: an attribute of a module, or of a class in one."""
    holder, _, attribute = dotted.rpartition(".")
    module, _, name = holder.rpartition(".")
    if name[:1].isupper():
        return getattr(importlib.import_module(module), name), attribute
    return importlib.import_module(holder), attribute


def weakened_version(name: str) -> Any:
    """What a claim's twin is: a name in `weakened`, or in the module that stands before a dot."""
    holder, attribute = find(f"proofs.{name}" if "." in name else f"proofs.weakened.{name}")
    return getattr(holder, attribute)


@contextlib.contextmanager
def in_place_of(dotted: str, replacement: Any) -> Iterator[None]:
    """Let `replacement` stand for a module's attribute for a while."""
    holder, name = find(dotted)
    original = getattr(holder, name)
    setattr(holder, name, replacement)
    try:
        yield
    finally:
        setattr(holder, name, original)
