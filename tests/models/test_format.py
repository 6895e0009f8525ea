"""Saved states of every released format are read for ever, and a format does not change by accident."""

from __future__ import annotations

import base64
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.skeleton import ALIGNMENT, VERSION
from tests.models.states import assert_same

GOLDENS = sorted((Path(__file__).parent / "goldens").glob("state-*.txt"))


def golden_state() -> dict[str, Any]:
    """One value of every kind."""
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


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_states_of_released_formats_are_read_for_ever(path: Path) -> None:
    assert_same(golden_state(), decode(base64.b64decode(path.read_text())).state)


def test_the_present_format_is_among_them() -> None:
    payload = encode(golden_state(), extra={"kinds": {}, "streams": None}).to_bytes()
    kept = base64.b64decode((Path(__file__).parent / "goldens" / f"state-{VERSION}.txt").read_text())
    assert payload == kept, "the bytes of the format changed: raise VERSION and keep the old golden"


def test_regions_lie_at_multiples_of_the_alignment() -> None:
    encoded = encode(golden_state())
    assert encoded.total_bytes % ALIGNMENT == 0
    assert len(encoded.head) % ALIGNMENT == 0
    payload = encode({"t": torch.full((100,), 0x41, dtype=torch.uint8)}).to_bytes()
    assert payload.index(b"A" * 100) % ALIGNMENT == 0
