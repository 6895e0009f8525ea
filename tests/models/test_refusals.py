"""What cannot be written as data is refused by its key path before anything is written (promise `no-harm`)."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import functools
import pathlib
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.models.encode import encode
from lastgood.models.errors import NotPlainData


class Colour(enum.IntEnum):
    RED = 1


@dataclasses.dataclass
class Settings:
    rate: float = 0.1


class Text(str):
    pass


Point = collections.namedtuple("Point", "x y")


class Odd:
    def __repr__(self) -> str:
        raise AssertionError("a refusal never runs the value's own code")

    __str__ = __eq__ = __hash__ = __len__ = __repr__  # type: ignore[assignment]


def freed_tensor() -> torch.Tensor:
    tensor = torch.ones(10)
    tensor.untyped_storage().resize_(0)
    return tensor


class Marked(torch.Tensor):
    pass


def unusual_tensors() -> list[tuple[Any, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it may change these kinds
        return [
            (torch.quantize_per_channel(torch.ones(2, 2), *torch.ones(2, 2), 0, torch.quint4x2), "quint4x2"),
            (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "use layout=torch.jagged"),
            (torch.ones(2).as_subclass(Marked), "a tensor subclass"),
        ]


CASES: list[tuple[Any, str]] = [
    (np.str_("a\0"), "numpy drops the zeros that this str_ ends in"),
    (np.bytes_(b"a\0\0"), "numpy drops the zeros that this bytes_ ends in"),
    (lambda: 1, "function is not plain data; remove it"),
    ([].append, "builtin_function_or_method is not plain data; remove it"),
    (functools.partial(int), "functools.partial is not plain data; save the numbers"),
    (Settings, "type is not plain data; save its name"),
    (Settings(), "lastgood.models.register"),
    (Colour.RED, "lastgood.models.register"),
    (Point(1, 2), "lastgood.models.register"),
    (Text("x"), "save str(...) of it"),
    (collections.defaultdict(lambda: 0), "save dict(...) of it"),
    (collections.deque([lambda: 1]), "function is not plain data"),
    (argparse.Namespace(a=1), "save vars(...) of it"),
    (torch.nn.Linear(1, 1), "save its state_dict()"),
    (torch.distributions.Normal(0.0, 1.0), "lastgood.models.register"),
    (Odd(), "Odd is not plain data"),
    (iter([]), "list_iterator is not plain data"),
    (np.array([object()]), "numpy's object is not plain data"),
    (np.dtype("i4,O"), "is not plain data"),
    (np.ma.masked_array([1]), "save numpy.asarray(...) of it"),
    *unusual_tensors(),
    (torch.empty(2, device="meta"), "meta device"),
    (torch.nn.UninitializedParameter(), "run the module once"),
    (freed_tensor(), "freed or resized"),
    ({torch.ones(1): 1}, "a tensor as a key"),
    ({(1, lambda: 1): 1}, "function is not plain data"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "phrase"), CASES, ids=range(len(CASES)))
def test_it_is_refused_by_its_key_path(value: Any, phrase: str) -> None:
    with pytest.raises(NotPlainData) as refusal:
        encode({"scheduler": {"parts": [1, ("x", value)]}})
    assert str(refusal.value).startswith("state['scheduler']['parts'][1][1]")
    assert phrase in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_every_refused_part_is_named_at_once() -> None:
    state = {f"part{number}": {"f": len} for number in range(9)}
    with pytest.raises(NotPlainData, match=r"^state\['part0'\]\['f'\]: .*state\['part3'\]\['f'\]: .*; and 5 more$"):
        encode(state)


def test_cycles_are_refused_and_repeats_are_not() -> None:
    ring: list[Any] = [1]
    ring.append({"again": ring})
    with pytest.raises(NotPlainData, match=r"state\['ring'\]\[1\]\['again'\]: this list contains itself"):
        encode({"ring": ring})
    shared = [1]
    encode({"a": shared, "b": shared, "c": [shared, shared]})


def test_endless_nesting_is_refused_in_one_short_line() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(NotPlainData, match="nested deeper than 100 levels") as refusal:
        encode(deep)
    assert len(str(refusal.value)) < 200


def test_attributes_of_an_ordered_dict_are_not_lost_in_silence() -> None:
    state = collections.OrderedDict(a=1)
    state.note = "mine"  # type: ignore[attr-defined]
    with pytest.raises(NotPlainData, match="attributes besides its items"):
        encode(state)


def test_a_refused_save_makes_no_store_and_harms_none(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotPlainData):
        lm.save(tmp_path / "store", {"f": len})
    assert not (tmp_path / "store").exists()
    lm.save(tmp_path / "store", {"w": 1})
    before = {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()}
    with pytest.raises(NotPlainData):
        lm.save(tmp_path / "store", {"w": 2, "f": len})
    assert {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()} == before


def test_a_checkpointer_refuses_likewise(tmp_path: pathlib.Path) -> None:
    ckpt = lm.Checkpointer(tmp_path / "store", {"model": torch.nn.Linear(1, 1), "hook": len}, every=1)
    with pytest.raises(NotPlainData, match=r"^state\['hook'\]: "):
        ckpt.step(1)
    assert not (tmp_path / "store").exists()
    ckpt.state["hook"] = "a name"
    ckpt.step(1)
    ckpt.close()
    assert lm.load(tmp_path / "store")["hook"] == "a name"
