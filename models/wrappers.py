"""Names of a module's state without the steps that `torch.compile` adds.

A compiled model and the same model uncompiled save the same checkpoint, and each restores the other's. A compiled part
called `layer` has its weights at `layer._orig_mod.weight`. Only real compiled parts are looked through: a user's own
submodule of that name keeps it. Other wrappers change what a model is, and names tell them apart (`compare.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

STEP = "_orig_mod."


def compiled_parts(module: torch.nn.Module) -> list[str]:
    """The prefixes of the names in compiled parts, `layer._orig_mod.` for example, the deepest first."""
    names = [name for name, part in module.named_modules() if type(part).__name__ == "OptimizedModule"]
    return sorted((f"{name}.{STEP}" if name else STEP for name in names), key=len, reverse=True)


def plain_name(name: str, prefixes: list[str]) -> str:
    """A name without the steps of compiled parts; also of a module itself, whose name has no dot at its end."""
    whole = f"{name}."
    for prefix in prefixes:  # deepest first: taking out a step leaves the shorter prefixes as they are
        if whole.startswith(prefix):
            whole = prefix[: -len(STEP)] + whole[len(prefix) :]
    return whole[:-1] if whole.endswith(".") else whole


def without_wrappers(module: torch.nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """The state under plain names."""
    names = [*state, *(getattr(state, "_metadata", None) or ())]
    if STEP[:-1] not in "\n".join(map(str, names)):
        return state  # nothing to be renamed: found out without a look at every part
    prefixes = compiled_parts(module)
    parts = {name: plain_name(name, prefixes) for name in getattr(state, "_metadata", None) or ()}
    return renamed(state, {name: plain_name(name, prefixes) for name in state}, parts)


def with_wrappers(module: torch.nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """The state under the names that the module has here."""
    prefixes = compiled_parts(module)
    if not prefixes:
        return state
    here = {plain_name(name, prefixes): name for name in module.state_dict()}
    parts = {plain_name(name, prefixes): name for name, _ in module.named_modules()}
    return renamed(state, here, parts)


def renamed(state: dict[str, Any], names: dict[str, str], parts: dict[str, str]) -> dict[str, Any]:
    """A copy of the mapping under other names, with the version numbers that torch keeps for each part."""
    result: OrderedDict[str, Any] = OrderedDict((names.get(name, name), value) for name, value in state.items())
    metadata = getattr(state, "_metadata", None)
    if metadata is not None:
        versions = OrderedDict((parts.get(name, name), value) for name, value in metadata.items())
        result._metadata = versions  # type: ignore[attr-defined]
    return result
