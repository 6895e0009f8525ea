"""The tensors of a state in the order in which a walk meets them, which gives them their numbers.

Nearly every state has nothing but plain tensors, each met once: they are only collected, and looked at together afterwards
(`facts.py`). When that finds anything else, the state is walked again, asking each tensor as it is met: the same object gets
the same number, what is lazily conjugated or negated is computed, and what cannot be saved is refused with its key path.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

import torch

from .tensors import NAMES, Refused, flagged, flags_of, refuse_freed, refuse_unfit


class Met:
    """Collects tensors; with `asks` it looks at each of them."""

    def __init__(self, *, asks: bool) -> None:
        self.tensors: list[torch.Tensor] = []
        self.asks = asks
        self._numbers: dict[int, int] = {}  # by identity, which is good only while the object lives
        self._alive: list[torch.Tensor] = []

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor. Raises `Refused`."""
        if not self.asks:
            self.tensors.append(tensor)
            return len(self.tensors) - 1
        number = self._numbers.get(id(tensor))
        if number is None:
            refuse_unfit(tensor)
            refuse_freed(tensor)
            plain = tensor
            if tensor.is_conj() or tensor.is_neg():
                plain = flagged(tensor.detach().resolve_conj().resolve_neg(), flags_of(tensor))
            number = self._numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(plain)
            self._alive.append(tensor)
        return number

    def run(self, tensors: Collection[torch.Tensor]) -> int | None:
        """The number of the first of these, numbered one after another; None, and nothing is done, unless all are plain
        and new."""
        first = len(self.tensors)
        if self.asks:
            if len(set(map(id, tensors))) < len(tensors) or not all(map(self._is_plain_and_new, tensors)):
                return None
            self._numbers.update(zip(map(id, tensors), count(first), strict=False))
        self.tensors += tensors
        return first

    def _is_plain_and_new(self, tensor: torch.Tensor) -> bool:
        if not is_strided(tensor) or tensor.dtype not in NAMES or tensor.is_conj() or tensor.is_neg():
            return False
        try:
            refuse_unfit(tensor)
            refuse_freed(tensor)
        except Refused:
            return False  # told with its path by those who ask for its number
        return id(tensor) not in self._numbers


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether the tensor needs not be taken apart."""
    return tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested
