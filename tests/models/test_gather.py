"""Many small regions become few buffers, byte for byte, compiled or not, and nothing of a state outlives its save."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lastgood.models as lm
from lastgood.core.jit import JIT
from lastgood.core.memory import MemoryDirectory
from lastgood.models import gather
from lastgood.models.capture import SMALL_BYTES
from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.skeleton import ALIGNMENT
from tests.models.states import assert_same


@pytest.mark.parametrize("copy", ["compiled", "interpreted"])
def test_copies_by_address_go_where_they_should_and_nowhere_else(copy: str) -> None:
    if copy == "compiled" and not JIT:
        pytest.skip("the JIT is off")
    draw = random.Random(1)
    lengths = [draw.choice((0, 1, 7, 64, 1000)) for _ in range(200)]
    source = np.random.default_rng(1).integers(1, 256, sum(lengths), dtype=np.uint8)
    target = np.zeros(sum(lengths) + 200, np.uint8)
    starts = np.cumsum([0, *lengths[:-1]])
    order = list(range(200))
    draw.shuffle(order)
    places = np.zeros(200, np.int64)
    for gap, index in enumerate(order):  # in another order, one byte between two of them
        places[index] = sum(lengths[earlier] for earlier in order[:gap]) + gap
    arguments = [target.ctypes.data + places, source.ctypes.data + starts, lengths]
    getattr(gather, f"_copy_{copy}")(*(np.asarray(each, np.uint64) for each in arguments))
    for place, start, length in zip(places, starts, lengths, strict=True):
        assert target[place : place + length].tobytes() == source[start : start + length].tobytes()
        assert target[place + length] == 0


@given(st.lists(st.sampled_from([0, 1, 12, 63, 64, 65, 4000, SMALL_BYTES - 1, SMALL_BYTES, SMALL_BYTES + 1, 40_000])))
def test_the_buffers_are_the_regions_one_after_another_each_padded(lengths: list[int]) -> None:
    regions = [np.full(length, 1 + number % 255, np.uint8) for number, length in enumerate(lengths)]
    expected = b"".join(each.tobytes() + bytes(-each.size % ALIGNMENT) for each in regions)
    readers: list[Any] = []
    for number, each in enumerate(regions):
        by_address = 0 < each.size < SMALL_BYTES and number % 2 == 0
        readers.append(each.ctypes.data if by_address else lambda each=each: each)
    parts = list(gather.parts_of(lengths, readers))
    buffers = [bytes(memoryview(read())) for _, read in parts]
    assert [len(buffer) for buffer in buffers] == [length for length, _ in parts]
    assert b"".join(buffers) == expected


def test_blocks_are_of_about_a_megabyte_whatever_there_is() -> None:
    encoded = encode({f"p{number}": torch.ones(number % 4000) for number in range(3000)})
    small = [length for length in encoded.lengths if length < 2**30]
    assert len(small) < 40
    assert max(small) < gather.BLOCK_BYTES + SMALL_BYTES + ALIGNMENT


@pytest.mark.parametrize("number", [1, 2, 2000])
def test_restored_tensors_have_memory_of_their_own_of_just_their_size(number: int) -> None:
    state = {f"p{index}": torch.full((3, 2), float(index)) for index in range(number)}
    restored = decode(encode(state).to_bytes()).state
    assert len({each.untyped_storage().data_ptr() for each in restored.values()}) == number
    for each in restored.values():
        assert each.untyped_storage().nbytes() == each.nbytes
        assert each.storage_offset() == 0
        assert each.untyped_storage().resizable()
    assert_same(state, restored)


def test_nothing_of_a_state_outlives_its_save() -> None:
    """Host memory grew with each save until the job was killed: what a save had held waited for the cycle collector."""
    directory: Any = MemoryDirectory()
    lm.save(directory, {"w": torch.ones(3)})
    gc.collect()
    gc.disable()
    try:
        state: Any = {"small": {"a": torch.ones(3), "b": torch.ones(4)}, "large": torch.ones(100_000), "n": [1]}
        held = [weakref.ref(each) for each in (*state["small"].values(), state["large"])]
        lm.save(directory, state)
        del state
        assert [each() for each in held] == [None] * 3
        restored = lm.load(directory)
        held = [weakref.ref(restored["large"]), weakref.ref(restored["small"]["a"])]
        del restored
        assert [each() for each in held] == [None] * 2
    finally:
        gc.enable()


def test_two_storages_of_other_libraries_at_one_address_are_shared_again() -> None:
    memory = np.arange(64, dtype=np.float32)
    state = {"front": torch.from_numpy(memory[:16]), "all": torch.from_numpy(memory)}
    encoded = encode(state)
    restored = decode(encoded.to_bytes()).state
    assert_same(state, restored)
    restored["all"][3] = -1.0
    assert restored["front"][3] == -1.0
    assert sum(encoded.lengths) == memory.nbytes
