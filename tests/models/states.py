"""Nested states for the tests of this folder: what can be drawn, and when two of them are the same to the last bit."""

from __future__ import annotations

import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from lastgood.models.tensors import COMPUTED, DTYPES, INTEGER_OF_BYTES

ARRAY_DTYPES = (
    "?",
    "<i1",
    "<u2",
    ">i4",
    "<i8",
    "<f2",
    "<f4",
    ">f8",
    "<c8",
    "<c16",
    "<U3",
    "|S5",
    "<M8[ns]",
    "<m8[s]",
    "<V3",
)


def assert_same(here: Any, there: Any, path: str = "state") -> None:
    """Types, order of keys, shapes, dtypes and bits are the same all the way down."""
    assert type(here) is type(there), f"{path}: {type(here)} became {type(there)}"
    if isinstance(here, torch.Tensor) and (here.layout is not torch.strided or here.is_quantized):
        assert_same(facts_of(here), facts_of(there), path)
    elif isinstance(here, torch.Tensor):
        assert (here.dtype, here.shape) == (there.dtype, there.shape), path
        assert here.requires_grad == there.requires_grad, path
        assert tensor_bits(here) == tensor_bits(there), path
    elif isinstance(here, np.ndarray | np.generic):
        assert (here.dtype, here.shape) == (there.dtype, there.shape), path
        assert here.dtype.isalignedstruct == there.dtype.isalignedstruct, path
        assert here.tobytes() == there.tobytes(), path
    elif isinstance(here, dict):
        assert len(here) == len(there), path
        assert getattr(here, "default_factory", None) is getattr(there, "default_factory", None), path
        for (our_key, ours), (their_key, theirs) in zip(here.items(), there.items(), strict=True):
            assert_same(our_key, their_key, f"{path}, a key")
            assert_same(ours, theirs, f"{path}[{our_key!r}]")
    elif isinstance(here, list | tuple | deque):
        assert len(here) == len(there), path
        assert getattr(here, "maxlen", None) == getattr(there, "maxlen", None), path
        for position, (ours, theirs) in enumerate(zip(here, there, strict=True)):
            assert_same(ours, theirs, f"{path}[{position}]")
    elif isinstance(here, float):
        assert struct.pack("d", here) == struct.pack("d", there), path
    elif isinstance(here, complex):
        assert struct.pack("dd", here.real, here.imag) == struct.pack("dd", there.real, there.imag), path
    elif isinstance(here, Decimal):
        assert str(here) == str(there), path  # a NaN is not equal to itself
    else:
        assert here == there, path


def facts_of(tensor: torch.Tensor) -> list[Any]:
    """What a tensor that is not strided consists of."""
    facts: list[Any] = [tensor.layout, tensor.dtype, tensor.requires_grad, tensor.is_quantized]
    plain = tensor.detach()
    if tensor.is_quantized and tensor.qscheme() is torch.per_tensor_affine:
        return [*facts, plain.int_repr(), plain.q_scale(), plain.q_zero_point()]
    if tensor.is_quantized:
        axis, scales, zeros = (
            plain.q_per_channel_axis(),
            plain.q_per_channel_scales(),
            plain.q_per_channel_zero_points(),
        )
        return [*facts, plain.int_repr(), axis, scales, zeros, str(plain.qscheme())]
    if tensor.layout is torch.sparse_coo:
        return [*facts, plain.shape, plain.is_coalesced(), plain._indices(), plain._values()]
    if tensor.layout is torch.jagged:
        return [*facts, tensor._ragged_idx, plain.values(), plain.offsets(), plain.lengths()]
    column = tensor.layout in (torch.sparse_csc, torch.sparse_bsc)
    indices = [plain.ccol_indices(), plain.row_indices()] if column else [plain.crow_indices(), plain.col_indices()]
    return [*facts, plain.shape, *indices, plain.values()]


def tensor_bits(tensor: torch.Tensor) -> bytes:
    """The values of a tensor as bytes, in row-major order, whatever its dtype and strides."""
    plain = tensor.detach()
    packed = (plain if plain.dtype in COMPUTED else plain.view(INTEGER_OF_BYTES[plain.itemsize])).contiguous()
    raw = torch.empty(0, dtype=torch.uint8)
    raw.set_(packed.untyped_storage(), packed.storage_offset() * packed.itemsize, (packed.nbytes,), (1,))
    return raw.numpy().tobytes()


def tensor_of(data: bytes, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """A contiguous tensor of exactly these bits."""
    size = math.prod(shape) * dtype.itemsize
    raw = torch.tensor(list((data * (size // max(len(data), 1) + 1))[:size]), dtype=torch.uint8)
    if dtype == torch.bool:
        raw &= 1
    return torch.empty(0, dtype=dtype).set_(raw.untyped_storage(), 0, shape)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Every dtype, up to four dimensions, in the layouts that training meets."""
    dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    tensor = tensor_of(draw(st.binary(min_size=1, max_size=40)), dtype, shape)
    layout = draw(st.sampled_from(["contiguous", "turned", "holes", "tail", "expanded", "grad", "parameter"]))
    if layout == "turned":
        tensor = tensor.permute(tuple(reversed(range(tensor.dim()))))
    elif layout == "holes" and shape:
        tensor = tensor[..., ::2]
    elif layout == "tail" and shape:
        tensor = tensor[1:]
    elif layout == "expanded":
        tensor = tensor.unsqueeze(0).expand(3, *tensor.shape)
    elif tensor.is_floating_point() and tensor.dtype.itemsize > 1:
        tensor = {"grad": tensor.requires_grad_, "parameter": lambda: torch.nn.Parameter(tensor)}.get(
            layout, lambda: tensor
        )()
    return tensor


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = np.dtype(draw(st.sampled_from(ARRAY_DTYPES)))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    array = np.zeros(shape, dtype)
    if dtype.kind not in "US":
        array = np.frombuffer(draw(st.binary(min_size=array.nbytes, max_size=array.nbytes)), dtype).reshape(shape)
        array = array if dtype.kind != "b" else array.view(np.uint8) % 2 == 1
    else:
        array[...] = draw(st.text("ab", max_size=3))
    return draw(st.sampled_from([array, array.T, np.asfortranarray(array), array[..., ::2] if shape else array]))


def floats() -> st.SearchStrategy[float]:
    """Every 64-bit pattern, so also negative zero and NaNs with a payload."""
    return st.binary(min_size=8, max_size=8).map(lambda data: struct.unpack("d", data)[0]) | st.floats()


def texts() -> st.SearchStrategy[str]:
    """Any text, lone surrogates too."""
    return st.text(st.characters(exclude_categories=()), max_size=5)


def atoms() -> st.SearchStrategy[Any]:
    """Values that can be keys and members of sets."""
    ints = st.integers() | st.integers(-(2**70), 2**70)
    return st.none() | st.booleans() | ints | st.floats(allow_nan=False) | texts() | st.binary(max_size=5)


def leaves() -> st.SearchStrategy[Any]:
    sizes = st.lists(st.integers(0, 9), max_size=3).map(torch.Size)
    scalars = arrays().filter(lambda array: array.size > 0).map(lambda array: array.reshape(-1)[0])
    complexes = st.tuples(floats(), floats()).map(lambda pair: complex(*pair))
    kinds = st.sampled_from([torch.float32, torch.device("cpu"), torch.device("cuda", 1)])
    times = st.datetimes(timezones=st.none() | st.timezones()) | st.dates() | st.times() | st.timedeltas()
    small = times | st.fractions() | st.decimals() | st.uuids() | texts().map(PurePosixPath)
    return (
        small
        | atoms()
        | floats()
        | complexes
        | st.binary().map(bytearray)
        | tensors()
        | arrays()
        | scalars
        | sizes
        | kinds
    )


def states() -> st.SearchStrategy[Any]:
    """Nested states of every type that can be saved."""
    keys = st.recursive(atoms(), lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=3)

    def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        mappings = st.dictionaries(texts(), inner, max_size=4) | st.dictionaries(keys, inner, max_size=3)
        sequences = st.lists(inner, max_size=4)
        queues = st.builds(deque, sequences, st.none() | st.integers(0, 5))
        defaults = st.builds(defaultdict, st.sampled_from([None, list, int, OrderedDict]), mappings)
        return mappings | mappings.map(OrderedDict) | sequences | sequences.map(tuple) | queues | defaults

    sets = st.sets(atoms(), max_size=3)
    others = sets | sets.map(frozenset) | st.dictionaries(atoms(), st.integers(), max_size=3).map(Counter)
    return st.recursive(leaves() | others, containers, max_leaves=12)
