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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from .entries import Entry, Module, Optimizer

StorageKey = tuple[str, int]
"""Device and address of a storage."""


def storage_key(tensor: torch.Tensor) -> StorageKey:
    """What two tensors of one memory have in common."""
    return str(tensor.device), tensor.untyped_storage().data_ptr()


@dataclass(frozen=True)
class Mark:
    """A tensor that should stand still, and how often it had been changed when that was decided."""

    path: str
    tensor: torch.Tensor
    version: int

    @property
    def has_moved(self) -> bool:
        """Whether it was changed in place since."""
        return self.tensor._version != self.version


class Movements:
    """The memory that was seen to change without an optimizer step."""

    def __init__(self) -> None:
        self._moved: dict[StorageKey, torch.Tensor] = {}  # holding the tensor keeps its address from being used again

    def look(self, marks: Iterable[Mark]) -> list[Mark]:
        """Those that have moved; from now on none of them counts as still."""
        found = [mark for mark in marks if mark.has_moved]
        for mark in found:
            self._moved[storage_key(mark.tensor)] = mark.tensor
        return found

    def __contains__(self, tensor: torch.Tensor) -> bool:
        """Whether this tensor, or one of the same memory, was seen to move."""
        return storage_key(tensor) in self._moved


def standing_tensors(
    entries: Iterable[Entry], optimizers: Iterable[torch.optim.Optimizer], movements: Movements
) -> list[Mark]:
    """The tensors of a state that only an optimizer step changes, each marked as it is now."""
    known = list(optimizers) + [entry.value for entry in entries if isinstance(entry, Optimizer)]
    trained = {id(each) for optimizer in known for group in optimizer.param_groups for each in group["params"]}
    moving = {storage_key(each) for entry in entries if isinstance(entry, Module) for each in may_move(entry.value)}
    marks: list[Mark] = []
    for entry in entries:
        tensors: Iterator[tuple[str, torch.Tensor]] = iter(())
        if isinstance(entry, Module):
            tensors = parameters_of(entry, trained)
        elif isinstance(entry, Optimizer):
            tensors = moments_of(entry)
        for path, tensor in tensors:
            if not tensor.is_inference() and storage_key(tensor) not in moving and tensor not in movements:
                marks.append(Mark(path, tensor, tensor._version))
    return marks


def parameters_of(entry: Module, trained: set[int]) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters of a module that is trained, frozen ones among them; of any other module, none."""
    parameters = list(entry.value.named_parameters())
    if any(id(parameter) in trained for _, parameter in parameters):
        yield from ((f"{entry.name}[{name!r}]", parameter) for name, parameter in parameters)


def moments_of(entry: Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    """What an optimizer keeps for its parameters. Its groups are not among it: schedulers write into those."""
    for number, moments in enumerate(entry.value.state.values()):
        for key, value in moments.items() if isinstance(moments, dict) else ():
            if isinstance(value, torch.Tensor):
                yield f"{entry.name}['state'][{number}][{key!r}]", value


def may_move(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """The tensors of a module that its own forward pass may change."""
    yield from module.buffers()
    for part in module.modules():
        if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and part.max_norm is not None:
            yield part.weight
