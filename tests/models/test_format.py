"""Saved states of every released format are read for ever, and a format does not change by accident."""

from __future__ import annotations

import base64
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
import torch

from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.skeleton import ALIGNMENT, VERSION, VERSION_WITHOUT_SHARED
from tests.models.states import assert_same

GOLDENS = Path(__file__).parent / "goldens"


def state_1() -> dict[str, Any]:
    """One value of every kind of format 1."""
    base = torch.arange(24, dtype=torch.int32)
    module = torch.nn.Linear(2, 1).state_dict()
    module["weight"].copy_(torch.tensor([[0.5, -0.5]]))
    module["bias"].copy_(torch.tensor([0.25]))
    return {
        "plain": [None, True, False, 0, -7, 2**70, 0.1, -0.0, float("inf"), 1 - 2j, "text", "\ud800", b"bytes"],
        "containers": ((), [], {}, {1: {(2, None): "x"}}, OrderedDict(a=1), Counter(a=2), {1}, frozenset({"a"})),
        "module": module,
        "views": [base[:8], base[4:12].reshape(2, 4).t(), base[12:13].expand(5), base[::6]],
        "dtypes": [torch.ones(2, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.float8_e5m2), torch.tensor(True)],
        "wanted": torch.nn.Parameter(torch.ones(1), requires_grad=False),
        "arrays": [np.arange(6.0).reshape(2, 3).T, np.float32(0.5), np.array(["a", "bc"]), np.array([], ">i2")],
        "rest": [bytearray(b"ab"), torch.Size([2, 3]), torch.int64, torch.device("cuda", 1)],
    }


def state_2() -> dict[str, Any]:
    """What format 2 added."""
    pair = np.zeros(1, np.dtype([("number", "<i4"), ("share", "<f8")], align=True))  # the padding is zero as well
    pair[0] = (1, 0.5)
    coo = torch.sparse_coo_tensor(torch.tensor([[0, 1, 0], [2, 0, 2]]), torch.tensor([1.0, 2.0, 3.0]), (2, 3))
    return state_1() | {
        "more containers": [deque([1, 2], 5), defaultdict(list, a=[1]), defaultdict(None, {1: 2})],
        "structures": [pair, pair[0], pair.dtype],
        "small": [PurePosixPath("a/b"), date(2024, 2, 29), timedelta(1, 2, 3), Fraction(1, 3), range(3), torch.strided],
        "time": datetime(2024, 2, 29, 1, 2, 3, 4, timezone(timedelta(hours=-2)), fold=1),
        "sparse": [coo, coo.coalesce(), torch.eye(2).to_sparse_csc()],
        "quantised": torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.25, 3, torch.qint8),
        "bare": torch.zeros(2, dtype=torch.uint8).view(torch.uint4),
    }


def state_3() -> dict[str, Any]:
    """What format 3 added: dicts of tensors as one node, kinds that many tensors share."""
    tensors = {f"p{number}": torch.full((2,), float(number)) for number in range(3)}
    module = OrderedDict(a=torch.ones(1), b=torch.zeros(2, 0))
    return state_2() | {
        "run": tensors,
        "ordered run": module,
        "default run": defaultdict(list, x=torch.ones(1), y=torch.ones(2)),
        "the same again": [tensors["p1"], {"one": tensors["p0"], "other": torch.ones(2)}],
        "gradients": {"a": torch.ones(1, requires_grad=True), "b": torch.ones(1)},
    }


def state_4() -> dict[str, Any]:
    """What format 4 added: values that are reached again. A state without them is written in format 3."""
    steps, run, array = [1, 2], {"x": torch.ones(1), "y": torch.zeros(2)}, np.arange(3.0)
    inner = {"steps": steps, "run": run}
    again = {"first": inner, "again": [inner, steps, run, array, array], "module": OrderedDict(steps=steps)}
    return state_3() | again | {"bytes": [data := bytearray(b"ab"), data]}


STATES = {1: state_1, 2: state_2, 3: state_3, 4: state_4}
"""One for every released format. A new format gets a new state and a new golden; the old ones stay."""


@pytest.mark.filterwarnings("ignore")  # torch calls some of these layouts unfinished
@pytest.mark.parametrize("version", STATES)
def test_states_of_released_formats_are_read_for_ever(version: int) -> None:
    assert_same(STATES[version](), decode(base64.b64decode((GOLDENS / f"state-{version}.txt").read_text())).state)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", [VERSION_WITHOUT_SHARED, VERSION])
def test_the_present_formats_are_among_them(version: int) -> None:
    payload = encode(STATES[version](), extra={"kinds": {}, "streams": None}).to_bytes()
    kept = base64.b64decode((GOLDENS / f"state-{version}.txt").read_text())
    assert payload == kept, "the bytes of the format changed: raise VERSION and keep the old golden"


def test_regions_lie_at_multiples_of_the_alignment() -> None:
    encoded = encode(state_1())
    assert encoded.total_bytes % ALIGNMENT == 0
    assert len(encoded.head) % ALIGNMENT == 0
    payload = encode({"t": torch.full((100,), 0x41, dtype=torch.uint8)}).to_bytes()
    assert payload.index(b"A" * 100) % ALIGNMENT == 0
