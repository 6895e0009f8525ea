"""The entries of a checkpointer's state: how each kind of object is read, held against a checkpoint, and restored.

    kind         recognised by                        before a restore changes anything, it is checked that …
    Module       torch.nn.Module                      keys, shapes and dtypes are the same
    Optimizer    torch.optim.Optimizer                groups and parameters match, and moments fit their parameters
    Stateful     state_dict and load_state_dict       a class of another name does not get keys of another set
    Stream       a generator of random numbers        it is of the same algorithm
    Plain        anything else                        every tensor and array here has its equal in the checkpoint

Plain values are data: dicts, lists, numbers, text, tensors. Restoring writes into what is there where it can be written
into (dicts, lists, tensors and arrays keep their identity, whoever else holds them sees the new contents) and puts the
restored value into the mapping in every case. A dict or list may have grown or shrunk since: it comes back as saved.
Whether a tensor that is here requires a gradient is for the program to say, and stays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy
import torch

from .compare import class_name, fitting_keys, module_problems, optimizer_problems, plain_problems
from .room import moments_to_come
from .wrappers import with_wrappers, without_wrappers
from .writing import write_into

NOTHING = object()
"""Stands for a saved value of which nothing can be restored."""


class Entry:
    """One named part of the state."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def read(self) -> Any:
        """The state now, as data that still aliases the live object."""
        raise NotImplementedError

    def problems(self, saved: Any, kind: str | None) -> Iterator[str]:
        """Everything that keeps `saved` from being restored here. Changes nothing."""
        return iter(())

    def fitting(self, saved: Any, kind: str | None) -> tuple[Any, list[str]]:
        """What of `saved` can be restored here (`NOTHING` when none of it), and everything that cannot."""
        problems = list(self.problems(saved, kind))
        return (NOTHING if problems else saved), problems

    def restore(self, saved: Any) -> None:
        """Put `saved` in place. The entry becomes its owner."""
        raise NotImplementedError

    def put_back(self, live: Any, copied: Any) -> None:
        """Have an earlier state again: it was read as `live`, whose tensors and containers have their contents already."""
        self.restore(copied)

    def complete_update(self) -> None:
        """An update has been completed: what was drawn from a loader until now has been used."""

    def growth_bytes(self) -> int:
        """Bytes that this state has yet to grow by, as far as can be known."""
        return 0


class Stateful(Entry):
    """Schedulers, scalers, samplers, loaders: whatever has `state_dict` and `load_state_dict`."""

    def read(self) -> Any:
        """Ask the object for its state."""
        return self.value.state_dict()

    def problems(self, saved: Any, kind: str | None) -> Iterator[str]:
        """Only the object knows its state; what can be told from outside is that it was another object's."""
        here = self.read()
        renamed = kind is not None and kind != class_name(self.value)
        if renamed and isinstance(here, dict) and isinstance(saved, dict) and set(here) != set(saved):
            yield f"{self.name}: saved from a {kind}, here is a {class_name(self.value)}"

    def restore(self, saved: Any) -> None:
        """Give the object its state."""
        self.value.load_state_dict(saved)


class Follower(Stateful):
    """A loader that counts what completed updates have used: it has `follow_updates` and `completed`."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name, value)
        value.follow_updates()

    def complete_update(self) -> None:
        """Tell it."""
        self.value.completed()


class Module(Stateful):
    """A torch module. Names are those of the module as it was written: without what `torch.compile` puts in between."""

    def read(self) -> Any:
        """Its parameters and buffers."""
        return without_wrappers(self.value, self.value.state_dict())

    def problems(self, saved: Any, kind: str | None) -> Iterator[str]:
        """Keys, shapes and dtypes."""
        return module_problems(self.name, self.read(), saved)

    def fitting(self, saved: Any, kind: str | None) -> tuple[Any, list[str]]:
        """The keys that are here too, with the same shape and dtype."""
        here = self.read()
        problems = list(module_problems(self.name, here, saved))
        if not problems:
            return saved, []
        return (fitting_keys(here, saved) if isinstance(saved, dict) else NOTHING), problems

    def restore(self, saved: Any) -> None:
        """Load what is there; `problems` or `fitting` has seen to it that it fits."""
        self.value.load_state_dict(with_wrappers(self.value, saved), strict=False)


class Optimizer(Stateful):
    """A torch optimizer."""

    def problems(self, saved: Any, kind: str | None) -> Iterator[str]:
        """Groups, parameters and the shapes of moments."""
        return optimizer_problems(self.name, self.value, saved, kind)

    def growth_bytes(self) -> int:
        """The moments of parameters that were never updated."""
        return moments_to_come(self.value)


class Stream(Entry):
    """A generator of random numbers that the user made."""

    def __init__(self, name: str, value: Any, get: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        super().__init__(name, value)
        self._get = get
        self._put = put

    def read(self) -> Any:
        """The generator's state."""
        return self._get()

    def problems(self, saved: Any, kind: str | None) -> Iterator[str]:
        """Another algorithm has a state of another form."""
        here = self.read()
        if type(saved) is not type(here) or (isinstance(here, dict) and saved.keys() != here.keys()):
            yield f"{self.name}: saved from another kind of generator than the {class_name(self.value)} here"

    def restore(self, saved: Any) -> None:
        """Set the generator to the saved state."""
        self._put(saved)


class Plain(Entry):
    """Data, read from the user's mapping at every save."""

    def __init__(self, name: str, mapping: MutableMapping[str, Any]) -> None:
        super().__init__(name, mapping[name])
        self._mapping = mapping

    def read(self) -> Any:
        """The value that is in the mapping now."""
        return self._mapping[self.name]

    def problems(self, saved: Any, kind: str | None) -> Iterator[str]:
        """Tensors and arrays that have no equal in the checkpoint."""
        return plain_problems(self.name, self.read(), saved)

    def restore(self, saved: Any) -> None:
        """Write into the value that is there, and put the result into the mapping."""
        self._mapping[self.name] = write_into(self.read(), saved)

    def put_back(self, live: Any, copied: Any) -> None:
        """The value that was there."""
        self._mapping[self.name] = live


def entries_of(state: MutableMapping[str, Any], known: Sequence[Entry] = ()) -> list[Entry]:
    """The entries of a state, by the kind of each value; of an object that is known already, the entry that it has."""
    objects = {entry.name: entry for entry in known if not isinstance(entry, Plain)}
    kept = {name: objects[name] for name in state if name in objects and objects[name].value is state[name]}
    return [kept.get(name) or _entry(name, state) for name in state]


def are_current(entries: Sequence[Entry], state: MutableMapping[str, Any]) -> bool:
    """Whether these are the entries of a state as it is now. Costs next to nothing."""
    if len(entries) != len(state):
        return False
    for entry in entries:
        value = state.get(entry.name, NOTHING)
        if value is not entry.value and not (isinstance(entry, Plain) and type(value) is type(entry.value)):
            return False
    return True


def _entry(name: str, state: MutableMapping[str, Any]) -> Entry:
    value = state[name]
    if isinstance(value, torch.nn.Module):
        return Module(name, value)
    if isinstance(value, torch.optim.Optimizer):
        return Optimizer(name, value)
    if isinstance(value, torch.Generator):
        return Stream(name, value, value.get_state, value.set_state)
    if isinstance(value, random.Random):
        return Stream(name, value, value.getstate, value.setstate)
    if isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        return Stream(name, value, lambda: bits.state, lambda saved: setattr(bits, "state", saved))
    if callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None)):
        return Follower(name, value) if hasattr(value, "follow_updates") else Stateful(name, value)
    return Plain(name, state)
