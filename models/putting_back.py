"""What was there before a restore, kept so that it can be put back: one mechanism for every kind of entry (K1).

    kept = Kept(entry)       nothing is changed yet; raises StateMismatch when it could not be put back
    entry.restore(saved)     raises, or is interrupted, or a later entry does
    kept.put_back()          whether the entry has again the state that it had

Every tensor, array and container that the state is made of gets its contents back in place, which runs no code of the
user's. What still differs then (a counter, moments that were exchanged) is loaded from the copy. Whether that has worked
is looked at, not assumed. Until a restore is done, what is here takes its size once more, in host memory.
"""

from __future__ import annotations

import copy
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import torch
from torch.nn.parameter import is_lazy

from .encode import encode
from .entries import Entry
from .errors import StateMismatch
from .writing import write_tensor

logger = logging.getLogger("lastgood")


class Kept:
    """The state of one entry as it is now."""

    def __init__(self, entry: Entry) -> None:
        """Copy it. Raises StateMismatch for a state that cannot be copied."""
        self._entry = entry
        self._live = entry.read()
        known: dict[int, Any] = {}
        self._contents = [(part, contents_of(part, known)) for part in parts_of(self._live, set())]
        try:
            self._copy = copy.deepcopy(self._live, known)
        except Exception as problem:
            raise StateMismatch(
                f"{entry.name}: its state here cannot be copied, so it could not be put back: {in_words(problem)}"
            ) from problem

    @property
    def name(self) -> str:
        """The entry's name."""
        return self._entry.name

    def put_back(self) -> bool:
        """Give the entry its state again; returns whether it has it."""
        try:
            for part, contents in self._contents:
                refill(part, contents)
            if not self._is_as_before():
                self._entry.put_back(self._live, self._copy)
        except Exception as problem:
            logger.warning("%s: putting back its earlier state: %s: %s", self.name, type(problem).__name__, problem)
        return self._is_as_before()

    def _is_as_before(self) -> bool:
        try:
            return equal(self._entry.read(), self._copy)
        except Exception:
            return False


def put_all_back(kept: Sequence[Kept]) -> str:
    """Put back everything, the last one first; returns what to say of it."""
    lost = [each.name for each in reversed(kept) if not each.put_back()]
    if not lost:
        return "nothing was changed"
    return f"all was put back but {', '.join(sorted(lost))}, which would not take the earlier state: make it anew"


def in_words(problem: BaseException) -> str:
    """What was raised, in one line."""
    return " ".join(f"{type(problem).__name__}: {problem}".split())


def parts_of(value: Any, seen: set[int]) -> Iterator[Any]:
    """Every tensor, array and container of a state that can be written into, each once."""
    if id(value) in seen:
        return
    if isinstance(value, (torch.Tensor, numpy.ndarray, dict, list, deque, set, bytearray, tuple)):
        seen.add(id(value))
        if not isinstance(value, tuple):
            yield value
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, deque, tuple)):
            for each in value:
                yield from parts_of(each, seen)


def contents_of(part: Any, known: dict[int, Any]) -> Any:
    """What is in it now; `known` learns the copy of a tensor, in host memory, for whoever copies what it is part of."""
    if isinstance(part, torch.Tensor):
        known[id(part)] = made = host_copy(part)
        return made
    if isinstance(part, numpy.ndarray):
        known[id(part)] = made = part.copy()
        return made
    return dict(part) if isinstance(part, dict) else part[:] if isinstance(part, bytearray) else list(part)


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in host memory; the tensor itself when it has no values."""
    if is_lazy(tensor) or tensor.is_meta:
        return tensor
    made = tensor.detach().to("cpu", copy=True)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, tensor.requires_grad)
    return made.requires_grad_() if tensor.requires_grad else made


def refill(part: Any, contents: Any) -> None:
    """Give a part its contents again. One that cannot be written into was not written into by anybody else."""
    if isinstance(part, torch.Tensor):
        if part is not contents:
            write_tensor(part, contents)
    elif isinstance(part, numpy.ndarray):
        if part.flags.writeable:
            part[...] = contents
    elif isinstance(part, (list, bytearray)):
        part[:] = contents
    else:
        part.clear()
        part.extend(contents) if isinstance(part, deque) else part.update(contents)


def equal(here: Any, there: Any) -> bool:
    """Whether two states are the same to the last bit; memory that is shared, and where tensors are, do not count."""
    if isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor):
        return here is there or _same_bits(here, there)
    if isinstance(here, numpy.ndarray) and isinstance(there, numpy.ndarray):
        return (here.dtype, here.shape, here.tobytes()) == (there.dtype, there.shape, there.tobytes())
    if type(here) is not type(there):
        return False
    if isinstance(here, dict):
        return list(here) == list(there) and all(map(equal, here.values(), there.values()))
    if isinstance(here, (list, tuple, deque)):
        return len(here) == len(there) and all(map(equal, here, there))
    return here is there or bool(here == there) or encode(here).to_bytes() == encode(there).to_bytes()


def _same_bits(here: torch.Tensor, there: torch.Tensor) -> bool:
    if (here.dtype, here.layout) != (there.dtype, there.layout) or here.is_meta or there.is_meta:
        return False
    if here.layout is not torch.strided or here.is_quantized or here.is_nested:
        return encode(here).to_bytes() == encode(there).to_bytes()
    flat = [each.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1) for each in (here, there)]
    return here.shape == there.shape and flat[0].view(torch.uint8).equal(flat[1].view(torch.uint8))
