"""What of a checkpoint does not fit the objects here, as one short phrase for each problem. Changes nothing.

Shapes and dtypes must be the same, since a resume continues the same run: a state that has to be converted is loaded
with `lastgood.models.load` and converted by the caller.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.nn.parameter import is_lazy

PARAMETER_SHAPED = frozenset(
    (
        "exp_avg",
        "exp_avg_sq",
        "max_exp_avg_sq",
        "momentum_buffer",
        "square_avg",
        "grad_avg",
        "acc_delta",
        "exp_inf",
        "sum",
    )
)
"""State of torch's own optimizers that has its parameter's shape."""


def class_name(value: Any) -> str:
    """Where the class of a value is to be found, for messages and comparison only."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def tensor_problems(path: str, here: Any, saved: Any) -> Iterator[str]:
    """What is wrong between two tensors or arrays, if anything."""
    if type(here) is not type(saved) and not (isinstance(here, torch.Tensor) and isinstance(saved, torch.Tensor)):
        yield f"{path}: a {type(saved).__name__} in the store, a {type(here).__name__} here"
    elif reason := without_values(here):
        yield f"{path}: {reason}"
    elif layout_of(here) != layout_of(saved):
        yield f"{path}: {layout_of(saved)} in the store, {layout_of(here)} here"
    elif shape_of(here) != shape_of(saved):
        yield f"{path}: shape {shape_of(saved)} in the store, {shape_of(here)} here"
    elif here.dtype != saved.dtype:
        yield f"{path}: {saved.dtype} in the store, {here.dtype} here"


def without_values(here: Any) -> str | None:
    """Why nothing can be loaded into what is here: it has no memory for values. None when it has."""
    if not isinstance(here, torch.Tensor):
        return None
    if is_lazy(here):
        return "not made yet here (a lazy module that has not run): run the model once, then restore"
    if here.is_meta:
        return "on the meta device here, which holds no values: materialise it first, with to_empty(device=...)"
    return None


def layout_of(value: Any) -> str:
    """How a tensor keeps its values; "" for an array."""
    if not isinstance(value, torch.Tensor):
        return ""
    return f"{'nested ' if value.is_nested else ''}{value.layout}"


def shape_of(value: Any) -> list[Any]:
    """The shape as numbers; a ragged dimension, whose length may be another each time, is "ragged"."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        if value.layout is not torch.jagged:
            return [value.size(0)]
        return [each if type(each) is int else "ragged" for each in value.shape]
    return list(value.shape)


def module_problems(name: str, here: Any, saved: Any) -> Iterator[str]:
    """Keys, shapes and dtypes of a module's state."""
    if not isinstance(saved, dict):
        yield f"{name}: a {type(saved).__name__} in the store, a module here"
        return
    missing = [key for key in here if key not in saved]
    unexpected = [key for key in saved if key not in here]
    if prefix := common_prefix(missing, unexpected):
        yield f"{name}: {prefix}"
    yield from (f"{name}[{key!r}]: missing in the store" for key in missing)
    yield from (f"{name}[{key!r}]: unexpected, only in the store" for key in unexpected)
    for key in here:
        if key in saved and isinstance(here[key], torch.Tensor):
            yield from tensor_problems(f"{name}[{key!r}]", here[key], saved[key])


def fitting_keys(here: dict[str, Any], saved: dict[str, Any]) -> dict[str, Any]:
    """The saved keys of a module's state that are here too, with the same shape and dtype."""
    fitting = OrderedDict((key, value) for key, value in saved.items() if key in here)
    if hasattr(saved, "_metadata"):
        fitting._metadata = saved._metadata  # type: ignore[attr-defined]
    for key, value in here.items():
        if key in fitting and isinstance(value, torch.Tensor) and any(tensor_problems(key, value, fitting[key])):
            del fitting[key]
    return fitting


def common_prefix(missing: list[str], unexpected: list[str]) -> str | None:
    """The explanation when all names differ by one prefix only, as torch.compile and the parallel wrappers add."""
    for longer, shorter, where in ((unexpected, missing, "in the store"), (missing, unexpected, "here")):
        if not shorter or len(longer) != len(shorter) or not longer[0].endswith(shorter[0]):
            continue
        prefix = longer[0].removesuffix(shorter[0])
        if prefix and [prefix + key for key in shorter] == longer:
            return f"all names {where} begin with {prefix!r}: wrap or unwrap the module as it was when it was saved"
    return None


def optimizer_problems(name: str, optimizer: torch.optim.Optimizer, saved: Any, kind: str | None) -> Iterator[str]:
    """Groups, the number and names of parameters in each, and the shapes of moments. Moments may be absent."""
    if not isinstance(saved, dict) or "param_groups" not in saved or "state" not in saved:
        yield f"{name}: not an optimizer's state in the store"
        return
    here, groups = optimizer.param_groups, saved["param_groups"]
    if len(groups) != len(here):
        yield f"{name}: {len(groups)} parameter groups in the store, {len(here)} here"
        return
    parameters: dict[Any, torch.Tensor] = {}
    for index, (group, ours) in enumerate(zip(groups, here, strict=True)):
        if len(group["params"]) != len(ours["params"]):
            theirs = len(group["params"])
            yield f"{name}: group {index} has {theirs} parameters in the store, {len(ours['params'])} here"
            return
        if group.get("param_names", ours.get("param_names")) != ours.get("param_names", group.get("param_names")):
            yield f"{name}: the parameters of group {index} have other names, or another order, in the store"
        lacking = sorted(set(ours) - set(group))
        if lacking and kind is not None and kind != class_name(optimizer):
            yield f"{name}: saved from a {kind}, here is a {class_name(optimizer)} (no {lacking[0]!r} in the store)"
            return
        for number, parameter in zip(group["params"], ours["params"], strict=True):
            if reason := without_values(parameter):
                yield f"{name}: parameter {number} is {reason}"
                return
            parameters[number] = parameter
    for number, moments in saved["state"].items():
        if number not in parameters or not isinstance(moments, dict):
            continue
        for key, moment in moments.items():
            if key in PARAMETER_SHAPED and isinstance(moment, torch.Tensor) and moment.dim():
                shape = parameters[number].shape
                if moment.shape != shape:
                    path = f"{name}['state'][{number}][{key!r}]"
                    yield f"{path}: shape {list(moment.shape)} in the store, its parameter has {list(shape)}"


def plain_problems(path: str, here: Any, saved: Any) -> Iterator[str]:
    """Tensors and arrays that live here must come back; containers around them may differ from what they were."""
    if isinstance(here, (torch.Tensor, numpy.ndarray)):
        yield from tensor_problems(path, here, saved)
    elif isinstance(here, dict):
        for key, value in here.items():
            if isinstance(saved, dict) and key in saved:
                yield from plain_problems(f"{path}[{key!r}]", value, saved[key])
            elif holds_tensor(value):
                yield f"{path}[{key!r}]: missing in the store"
    elif isinstance(here, (list, tuple)):
        same = isinstance(saved, (list, tuple))
        for position, value in enumerate(here):
            if same and position < len(saved):
                yield from plain_problems(f"{path}[{position}]", value, saved[position])
            elif holds_tensor(value):
                yield f"{path}[{position}]: missing in the store"


def holds_tensor(value: Any) -> bool:
    """Whether a tensor or an array is anywhere inside."""
    if isinstance(value, (torch.Tensor, numpy.ndarray)):
        return True
    if isinstance(value, dict):
        return any(map(holds_tensor, value.values()))
    return isinstance(value, (list, tuple)) and any(map(holds_tensor, value))
