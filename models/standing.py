"""Which tensors stand still between two optimizer steps, so that they may be copied while the next step computes.

Forward and backward leave weights and moments alone; everything else they may change, and so may the loop around them:

    stands still    a parameter of a module that an optimizer trains, and the tensors of that optimizer's state
    may move        buffers (batch statistics, the vectors of spectral norm), weights that a forward pass rescales
                    (`Embedding(max_norm=…)`), averages kept beside the model, learning rates, every plain value

A list of kinds cannot be complete, so movement is also seen: torch counts in-place changes of a tensor. One that was
seen to change without an optimizer step never counts as still again (`Movements`), and a copy during which a tensor
changed is given up rather than kept. What torch does not count (`tensor.data`, a numpy view) is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import torch

from .entries import Entry, Module, Optimizer
from .facts import DEVICE, STORAGE_ADDRESS

Memory = tuple[torch.device, int]
"""Device and address of a storage: what two tensors of one memory have in common."""

VERSION = attrgetter("_version")


def memory_of(tensors: Sequence[torch.Tensor]) -> Iterator[Memory]:
    """The memory of each."""
    return zip(map(DEVICE, tensors), map(STORAGE_ADDRESS, map(torch.Tensor.untyped_storage, tensors)), strict=True)


class Marks:
    """Tensors that should stand still, and how often each had been changed when that was decided."""

    def __init__(self, entries: Sequence[Entry], tensors: list[torch.Tensor], memory: set[Memory]) -> None:
        self.memory = memory
        self._entries = entries
        self._tensors = tensors
        self._versions = list(map(VERSION, tensors))

    def moved(self) -> list[torch.Tensor]:
        """Those that were changed in place since."""
        versions = list(map(VERSION, self._tensors))
        if versions == self._versions:
            return []
        changes = zip(self._tensors, versions, self._versions, strict=True)
        return [tensor for tensor, now, then in changes if now != then]

    def path_of(self, tensor: torch.Tensor) -> str:
        """Where in the state one of them is."""
        for entry in self._entries:
            for path, each in paths_in(entry):
                if each is tensor:
                    return path
        return "a tensor"


class Movements:
    """The memory that was seen to change without an optimizer step."""

    def __init__(self) -> None:
        self._moved: dict[Memory, torch.Tensor] = {}  # holding the tensor keeps its address from being used again

    def look(self, marks: Marks) -> None:
        """Whatever of these has moved counts as still no more."""
        moved = marks.moved()
        self._moved.update(zip(memory_of(moved), moved, strict=True))

    @property
    def memory(self) -> Iterable[Memory]:
        """Where it is."""
        return self._moved


def standing_tensors(
    entries: Sequence[Entry], optimizers: Iterable[torch.optim.Optimizer], movements: Movements
) -> Marks:
    """The tensors of a state that only an optimizer step changes, each marked as it is now."""
    known = list(optimizers) + [entry.value for entry in entries if isinstance(entry, Optimizer)]
    trained = {id(each) for optimizer in known for group in optimizer.param_groups for each in group["params"]}
    moving = set(movements.memory)
    tensors: list[torch.Tensor] = []
    for entry in entries:
        if isinstance(entry, Module):
            parts = parts_of(entry.value)
            moving.update(memory_of(may_move(parts)))
            parameters = [each for part in parts for each in part._parameters.values() if each is not None]
            if not trained.isdisjoint(map(id, parameters)):  # frozen ones stand still beside those that are trained
                tensors += parameters
        elif isinstance(entry, Optimizer):
            tensors += moments_of(entry.value)
    if any(map(torch.Tensor.is_inference, tensors)):  # their changes are not counted
        tensors = [tensor for tensor in tensors if not tensor.is_inference()]
    memory = list(memory_of(tensors))
    if not moving.isdisjoint(memory):
        tensors = [tensor for tensor, each in zip(tensors, memory, strict=True) if each not in moving]
    return Marks(entries, tensors, set(memory) - moving)


def parts_of(module: torch.nn.Module) -> list[torch.nn.Module]:
    """A module and all in it, each once."""
    parts, known = [module], {id(module)}
    for part in parts:
        for inner in part._modules.values():
            if inner is not None and id(inner) not in known:
                known.add(id(inner))
                parts.append(inner)
    return parts


def moments_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """What an optimizer keeps for its parameters. Its groups are not among it: schedulers write into those."""
    kept = (moments.values() for moments in optimizer.state.values() if isinstance(moments, dict))
    return [value for values in kept for value in values if isinstance(value, torch.Tensor)]


def may_move(parts: Iterable[torch.nn.Module]) -> list[torch.Tensor]:
    """The tensors of a module that its own forward pass may change."""
    found = [each for part in parts for each in part._buffers.values() if each is not None]
    for part in parts:
        if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and part.max_norm is not None:
            found.append(part.weight)
    return found


def paths_in(entry: Entry) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters or moments of an entry, each with its path."""
    if isinstance(entry, Module):
        for name, parameter in list(entry.value.named_parameters()):
            yield f"{entry.name}[{name!r}]", parameter
    elif isinstance(entry, Optimizer):
        for number, moments in enumerate(list(entry.value.state.values())):
            for key, value in moments.items() if isinstance(moments, dict) else ():
                yield f"{entry.name}['state'][{number}][{key!r}]", value
