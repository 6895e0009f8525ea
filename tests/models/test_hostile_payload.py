"""Loading believes nothing in a file and runs nothing from it (promise `never-wrong`)."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lastgood.models as lm
from lastgood.core import FormatTooNew, Store, StoreError
from lastgood.models import skeleton
from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.errors import NotAState
from tests.models.states import assert_same


def payload_with(text: str, regions: bytes = b"", version: int = skeleton.VERSION) -> bytes:
    """A payload with any skeleton, its header right."""
    data = text.encode()
    regions += bytes(-len(regions) % skeleton.ALIGNMENT)
    header = skeleton.Header(len(data), len(regions), version)
    return header.pack() + data + bytes(-len(data) % skeleton.ALIGNMENT) + regions


def skeleton_of(state: Any, regions: Any = (), tensors: Any = ((), ()), kinds: Any = ()) -> str:
    return json.dumps(
        {"state": state, "extra": None, "kinds": kinds, "tensors": tensors, "regions": list(regions)}, default=list
    )


ROWS: list[Any] = [
    ["float32", [17], 0],
    ["float32", [4, 4], 0, 1, None, 0],
    ["float32", [2, 2], 0, 0, [16, 1], 0],
    ["float32", [2**62, 4], 0],
    ["float32", [2**40], 0, 0, [2**40], 0],
    ["float32", [-1], 0],
    ["float32", [4], 1],
    ["float32", [4], -1],
    ["float32", [4], 0, -1, None, 0],
    ["float32", [4, 4], 0, 0, [-1, 1], 0],
    ["float32", [4, 4], 0, 0, [1], 0],
    ["float32", [True], 0],
    ["float32", [1.0], 0],
    ["float32", "4", 0],
    ["float33", [4], 0],
    ["qint8", [4], 0],
    [None, [4], 0],
    ["float32", [4]],
    ["float32", [4], 0, 0],
    "float32",
    None,
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_tensor_never_reaches_outside_its_region(row: Any) -> None:
    text = skeleton_of(["T", 0], [64], [row])
    with pytest.raises(NotAState):
        decode(payload_with(text, bytes(64), version=2))
    if type(row) is list and len(row) in (3, 6):
        dtype, shape, region, *rest = row
        kind = [dtype, shape, *(rest or (0, None, 0))]
        for node in (["T", 0], ["TT", 0, "key"], ["o", ["TT", 0, "key"]]):
            with pytest.raises(NotAState):
                decode(payload_with(skeleton_of(node, [64], [[0], [region]], [kind]), bytes(64)))


KIND = ["float32", [4], 0, None, 0]
TABLES: list[tuple[Any, Any]] = [
    ([[1], [0]], [KIND]),
    ([[-1], [0]], [KIND]),
    ([[0], [1]], [KIND]),
    ([[0], [-1]], [KIND]),
    ([["0"], [0]], [KIND]),
    ([[0], [2**70]], [KIND]),
    ([[0], [0.0]], [KIND]),
    ([[0], [[0]]], [KIND]),
    ([[0], []], [KIND]),
    ([[], [0]], [KIND]),
    ([[0]], [KIND]),
    ([[0], [0]], [KIND[:4]]),
    ([[0], [0]], [None]),
    ([[0], [0]], []),
    ([[0], [0]], [["float32", [2**61, 2**61], 0, None, 0]]),
    ([[0], [0]], [["float32", [2**62, 4, 2**62], 0, None, 0]]),
    ([0, 0], [KIND]),
    (None, [KIND]),
]


@pytest.mark.parametrize(("tensors", "kinds"), TABLES, ids=range(len(TABLES)))
def test_a_table_of_tensors_that_makes_no_sense_is_not_a_state(tensors: Any, kinds: Any) -> None:
    for node in (["T", 0], ["TT", 0, "key"]):
        with pytest.raises(NotAState):
            decode(payload_with(skeleton_of(node, [64], tensors, kinds), bytes(64)))


@pytest.mark.parametrize(
    "node", [["TT", 0, "a", "b"], ["TT", 1, "a"], ["TT", -1, "a"], ["TT", 0, 7], ["TT"], ["TT", "0"]]
)
def test_a_run_of_tensors_stays_within_the_table(node: Any) -> None:
    table = {"tensors": [[0], [0]], "kinds": [["float32", [16], 0, None, 0]]}
    assert decode(payload_with(skeleton_of(["TT", 0, "a"], [64], **table), bytes(64))).state["a"].shape == (16,)
    with pytest.raises(NotAState):
        decode(payload_with(skeleton_of(node, [64], **table), bytes(64)))
    twice = {"tensors": [[0, 0], [0, 0]], "kinds": table["kinds"]}
    with pytest.raises(NotAState):
        decode(payload_with(skeleton_of(["TT", 0, "a", "a"], [64], **twice), bytes(64)))


NODES: list[Any] = [
    ["T", 0],
    ["T", -1],
    ["b", 0],
    ["b", "0"],
    ["a", "O", [1], "C", 0],
    ["a", "<f4,<f4", [1], "C", 0],
    ["a", "|V8", [1], "C", 0],
    ["a", "<f4", [2**40], "C", 0],
    ["n", "O", "00"],
    ["n", "<f8", "00"],
    ["i", "0xzz"],
    ["f", "00"],
    ["dtype", "Tensor"],
    ["device", "nowhere"],
    ["d", 1],
    ["d", 1, 2, 1, 3],
    ["d", ["l"], 2],
    ["set", ["l"]],
    ["os.system", "true"],
    ["__class__"],
    [["l"]],
    [],
    [None],
]


@pytest.mark.parametrize("node", NODES, ids=str)
def test_a_node_that_makes_no_sense_is_not_a_state(node: Any) -> None:
    with pytest.raises(NotAState) as refusal:
        decode(payload_with(skeleton_of(node)))
    assert "\n" not in str(refusal.value)


TEXTS = [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"state": 1}',
    "[" * 100_000,
    skeleton_of(1, [64]),
    skeleton_of(1, [-1]),
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_skeleton_that_makes_no_sense_is_not_a_state(text: str) -> None:
    with pytest.raises(NotAState):
        decode(payload_with(text))


def test_lengths_are_held_against_the_payload() -> None:
    payload = encode({"t": torch.ones(100)}).to_bytes()
    for wrong in (payload[:-1], payload + b"\0", payload[:63], b"", payload[:64]):
        with pytest.raises(NotAState):
            decode(wrong)


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(1, 255))
def test_damage_that_passed_every_digest_still_raises_only_not_a_state(junk: bytes, position: int, flip: int) -> None:
    """The store's digests find damage first; this is for bytes that were written wrong."""
    state = {"t": torch.arange(10.0)[2:], "a": np.ones(3), "d": {1: (2.5, b"x")}, "n": np.float32(1)}
    good = encode(state).to_bytes()
    damaged = bytearray(good)
    damaged[position % len(good)] ^= flip
    for payload in (bytes(damaged), good[:64] + junk, junk):
        try:
            decode(payload)
        except (NotAState, FormatTooNew):
            continue


def test_a_later_format_is_told_from_damage_and_left_alone(tmp_path: Path) -> None:
    payload = bytearray(encode({"w": 1}).to_bytes())
    payload[8] = skeleton.VERSION + 1
    with Store.create(tmp_path / "store", slot_bytes=4096) as store:
        store.save(bytes(payload), step=1).wait()
    with pytest.raises(FormatTooNew, match=rf"format {skeleton.VERSION + 1}, .* up to {skeleton.VERSION}.*upgrade"):
        lm.load(tmp_path / "store")
    with pytest.raises(FormatTooNew), lm.Checkpointer(tmp_path / "store", {"w": 1}) as ckpt:
        ckpt.restore()


def test_bytes_that_are_not_a_state_are_told_from_damage(tmp_path: Path) -> None:
    with Store.create(tmp_path / "store", slot_bytes=4096) as store:
        store.save(b"somebody else's bytes, more than a header of them, which is sixty-four", step=1).wait()
    with pytest.raises(NotAState, match=r"store: not a saved state.*Store\.read"):
        lm.load(tmp_path / "store")


class Planted:
    """What a stranger would leave behind: unpickling it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_a_planted_pickle_is_never_run(tmp_path: Path) -> None:
    """Each file of the store in turn is replaced by a pickle that makes a directory when it is unpickled."""
    marker = tmp_path / "marker"
    planted = pickle.dumps(Planted(marker))
    lm.save(tmp_path / "store", {"w": torch.ones(3)})
    for path in sorted((tmp_path / "store").iterdir()):
        content = path.read_bytes()
        path.write_bytes(planted + content[len(planted) :])
        with contextlib.suppress(StoreError):
            assert_same({"w": torch.ones(3)}, lm.load(tmp_path / "store"))
        assert not marker.exists()
        path.write_bytes(content)
    with Store.open(tmp_path / "store") as store:
        store.continue_run()
        store.save(planted, step=1).wait()
    with pytest.raises(NotAState):
        lm.load(tmp_path / "store")
    assert not marker.exists()
    pickle.loads(planted)
    assert marker.exists(), "the trap works"


def test_no_module_of_this_room_uses_pickle() -> None:
    import lastgood.models

    for source in Path(lastgood.models.__file__).parent.glob("*.py"):
        assert "import pickle" not in source.read_text()
        text = source.read_text()
        assert text.count("torch.load(") == len(re.findall(r"torch\.load\([^()]*weights_only=True", text)), source


def test_any_flipped_bit_is_found_and_the_older_checkpoint_used(tmp_path: Path) -> None:
    older, newer = {"w": torch.zeros(5000)}, {"w": torch.ones(5000)}
    lm.save(tmp_path / "store", older, step=1)
    record = lm.save(tmp_path / "store", newer, step=2)
    slot = sorted((tmp_path / "store").glob("slot-*"))[record.slot]
    content = slot.read_bytes()
    draw = random.Random(0)
    for _ in range(20):
        damaged = bytearray(content)
        position = record.payload_offset + draw.randrange(record.payload_bytes)
        damaged[position] ^= 1 << draw.randrange(8)
        slot.write_bytes(damaged)
        assert_same(older, lm.load(tmp_path / "store"))
        with pytest.raises(StoreError):
            lm.load(tmp_path / "store", step=2)


def test_the_recursion_limit_is_left_alone() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(NotAState):
        decode(payload_with(skeleton_of(1).replace("1", "[" * 50_000 + "]" * 50_000)))
    assert sys.getrecursionlimit() == limit
