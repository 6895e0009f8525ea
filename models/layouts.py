"""Tensors that are not strided: sparse, quantised and nested jagged ones, as strided tensors and a few facts.

    tag         facts                                                 tensors
    SPARSE      layout, shape, flags, coalesced (COO) or null         indices, values | compressed, plain indices, values
    QUANTISED   flags, scale and zero point | axis                    integers | integers, scales, zero points
    JAGGED      flags, ragged dimension, least and greatest length    values, offsets | values, offsets, lengths

The strided tensors are rows of the tensor table, so what they share they share again. A sparse tensor's indices are
checked when it is put together (`never-wrong`: none points outside its shape, whatever a payload says). Quantised
tensors come back row-major.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch

from . import skeleton as tags
from .errors import NotAState
from .tensors import REQUIRES_GRAD, Refused, flagged, flags_of

COMPRESSED = {
    str(layout): layout for layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
}
BY_COLUMN = ("torch.sparse_csc", "torch.sparse_bsc")
COO = str(torch.sparse_coo)
WHOLE_QUANTISED = ("quint8", "qint8", "qint32")
"""Quantised element types of whole bytes; the packed ones have no integers to be asked for."""


class Parts(NamedTuple):
    """What a tensor is made of."""

    tag: str
    facts: list[Any]
    tensors: list[torch.Tensor]


def parts_of(tensor: torch.Tensor) -> Parts | None:
    """The parts of a tensor of one of these layouts, None for any other. Raises Refused for what has no parts."""
    if tensor.is_nested:
        return _jagged_parts(tensor)
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        return None
    if tensor.device.type == "meta":
        return None
    if tensor.layout is not torch.strided:
        return _sparse_parts(tensor)
    return _quantised_parts(tensor) if tensor.is_quantized else None


def _sparse_parts(tensor: torch.Tensor) -> Parts:
    layout, plain = str(tensor.layout), tensor.detach()
    facts = [layout, list(tensor.shape), flags_of(tensor)]
    if layout == COO:
        return Parts(tags.SPARSE, [*facts, plain.is_coalesced()], [plain._indices(), plain._values()])
    if layout not in COMPRESSED:
        raise Refused(f"a tensor of layout {layout} is not supported; save to_dense() of it")
    if layout in BY_COLUMN:
        indices = [plain.ccol_indices(), plain.row_indices()]
    else:
        indices = [plain.crow_indices(), plain.col_indices()]
    return Parts(tags.SPARSE, [*facts, None], [*indices, plain.values()])


def _quantised_parts(tensor: torch.Tensor) -> Parts:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in WHOLE_QUANTISED:
        raise Refused(f"a tensor of {tensor.dtype} is not supported; dequantize() it and save that")
    plain = tensor.detach()
    try:
        scheme = plain.qscheme()
    except RuntimeError:  # torch.empty makes such a one, and torch calls it a bug of its own
        raise Refused(
            f"a tensor of {tensor.dtype} without a scale has no values; make it with quantize_per_tensor"
        ) from None
    integers, flags = plain.int_repr().contiguous(), flags_of(tensor)
    if scheme == torch.per_tensor_affine:
        scale = torch.tensor(plain.q_scale(), dtype=torch.float64)
        return Parts(tags.QUANTISED, [name, flags, None, plain.q_zero_point()], [integers, scale])
    if scheme in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
        scales, zeros = plain.q_per_channel_scales(), plain.q_per_channel_zero_points()
        return Parts(tags.QUANTISED, [name, flags, plain.q_per_channel_axis(), 0], [integers, scales, zeros])
    raise Refused(f"a tensor quantised as {scheme} is not supported; dequantize() it and save that")


def _jagged_parts(tensor: torch.Tensor) -> Parts:
    if tensor.layout is not torch.jagged or not hasattr(tensor, "_ragged_idx"):
        raise Refused(
            "a nested tensor of strided layout is not supported; save unbind() of it, or use layout=torch.jagged"
        )
    values, offsets, lengths = tensor.values().detach(), tensor.offsets(), tensor.lengths()
    flags = REQUIRES_GRAD * tensor.requires_grad
    known = getattr(tensor, "_metadata_cache", {})
    extremes = [int(known[key].shape[0]) if key in known else None for key in ("min_seqlen", "max_seqlen")]
    rows = [values, offsets] if lengths is None else [values, offsets, lengths]
    return Parts(tags.JAGGED, [flags, int(tensor._ragged_idx), *extremes], rows)


def put_together(tag: str, facts: Any, tensors: list[torch.Tensor]) -> torch.Tensor:
    """The tensor that these parts were taken from. Raises what torch raises, or NotAState, for parts that do not fit."""
    if any(type(tensor) is not torch.Tensor for tensor in tensors):
        raise NotAState("not a readable state: a sparse, quantised or nested tensor made of other things than tensors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls these layouts unfinished; the saving program has heard it
        return {tags.SPARSE: _sparse, tags.QUANTISED: _quantised, tags.JAGGED: _jagged}[tag](facts, tensors)


def _sparse(facts: Any, tensors: list[torch.Tensor]) -> torch.Tensor:
    layout, shape, flags, coalesced = facts
    shape = torch.Size(shape)
    if layout == COO:
        indices, values = tensors
        made = torch.sparse_coo_tensor(indices, values, shape, check_invariants=True)
        if coalesced:
            ones = torch.ones(indices.shape[1], dtype=torch.uint8)
            if not torch.equal(
                torch.sparse_coo_tensor(indices, ones, shape[: indices.shape[0]]).coalesce()._indices(), indices
            ):
                raise NotAState("not a whole state: a sparse tensor that should be coalesced is not")
            made = torch.sparse_coo_tensor(indices, values, shape, is_coalesced=True, check_invariants=False)
        return flagged(made, flags)
    compressed, plain, values = tensors
    made = torch.sparse_compressed_tensor(
        compressed, plain, values, shape, layout=COMPRESSED[layout], check_invariants=True
    )
    return flagged(made, flags)


def _quantised(facts: Any, tensors: list[torch.Tensor]) -> torch.Tensor:
    name, flags, axis, zero_point = facts
    if axis is None:
        integers, scale = tensors
        made = torch._make_per_tensor_quantized_tensor(integers, float(scale), int(zero_point))
    else:
        integers, scales, zeros = tensors
        if not (scales.numel() == zeros.numel() == integers.shape[axis]):
            raise NotAState("not a whole state: a quantised tensor with another number of scales than channels")
        made = torch._make_per_channel_quantized_tensor(integers, scales, zeros, int(axis))
    if str(made.dtype) != f"torch.{name}":
        raise NotAState(f"not a whole state: a quantised tensor of {made.dtype} where {name!r:.20} was saved")
    return flagged(made, flags)


def _jagged(facts: Any, tensors: list[torch.Tensor]) -> torch.Tensor:
    flags, ragged, least, greatest = facts
    values, offsets, *lengths = tensors
    if offsets.dim() != 1 or offsets.numel() < 1 or values.dim() < ragged:
        raise NotAState("not a whole state: a nested tensor without offsets")
    reach, steps = values.shape[ragged - 1], offsets.diff()
    longest = lengths[0] if lengths else steps
    if int(offsets[0]) < 0 or bool((steps < 0).any()) or _far(offsets, longest) > reach:
        raise NotAState("not a whole state: a nested tensor reaches outside its values")
    made = torch.nested.nested_tensor_from_jagged(
        values, offsets, lengths[0] if lengths else None, jagged_dim=ragged, min_seqlen=least, max_seqlen=greatest
    )
    return made.requires_grad_() if flags & REQUIRES_GRAD else made


def _far(offsets: torch.Tensor, lengths: torch.Tensor) -> int:
    """Where the last element of a nested tensor ends."""
    return int((offsets[:-1] + lengths).max()) if lengths.numel() else int(offsets[-1])
