"""What decides how the tensors of a state are saved, asked of all at once, a column for each question.

    types, dtypes, devices, shapes, strides, requires_grad
    offsets, lengths          where a tensor begins in its storage, in elements; how many bytes the storage has
    sharing                   the first tensor of the same storage, for each; empty when every storage has one tensor

Two states with equal facts are laid out alike, so facts are also how an encoder knows that its last table is still true
(`encode.py`): whatever may change of a tensor between two saves, other than its values, is in one of the columns, but for the
address of its storage, which is asked anew each time. Facts are numbers and types: to keep them keeps no tensor alive. A
question to a column costs a thirtieth of a microsecond for each tensor, which is why nothing here is a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import torch

STORAGE_ADDRESS, STORAGE_LENGTH = torch._C.StorageBase.data_ptr, torch._C.StorageBase.nbytes
LAYOUT, NESTED, DTYPE, DEVICE = map(attrgetter, ("layout", "is_nested", "dtype", "device"))
SHAPE, REQUIRES_GRAD = map(attrgetter, ("shape", "requires_grad"))
PLAIN_TYPES = {torch.Tensor, torch.nn.Parameter}


class Facts(NamedTuple):
    """The columns."""

    types: list[type]
    dtypes: list[torch.dtype]
    devices: list[torch.device]
    shapes: list[torch.Size]
    strides: list[tuple[int, ...]]
    requires_grad: list[bool]
    offsets: list[int]
    lengths: list[int]
    sharing: list[int]


def facts_of(tensors: Sequence[torch.Tensor]) -> tuple[Facts, list[int]] | None:
    """The facts of these, and the addresses of their storages; None when not all can be asked: for a subclass, one that is
    nested, of another layout, lazily conjugated or negated."""
    types: list[type] = list(map(type, tensors))
    if not PLAIN_TYPES.issuperset(types) or not {torch.strided}.issuperset(map(LAYOUT, tensors)):
        return None
    if any(map(NESTED, tensors)) or any(map(torch.Tensor.is_neg, tensors)):
        return None
    dtypes: list[torch.dtype] = list(map(DTYPE, tensors))
    if any(dtype.is_complex for dtype in set(dtypes)) and any(map(torch.Tensor.is_conj, tensors)):
        return None
    storages = list(map(torch.Tensor.untyped_storage, tensors))
    devices, addresses = list(map(DEVICE, tensors)), list(map(STORAGE_ADDRESS, storages))
    sharing: list[int] = []
    if len(set(addresses)) < len(addresses):
        first_of: dict[Any, int] = {}
        sharing = list(map(first_of.setdefault, zip(devices, addresses, strict=True), range(len(tensors))))
    facts = Facts(
        types,
        dtypes,
        devices,
        list(map(SHAPE, tensors)),
        list(map(torch.Tensor.stride, tensors)),
        list(map(REQUIRES_GRAD, tensors)),
        list(map(torch.Tensor.storage_offset, tensors)),
        list(map(STORAGE_LENGTH, storages)),
        sharing,
    )
    return facts, addresses
