"""All ordinary tensors of a payload at once: made in one go, filled by one loop of copies.

A tensor is ordinary when it is row-major and all of a region that no other tensor lies in; nearly all are. Each gets memory
of its own, of exactly its size, though one block for all would be made faster: a tensor that is a view keeps the whole block
alive, `torch.save` of it writes the block, and its storage cannot be resized. Everything else, and whatever looks wrong, is
left to `decode.py`, which tells what and where.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy
import torch

from .errors import NotAState
from .gather import copy_many
from .regions import Regions, count
from .tensors import DTYPES


def ordinary_tensors(skeleton: dict[str, Any], lengths: list[int], regions: Regions) -> list[torch.Tensor | None]:
    """The tensors by number; None for each that is not ordinary."""
    made: list[torch.Tensor | None] = [None] * len(skeleton["tensors"][1])
    kinds, places = (numpy.array(each) for each in skeleton["tensors"])
    if not kinds.size or kinds.shape != places.shape or kinds.dtype != numpy.int64 or places.dtype != numpy.int64:
        return made
    makers = [maker_of(kind) for kind in skeleton["kinds"]]
    if kinds.min() < 0 or kinds.max() >= len(makers) or places.min() < 0 or places.max() >= len(lengths):
        return made
    sizes = numpy.array(lengths, numpy.int64)
    needed = numpy.array([size for _, size in makers], numpy.int64)
    alone = numpy.bincount(places, minlength=len(lengths)) == 1
    fitting = (alone & (sizes < regions.copied_below))[places] & (needed[kinds] == sizes[places])
    numbers = numpy.nonzero(fitting)[0]
    tensors = [makers[kind][0]() for kind in kinds[numbers].tolist()]
    chosen = places[numbers]
    copy_many(list(map(torch.Tensor.data_ptr, tensors)), regions.addresses(chosen), sizes[chosen])
    if len(tensors) == len(made):
        return list(tensors)
    for number, tensor in zip(numbers.tolist(), tensors, strict=True):
        made[number] = tensor
    return made


def maker_of(kind: Any) -> tuple[Any, int]:
    """What makes an ordinary tensor of a kind, and its bytes; -1 bytes for a kind that is not ordinary."""
    try:
        name, shape, offset, strides, flags = kind
        if name not in DTYPES or offset or strides is not None or flags:
            return None, -1
        template = torch.empty(0, dtype=DTYPES[name], device="cpu")
        size = template.itemsize
        for length in shape:
            size *= count(length)
    except (NotAState, TypeError, ValueError):
        return None, -1
    return (partial(template.new_empty, shape), size) if size < 2**62 else (None, -1)
