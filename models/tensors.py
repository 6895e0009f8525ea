"""Tensors one by one: which can be saved, where their bytes lie, and what is kept of them beside their values.

Kept: bits, dtype, shape, strides (but for holes), sharing, `requires_grad`, being a Parameter, being the same object.
Not kept: device (all come back on the CPU), gradients, hooks, attributes, pinned or shared-memory placement.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from .skeleton import PARAMETER, REQUIRES_GRAD

INTEGERS = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
BARE = (
    "float4_e2m1fn_x2",
    *(f"{sign}int{width}" for sign in ("", "u") for width in range(1, 8)),
    *("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
)
"""Types that torch stores and computes nothing with, not even a copy with strides."""

DTYPE_NAMES = (*INTEGERS, *FLOATS, *SMALL_FLOATS, *BARE)

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in DTYPE_NAMES if hasattr(torch, name)}
"""The element types that can be saved, by name. Quantised ones are saved by their integers (`layouts.py`)."""

COMPUTED = frozenset(dtype for name, dtype in DTYPES.items() if name not in BARE)
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FREED = "the tensor's storage has been freed or resized; gather or materialise it before saving"
INTEGER_OF_BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Refused(Exception):
    """A value that cannot be written; the message says why and what to do, the encoder adds the key path."""


def flags_of(tensor: torch.Tensor) -> int:
    """`requires_grad` and being a Parameter, as a number."""
    return REQUIRES_GRAD * tensor.requires_grad | PARAMETER * (type(tensor) is torch.nn.Parameter)


def flagged(tensor: torch.Tensor, flags: int) -> torch.Tensor:
    """The tensor with these flags; a Parameter is a new object over the same memory."""
    if flags & PARAMETER:
        return torch.nn.Parameter(tensor, requires_grad=bool(flags & REQUIRES_GRAD))
    return tensor.requires_grad_() if flags & REQUIRES_GRAD else tensor


def refuse_unfit(tensor: torch.Tensor) -> None:
    """Raise `Refused` unless the tensor is ordinary: strided, materialised, of a known dtype and no subclass."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        if torch.nn.parameter.is_lazy(tensor):
            raise Refused(f"{kind.__name__} has no values yet; run the module once before saving")
        raise Refused(
            f"{kind.__module__}.{kind.__name__} is a tensor subclass; save a plain tensor made from it,"
            " or register the type with lastgood.models.register"
        )
    if tensor.device.type == "meta":
        raise Refused("a tensor on the meta device has no values; materialise it first")
    if tensor.layout != torch.strided:
        raise Refused(
            f"a tensor of layout {tensor.layout} is not supported; save its indices and values, or to_dense()"
        )
    if tensor.dtype not in NAMES:
        raise Refused(f"a tensor of {tensor.dtype} is not supported; save its int_repr() and scale, or convert it")


class Span(NamedTuple):
    """How far a tensor of some shape and strides reaches, in bytes; the shape has 1 for expanded dimensions."""

    length: int
    shape: tuple[int, ...]
    filled: bool
    row_major: bool


def span_of(shape: tuple[int, ...], strides: tuple[int, ...], item_bytes: int) -> Span:
    """The span of a tensor: row-major as torch counts it, for which dimensions of one element are of any stride."""
    numel, elements, expected, row_major = 1, 1, 1, True
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1:
            row_major = row_major and stride == expected
            expected *= length
        if stride or not length:
            numel *= length
            elements += (length - 1) * stride
    if row_major or not numel:
        return Span(expected * item_bytes if numel else 0, shape, True, True)
    narrow = tuple(1 if stride == 0 else length for length, stride in zip(shape, strides, strict=True))
    return Span(elements * item_bytes, narrow, elements <= numel, False)


def refuse_freed(tensor: torch.Tensor) -> None:
    """Raise `Refused` when a tensor that is fit otherwise reaches outside of its storage."""
    length = span_of(tensor.shape, tensor.stride(), tensor.itemsize).length
    storage = tensor.untyped_storage()
    if length and tensor.data_ptr() + length > storage.data_ptr() + storage.nbytes():
        raise Refused(FREED)
