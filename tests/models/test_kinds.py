"""Values beyond numbers, text, lists and dense tensors: each comes back equal in type and bits, or is refused by key."""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import pathlib
import random
import uuid
import zoneinfo
from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest
import torch

from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.errors import NotAState, NotPlainData
from lastgood.models.regions import starts_of
from lastgood.models.skeleton import read_header
from tests.models.states import assert_same
from tests.models.test_hostile_payload import payload_with, skeleton_of

pytestmark = pytest.mark.filterwarnings("ignore")  # torch calls some of these layouts unfinished

UTC = datetime.UTC
RECORD = np.dtype([("a", "<i4"), ("b", "<f8", (2, 3)), ("c", [("x", "S3"), ("y", "<M8[s]")])])


def there_and_back(state: Any) -> Any:
    return decode(encode(state).to_bytes()).state


SMALL: list[Any] = [
    range(3, 30, 4),
    slice(1, None, 2),
    decimal.Decimal("-0.10E+5"),
    fractions.Fraction(-3, 7),
    uuid.UUID(int=5),
    pathlib.Path("/a/b c"),
    pathlib.PurePosixPath("rel"),
    pathlib.PureWindowsPath("C:/x"),
    datetime.date(2024, 2, 29),
    datetime.time(1, 2, 3, 4, tzinfo=UTC, fold=1),
    datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
    datetime.datetime(2024, 10, 27, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    datetime.timezone(datetime.timedelta(hours=5, minutes=30), "IST"),
    datetime.timedelta(-1, 5, 6),
    torch.sparse_csr,
    torch.channels_last,
    deque([1, [2]], maxlen=4),
    defaultdict(list, a=[1]),
    np.dtype("<f4"),
    RECORD,
    np.zeros(3, RECORD),
    np.zeros(3, RECORD)[1],
    np.zeros((4, 2), RECORD)[::2],
    np.zeros(2, np.dtype({"names": ["a"], "formats": ["<i2"], "offsets": [4], "itemsize": 16})),
    np.void(b"abc"),
    np.longdouble(1) / 3,
]


@pytest.mark.parametrize("value", SMALL, ids=lambda value: type(value).__name__)
def test_small_values(value: Any) -> None:
    restored = there_and_back({"value": [value]})["value"][0]
    assert_same(value, restored)
    if isinstance(value, datetime.datetime | datetime.time):
        assert (value.fold, value.tzinfo) == (restored.fold, restored.tzinfo)


def test_a_restored_default_dict_makes_values_again() -> None:
    restored = there_and_back(defaultdict(list))
    restored["new"].append(1)
    assert restored == {"new": [1]}


def test_generators_go_on_where_they_were() -> None:
    made: list[tuple[Any, Any]] = [
        (random.Random(3), lambda g: [g.random(), g.gauss(0, 1)]),
        (np.random.default_rng(3), lambda g: [g.random(), *g.spawn(1)[0].random(2)]),
        (np.random.Generator(np.random.Philox(3)), lambda g: [g.random()]),
        (np.random.RandomState(3), lambda g: [g.rand(), g.randn()]),
        (torch.Generator().manual_seed(3), lambda g: torch.rand(2, generator=g).tolist()),
    ]
    for generator, draw in made:
        draw(generator)
        restored = there_and_back(generator)
        assert type(restored) is type(generator)
        assert draw(restored) == draw(generator)


def layouts() -> dict[str, torch.Tensor]:
    indices, values = torch.tensor([[0, 1, 1, 0], [2, 0, 0, 2]]), torch.tensor([1.0, 2.0, float("nan"), -0.0])
    coo = torch.sparse_coo_tensor(indices, values, (3, 4))
    rows = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    scales, zeros = torch.tensor([0.1, 0.2, 0.5]), torch.tensor([1, 2, 3])
    return {
        "uncoalesced": coo,
        "coalesced": coo.coalesce(),
        "hybrid": torch.sparse_coo_tensor(indices[:1], torch.ones(4, 2), (3, 2)),
        "no elements": torch.sparse_coo_tensor(size=(3, 0)),
        "grad": coo.clone().requires_grad_(),
        "csr": torch.eye(5).to_sparse_csr(),
        "csc": rows.to_sparse_csc(),
        "bsr": torch.eye(4).to_sparse_bsr((2, 2)),
        "bsc": torch.eye(4).to_sparse_bsc((2, 1)),
        "batch": torch.stack([torch.eye(3), torch.eye(3)]).to_sparse_csr(),
        "half": torch.eye(2, dtype=torch.bfloat16).to_sparse(),
        "quantised": torch.quantize_per_tensor(rows, 0.1, 3, torch.quint8),
        "quantised 32": torch.quantize_per_tensor(rows, 0.1, 0, torch.qint32),
        "by channel": torch.quantize_per_channel(rows, scales, zeros, 0, torch.qint8),
        "by float channel": torch.quantize_per_channel(rows, scales, zeros.float(), 0, torch.quint8),
        "jagged": torch.nested.nested_tensor([torch.ones(3, 4), torch.zeros(2, 4)], layout=torch.jagged),
        "jagged with holes": torch.nested.nested_tensor_from_jagged(
            torch.arange(10.0), torch.tensor([0, 4, 10]), torch.tensor([3, 2])
        ),
    }


@pytest.mark.parametrize("name", layouts())
def test_layouts_that_are_not_strided(name: str) -> None:
    tensor = layouts()[name]
    restored = there_and_back({"moment": tensor})["moment"]
    assert_same({"moment": tensor}, {"moment": restored})


def test_a_sparse_parameter_is_one_again_and_shares_what_it_shared() -> None:
    values = torch.ones(1)
    sparse = torch.sparse_coo_tensor(torch.tensor([[0], [1]]), values, (2, 2))
    state = {"values": sparse._values(), "sparse": torch.nn.Parameter(sparse)}
    restored = there_and_back(state)
    assert type(restored["sparse"]) is torch.nn.Parameter
    restored["values"].fill_(7.0)
    assert restored["sparse"].detach().to_dense()[0, 1] == 7.0


def tampered(tensor: torch.Tensor, part: int, values: list[Any]) -> bytes:
    """The payload of a tensor, with the values of one of its parts replaced."""
    payload = bytearray(encode(tensor).to_bytes())
    header = read_header(memoryview(payload))
    skeleton = json.loads(payload[64 : 64 + header.skeleton_bytes])
    region = skeleton["tensors"][1][skeleton["state"][2:][part][1]]
    start = starts_of(skeleton["regions"], header)[region]
    data = torch.tensor(values).numpy().tobytes()
    payload[start : start + len(data)] = data
    return bytes(payload)


@pytest.mark.parametrize(
    ("name", "part", "values"),
    [
        ("uncoalesced", 0, [0, 99]),
        ("uncoalesced", 0, [-1]),
        ("coalesced", 0, [1, 0]),
        ("csr", 0, [0, 99]),
        ("csc", 1, [99]),
        ("jagged", 1, [0, 99, 5]),
        ("jagged", 1, [3, 0, 5]),
        ("jagged with holes", 2, [99, 1]),
    ],
)
def test_indices_that_point_outside_are_never_handed_out(name: str, part: int, values: list[Any]) -> None:
    with pytest.raises(NotAState):
        decode(tampered(layouts()[name], part, values))


STRANGE: list[Any] = [
    ["k", "os.system", "true"],
    ["k", "path", 5],
    ["k", "zone", "../../etc/passwd"],
    ["k", "datetime", ["t", 1]],
    ["k", "decimal", "x"],
    ["own", "builtins.print", "x"],
    ["defaultdict", "eval", "a", 1],
    ["deque", -1],
    ["numpy.dtype", "O"],
    ["numpy.dtype", ["struct", 4, False, [["a", 2, "<i4"]]]],
    ["numpy.dtype", ["struct", 8, False, [["a", 0, "O"]]]],
    ["sparse", ["torch.sparse_coo", [2], 0, False]],
    ["quantised", ["qint8", 0, None, 0]],
    ["jagged", [0, 1, None, None]],
]


@pytest.mark.parametrize("node", STRANGE, ids=str)
def test_a_kind_that_makes_no_sense_is_not_a_state(node: Any) -> None:
    with pytest.raises(NotAState) as refusal:
        decode(payload_with(skeleton_of({"part": node})))
    assert "\n" not in str(refusal.value)


def test_what_is_wrong_in_a_payload_is_told_by_its_key_path() -> None:
    with pytest.raises(NotAState, match=r"^state\['a'\]\[1\]\['b'\]: .*no kind of value is called 'x'"):
        decode(payload_with(skeleton_of({"a": ["l", 1, {"b": ["x"]}]})))


def test_a_time_zone_that_is_code_is_refused() -> None:
    class Zone(datetime.tzinfo):
        pass

    with pytest.raises(NotPlainData, match=r"state\['at'\].*Zone is not plain data; use datetime.timezone"):
        encode({"at": datetime.datetime(2024, 1, 1, tzinfo=Zone())})
