"""What `encode` takes, `decode` gives back, to the last bit, with the sharing of memory that it had."""

from __future__ import annotations

import random
import struct
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

import lastgood.models as lm
from lastgood.core import Store
from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.gather import BLOCK_BYTES
from lastgood.models.tensors import DTYPES
from tests.models.states import assert_same, states, tensor_bits, tensor_of


def there_and_back(state: Any) -> Any:
    return decode(encode(state).to_bytes()).state


@given(states())
def test_any_nested_state_comes_back_to_the_last_bit(state: Any) -> None:
    encoded = encode(state)
    payload = encoded.to_bytes()
    assert len(payload) == encoded.total_bytes
    assert_same(state, decode(payload).state)
    assert encode(decode(payload).state).to_bytes() == encode(there_and_back(state)).to_bytes()


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_with_every_byte_value(name: str) -> None:
    tensor = tensor_of(bytes(range(256)), DTYPES[name], [4, 64])
    state = {"t": tensor, "zero": tensor[:0], "scalar": tensor[1, 1]}
    assert_same(state, there_and_back(state))


@pytest.mark.parametrize("bits", [0x7FF8000000000001, 0xFFF0000000000000, 0x8000000000000000, 0x7FF0DEADBEEF0001, 1])
def test_floats_keep_their_bits(bits: int) -> None:
    value = struct.unpack(">d", struct.pack(">Q", bits))[0]
    assert struct.pack(">d", there_and_back(value)) == struct.pack(">Q", bits)


def test_numbers_text_and_keys_of_every_kind() -> None:
    state = {
        "huge": [10**5000, -(10**5000), 2**64, -(2**64), 2**63],
        "text": ["", "\ud83d\ude00", "\ud83d" + "\ude00", "\x00", "é"],
        (1, ("a", None)): True,
        1.5: False,
        None: b"",
        b"key": {frozenset({1, "a"}): set()},
        -0.0: (),
    }
    assert_same(state, there_and_back(state))


def test_random_streams_of_all_three_libraries() -> None:
    state = {
        "python": random.Random(3).getstate(),
        "numpy": np.random.RandomState(3).get_state(),
        "numpy_new": np.random.default_rng(3).bit_generator.state,
        "torch": torch.Generator().manual_seed(3).get_state(),
    }
    assert_same(state, there_and_back(state))


def test_layouts_keep_their_strides() -> None:
    state = {
        "channels_last": torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last),
        "turned": torch.randn(7, 11).t(),
        "permuted": torch.randn(2, 3, 4).permute(2, 0, 1),
        "expanded": torch.tensor([2.5]).expand(1000, 1000),
    }
    encoded = encode(state)
    restored = decode(encoded.to_bytes()).state
    assert_same(state, restored)
    assert {name: t.stride() for name, t in state.items()} == {name: t.stride() for name, t in restored.items()}
    assert encoded.total_bytes < 4000, "an expanded tensor costs its one element"


def test_a_small_view_costs_its_own_bytes_not_its_storage() -> None:
    """Saving the first row of an embedding wrote the whole table of it: 33.6 MB for 0.13 MB of values."""
    base = torch.arange(2048 * 1024.0).reshape(2048, 1024)
    state = {"row": base[0], "rows": base[::500], "columns": base[:2, 5:7], "late": base[2000:]}
    encoded = encode(state)
    assert encoded.total_bytes < 6 * 4096 + 48 * 4096 + 4096
    assert_same(state, decode(encoded.to_bytes()).state)


def test_tied_weights_are_saved_once_and_tied_again() -> None:
    embedding = torch.nn.Embedding(257, 33)
    head = torch.nn.Linear(33, 257, bias=False)
    head.weight = embedding.weight
    state = {"embedding": embedding.weight, "head": head.weight, "alias": embedding.weight.detach()}
    encoded = encode(state)
    restored = decode(encoded.to_bytes()).state
    assert encoded.total_bytes < embedding.weight.nbytes + 1024
    assert restored["embedding"] is restored["head"], "the same object is the same object again"
    restored["embedding"].data[3, 4] = 9.0
    assert restored["alias"][3, 4] == 9.0


def test_views_that_overlap_still_overlap() -> None:
    base = torch.arange(100.0)
    bytes_of_base = base.view(torch.uint8)
    state = {
        "a": base[10:30],
        "b": base[20:40],
        "grid": base[12:36].reshape(4, 6).t(),
        "every_second": base[10:40:2],
        "raw": bytes_of_base[37:90],  # begins in the middle of an element of the others
        "apart": base[60:],
    }
    restored = there_and_back(state)
    assert_same(state, restored)
    restored["a"][10:] = -1.0
    assert restored["b"][:10].eq(-1.0).all()
    assert restored["grid"].t().reshape(-1)[8:18].eq(-1.0).all()
    assert restored["every_second"][5:10].eq(-1.0).all()
    assert restored["raw"][-10:].tolist() == restored["a"].view(torch.uint8)[40:50].tolist()
    assert restored["apart"].untyped_storage().data_ptr() != restored["a"].untyped_storage().data_ptr()


def test_views_with_holes_are_packed_and_no_longer_shared() -> None:
    base = torch.arange(1000.0)
    state = {"a": base[::10], "again": base[::10], "b": base[::20]}
    restored = there_and_back(state)
    assert_same(state, restored)
    restored["a"][0] = -1.0
    assert restored["again"][0] == -1.0, "identical views share what was packed"
    assert restored["b"][0] == 0.0


def test_conjugate_and_negative_views_are_resolved() -> None:
    values = torch.tensor([1 + 2j, 3 - 4j])
    state = {"conjugate": values.conj(), "negative": values.conj().imag}
    restored = there_and_back(state)
    assert restored["conjugate"].tolist() == [1 - 2j, 3 + 4j]
    assert restored["negative"].tolist() == [-2.0, 4.0]


def test_parameters_and_gradients_wanted() -> None:
    inner = torch.ones(2, requires_grad=True)
    state = {"frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False), "leaf": inner, "made": inner * 2}
    restored = there_and_back(state)
    assert_same(state, restored)
    assert restored["made"].is_leaf, "the graph is not part of the state"


def test_a_modules_state_keeps_its_version_metadata() -> None:
    state = torch.nn.BatchNorm1d(3).state_dict()
    restored = there_and_back(state)
    assert type(restored) is OrderedDict
    assert restored._metadata == state._metadata
    assert restored._metadata[""]["version"] == 2


def test_schedulers_and_optimizers_of_torch() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(2))]
    rates = torch.optim.lr_scheduler

    def sgd() -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    one = sgd()
    state = {
        "lambda": rates.LambdaLR(sgd(), lr_lambda=lambda epoch: 0.95**epoch).state_dict(),
        "milestones": rates.MultiStepLR(sgd(), [2, 3]).state_dict(),
        "cycle": rates.OneCycleLR(sgd(), max_lr=0.5, total_steps=10).state_dict(),
        "two": rates.SequentialLR(one, [rates.ConstantLR(one), rates.ExponentialLR(one, 0.9)], [2]).state_dict(),
        "unstepped": torch.optim.AdamW(parameters).state_dict(),
        "scaler": torch.amp.GradScaler("cpu", init_scale=256.0).state_dict(),
    }
    assert_same(state, there_and_back(state))


def test_very_many_tiny_tensors_make_few_buffers() -> None:
    state = {f"block.{number}": torch.full((3,), float(number)) for number in range(5000)}
    encoded = encode(state)
    buffers = list(encoded.buffers())
    assert len(buffers) <= encoded.total_bytes // BLOCK_BYTES + 2
    assert_same(state, decode(b"".join(map(bytes, buffers))).state)


def test_large_tensors_are_handed_over_without_a_copy() -> None:
    tensor = torch.zeros(100_000)
    buffers = [np.frombuffer(memoryview(buffer), np.uint8) for buffer in encode({"t": tensor}).buffers()]
    tensor.fill_(1.0)
    assert buffers[1].nbytes == tensor.nbytes
    assert buffers[1].view(np.float32)[7] == 1.0


def test_restored_memory_belongs_to_nobody_else(tmp_path: Any) -> None:
    """Changing what was restored changes neither the payload that was read nor another restored copy."""
    state = {"t": torch.arange(1000.0), "a": np.arange(1000.0), "b": bytearray(b"x" * 100), "small": torch.ones(1)}
    payload = bytearray(encode(state).to_bytes())
    before = bytes(payload)
    first, second = decode(payload).state, decode(payload).state
    first["t"].zero_(), first["a"].fill(0), first["b"].clear(), first["small"].zero_()
    assert payload == before
    assert_same(state, second)
    payload[:] = bytes(len(payload))
    assert_same(state, second)


def test_storages_can_still_be_resized_before_and_after() -> None:
    """Viewing a live tensor with `Tensor.numpy` made its storage fixed for good; sharded training resizes storages."""
    tensor = torch.arange(10_000.0)
    restored = there_and_back({"t": tensor})["t"]
    for each in (tensor, restored):
        each.untyped_storage().resize_(80_000)
        assert each[9_999] == 9_999.0


def test_a_read_only_payload_gives_writable_values() -> None:
    restored = there_and_back({"t": torch.ones(3), "a": np.ones(3)})
    restored["t"] += 1
    restored["a"] += 1


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 16383, 16384, 16385, 1_000_000])
def test_through_a_store(tmp_path: Any, size: int) -> None:
    state = {
        "t": torch.arange(size, dtype=torch.int32).to(torch.uint8),
        "between": "x" * (size % 300),
        "after": b"end" * size,
    }
    record = lm.save(tmp_path / "store", state, step=5)
    assert record.step == 5
    assert_same(state, lm.load(tmp_path / "store"))
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert_same(tensor_bits(state["t"]), tensor_bits(decode(store.read()).state["t"]))
