"""States as a `.pt` file that `torch.load(path, weights_only=True)` takes.

Only what torch itself lets through is written. Anything else becomes the nearest thing that it lets through: a numpy
array a tensor, a deque a list, a path its text. Each such change is told by its key path; a state that must come back as
it was is exported to safetensors or to a state file.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy
import torch

from .errors import NotAState, NotExportable
from .kinds import BY_TYPE as KINDS
from .registry import BY_TYPE as OWN
from .tensors import COMPUTED, INTEGER_OF_BYTES
from .whole_file import writing

TAKEN = (type(None), bool, int, float, complex, str, bytes, torch.Size, torch.dtype, torch.device)
Told = Callable[[str], None]
Known = dict[int, tuple[Any, Any]]
"""Each value by its identity, and what it became."""


def write_torch_file(path: str, state: Any, *, replace: bool = False) -> list[str]:
    """Write a state; returns what had to be changed, a line each. Raises NotExportable, FileExistsError or OSError."""
    changes: list[str] = []
    plain = plain_for_torch(state, "state", changes.append, {})
    try:
        with writing(path, replace=replace, check=lambda written: read_torch_file(written, lazy=True)) as file:
            _save(plain, file)
    except NotAState as problem:
        raise NotExportable(f"{path}: torch would not take this state back: {problem}") from problem
    return changes


def read_torch_file(path: str, *, lazy: bool = False) -> Any:
    """The state in anybody's `.pt` file, if torch reads it without running code. Raises NotAState."""
    try:
        return torch.load(path, weights_only=True, mmap=lazy, map_location="cpu")
    except OSError:
        raise
    except Exception as problem:
        raise NotAState(
            f"{path} is not a torch file of plain values (nothing of it was run): {_first_line(problem)}"
        ) from problem


def plain_for_torch(value: Any, path: str, told: Told, known: Known) -> Any:
    """The value, or the nearest thing that torch lets through; the same one wherever it is reached."""
    if type(value) in TAKEN:
        return value
    if id(value) not in known:
        known[id(value)] = value, _nearest(value, path, told, known)
    return known[id(value)][1]


def _nearest(value: Any, path: str, told: Told, known: Known) -> Any:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        if value.dtype in COMPUTED or value.is_quantized:
            return value
        told(f"{path}: a tensor of {value.dtype} became one of integers with the same bytes")
        return value.detach().view(INTEGER_OF_BYTES[value.itemsize])
    if isinstance(value, dict):
        return _plain_dict(value, path, told, known)
    if kind in (list, tuple, set, deque, frozenset):
        made = [plain_for_torch(item, f"{path}[{position}]", told, known) for position, item in enumerate(value)]
        if kind in (deque, frozenset):
            told(f"{path}: {kind.__name__} became a {'list' if kind is deque else 'set'}")
        return {tuple: tuple, set: set, frozenset: set}.get(kind, list)(made)
    if isinstance(value, numpy.generic | numpy.ndarray):
        return _plain_array(value, path, told)
    if kind is bytearray:
        told(f"{path}: bytearray became bytes")
        return bytes(value)
    own = OWN.get(kind)
    if own is not None:
        told(f"{path}: {kind.__name__} became what it is made of")
        return plain_for_torch(own.take_apart(value), path, told, known)
    small = KINDS.get(kind)
    parts = small.take_apart(value) if small is not None else str(value)
    told(f"{path}: {kind.__name__} became " + ("text" if isinstance(parts, str) else "what it is made of"))
    return plain_for_torch(parts, path, told, known)


def _plain_dict(value: dict[Any, Any], path: str, told: Told, known: Known) -> dict[Any, Any]:
    kind = type(value)
    made: dict[Any, Any] = {OrderedDict: OrderedDict, Counter: Counter}.get(kind, dict)()
    if kind is defaultdict:
        told(f"{path}: defaultdict became a dict")
    for key, item in value.items():
        plain = plain_for_torch(key, f"{path}, a key", told, known)
        made[plain] = plain_for_torch(item, f"{path}[{key!r:.60}]", told, known)
    return made


def _plain_array(value: Any, path: str, told: Told) -> Any:
    if isinstance(value, numpy.generic) and not isinstance(value, numpy.void | numpy.datetime64 | numpy.timedelta64):
        told(f"{path}: a numpy {value.dtype} became a Python number or text")
        return value.item()
    try:
        made = torch.from_numpy(numpy.array(value, dtype=value.dtype.newbyteorder("="), order="C"))
    except TypeError:
        told(f"{path}: an array of {value.dtype} became text")
        return str(value.tolist())
    told(f"{path}: a numpy array became a tensor")
    return made


def _save(plain: Any, file: Any) -> None:
    """`torch.save`, which hides a full disk behind an error of its own: the first one is raised."""
    try:
        torch.save(plain, file)
    except OSError:
        raise
    except Exception as problem:
        cause: BaseException | None = problem
        while cause is not None and not isinstance(cause, OSError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            raise cause from None
        raise NotAState(_first_line(problem)) from problem


def _first_line(problem: BaseException) -> str:
    text = str(problem) or type(problem).__name__
    return text.strip().split("\n")[0][:200]
