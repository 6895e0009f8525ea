"""A list, dict, array or object that is reached from several places comes back as one, as `torch.save` gives it back."""

from __future__ import annotations

import io
import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lastgood.models as lm
from lastgood.models import registry
from lastgood.models.decode import decode
from lastgood.models.encode import Encoder, encode
from lastgood.models.errors import NotAState, NotPlainData
from lastgood.models.skeleton import VERSION, VERSION_WITHOUT_SHARED
from tests.models.states import assert_same
from tests.models.test_hostile_payload import payload_with, skeleton_of


@dataclass(eq=False)
class Note:
    """Found in a set by identity."""

    lines: list[Any] = field(default_factory=list)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    lm.register(Note)
    yield
    del registry.BY_NAME[registry.BY_TYPE.pop(Note).name]


def there_and_back(state: Any) -> Any:
    return decode(encode(state).to_bytes()).state


def test_what_two_parts_share_they_share_after_loading(tmp_path: Path) -> None:
    """A loop keeps its losses in a list that its scheduler looks at as well; after a resume the scheduler's stood still."""
    losses = [0.5]
    state = {"losses": losses, "scheduler": {"seen": losses, "best": 0.5}}
    lm.save(tmp_path / "store", state)
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    for found in (lm.load(tmp_path / "store"), torch.load(file)):
        found["losses"].append(0.25)
        assert found["scheduler"]["seen"] == [0.5, 0.25]


MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "dict": lambda parts: dict(enumerate(parts)),
    "text dict": lambda parts: {f"key {number}": part for number, part in enumerate(parts)},
    "OrderedDict": lambda parts: OrderedDict(enumerate(parts)),
    "defaultdict": lambda parts: defaultdict(list, enumerate(parts)),
    "Counter": lambda parts: Counter({"parts": len(parts)}),
    "deque": lambda parts: deque(parts, 9),
    "run": lambda parts: {f"p{number}": torch.full((2,), float(number)) for number in range(len(parts) + 2)},
    "tensor": lambda parts: torch.ones(len(parts)),
    "array": lambda parts: np.arange(len(parts)),
    "bytearray": lambda parts: bytearray(len(parts)),
    "set": lambda parts: set(range(len(parts))),
    "note": Note,
}


@st.composite
def webs(draw: st.DrawFn) -> list[Any]:
    """Values made of earlier ones, any of them reached from several places."""
    made: list[Any] = []
    for kind in draw(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=12)):
        parts = draw(st.lists(st.sampled_from(made), max_size=3)) if made else []
        made.append(MAKERS[kind](parts))
    return draw(st.lists(st.sampled_from(made), min_size=1, max_size=6))


def assert_same_sharing(here: Any, there: Any, partners: dict[int, int]) -> None:
    """Two places hold one object here exactly when they do there."""
    if isinstance(here, (list, dict, deque, set, bytearray, np.ndarray, torch.Tensor, Note)):
        assert (id(here) in partners) == (-id(there) in partners)
        assert partners.setdefault(id(here), id(there)) == id(there)
        assert partners.setdefault(-id(there), id(here)) == id(here)
    if isinstance(here, Note):
        assert_same_sharing(here.lines, there.lines, partners)
    elif isinstance(here, dict):
        for key in here:
            assert_same_sharing(here[key], there[key], partners)
    elif isinstance(here, (list, tuple, deque)):
        for ours, theirs in zip(here, there, strict=True):
            assert_same_sharing(ours, theirs, partners)


@given(webs())
def test_any_web_of_values_comes_back_with_its_sharing_and_no_more(web: list[Any]) -> None:
    payload = encode(web).to_bytes()
    found = decode(payload).state
    assert_same_sharing(web, found, {})
    assert encode(found).to_bytes() == payload


def test_the_comparison_sees_too_little_sharing_and_too_much() -> None:
    one, other = [1], [1]
    for here, there in (([one, one], [one, other]), ([one, other], [one, one])):
        with pytest.raises(AssertionError):
            assert_same_sharing(here, there, {})


def test_state_and_extra_and_a_modules_metadata_may_share() -> None:
    """The metadata of a module's dict is written before its items, and has to be read before them too."""
    common = ["a"]
    module = OrderedDict(weight=torch.ones(1), names=common)
    module._metadata = {"": {"version": 1, "names": common}}  # type: ignore[attr-defined]
    found = decode(encode({"module": module}, extra=[common]).to_bytes())
    names = found.state["module"]["names"]
    assert names is found.state["module"]._metadata[""]["names"]
    assert names is found.extra[0]


def test_a_web_of_sixty_levels_is_not_two_to_the_sixty_values() -> None:
    """It was walked once for every way that leads to a value: the save did not end."""
    value: Any = []
    for _ in range(60):
        value = [value, value]
    found = there_and_back(value)
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    assert found == []


def test_inside_a_set_nothing_is_shared_and_everything_is_there() -> None:
    """Its members are written in another order than they are met in."""
    lines = ["x"]
    for state in ({"set": {Note(lines), Note(["y", lines])}, "after": [lines, lines]}, [lines, {Note(lines)}, lines]):
        found = there_and_back(state)
        if isinstance(found, dict):
            assert sorted(map(len, (note.lines for note in found["set"]))) == [1, 2]
            assert found["after"] == [["x"], ["x"]]
        else:
            assert found[0] is found[2] is next(iter(found[1])).lines


def test_a_ring_is_refused_as_before_also_where_it_is_reached_again() -> None:
    ring: list[Any] = [1]
    ring.append({"again": ring})
    with pytest.raises(NotPlainData, match=r"state\[0\]\[1\]\['again'\]: this list contains itself"):
        encode([ring, ring])


def test_a_state_that_shares_nothing_is_written_as_before() -> None:
    """So that an older lastgood reads it."""
    pair, shared = (1, 2), [1]
    states = ([[1], [1]], {"t": pair, "u": pair}, [shared, shared])
    versions = [encode(state).head[8] for state in states]
    assert versions == [VERSION_WITHOUT_SHARED, VERSION_WITHOUT_SHARED, VERSION]


def test_a_long_lived_encoder_gives_what_a_new_one_gives() -> None:
    encoder, losses, state = Encoder(), [0.5], {}
    for state in ({"a": losses, "w": torch.ones(2)}, {"a": losses, "b": losses, "w": torch.ones(2)}, {"a": [losses]}):
        assert encoder.encode(state).to_bytes() == encode(state).to_bytes()


@pytest.mark.parametrize(
    "node",
    [
        ["again", 0],
        ["l", ["again", 0], ["shared", 0, ["l"]]],
        ["shared", 0, ["l", ["again", 0]]],
        ["l", ["shared", 0, ["l"]], ["shared", 0, ["l"]]],
        ["l", ["shared", 0, ["l"]], ["again", 1]],
        ["l", ["shared", -1, ["l"]], ["again", -1]],
        ["l", ["shared", "0", ["l"]], ["again", "0"]],
        ["l", ["shared", [0], ["l"]], ["again", [0]]],
        ["shared", 0],
        ["shared"],
        ["again"],
    ],
    ids=json.dumps,
)
def test_a_payload_that_shares_what_is_not_there_is_refused(node: Any) -> None:
    with pytest.raises(NotAState) as problem:
        decode(payload_with(skeleton_of(node)))
    assert "\n" not in str(problem.value)
    good = decode(payload_with(skeleton_of(["l", ["shared", 0, ["l", 7]], ["again", 0]]))).state
    assert good == [[7], [7]]


@pytest.mark.parametrize("live", ["one", "two", "none"])
def test_a_restore_brings_it_into_what_is_here(live: str, tmp_path: Path) -> None:
    """What was restored into one place was emptied when it was met in the next: it was cleared to be filled from itself."""
    seen, raw = {1, 2}, bytearray(b"ab")
    inner = {"seen": seen, "raw": raw, "list": [1]}
    with lm.Checkpointer(tmp_path / "store", {"first": {"in": inner}, "second": {"in": inner}}) as ckpt:
        ckpt.save(1)
    one: dict[str, Any] = {}
    here: dict[str, Any] = {
        "one": {"first": {"in": one}, "second": {"in": one}},
        "two": {"first": {"in": {}}, "second": {"in": {"seen": set()}}},
        "none": {"first": {}, "second": {}},
    }[live]
    expected = {"seen": {1, 2}, "raw": bytearray(b"ab"), "list": [1]}
    for _ in range(2):
        with lm.Checkpointer(tmp_path / "store", here) as ckpt:
            assert ckpt.restore() == 1
        assert_same({"first": {"in": expected}, "second": {"in": expected}}, here)
    assert (here["first"]["in"] is here["second"]["in"]) == (live != "two"), "two of one's own stay two"


def test_where_it_is_the_same_is_shown(tmp_path: Path) -> None:
    run = {"x": torch.ones(2), "y": torch.ones(2)}
    lm.save(tmp_path / "store", {"a": run, "b": [run], "deep": (shared := [1], shared)})
    kinds = {leaf.key: leaf.kind for leaf in lm.peek(tmp_path / "store").leaves}
    assert kinds["state['a']['x']"] == "Tensor"
    assert kinds["state['b'][0]"] == "the same as state['a']"
    assert kinds["state['deep'][1]"] == "the same as state['deep'][0]"


@pytest.mark.parametrize("form", [".lastgood", ".pt", ".safetensors"])
def test_through_a_file_and_back(form: str, tmp_path: Path) -> None:
    """safetensors names each tensor by its path, for whoever reads it: there it comes back as two."""
    run = {"x": torch.ones(2), "y": torch.ones(2)}
    state = {"a": run, "b": [run], "c": {"again": run}}
    lm.save(tmp_path / "store", state)
    lm.export(tmp_path / "store", tmp_path / f"out{form}")
    lm.import_into(tmp_path / f"out{form}", tmp_path / "again")
    found = lm.load(tmp_path / "again")
    assert_same(state, found)
    assert (found["a"] is found["b"][0] is found["c"]["again"]) == (form != ".safetensors")
    assert found["a"]["x"] is found["b"][0]["x"]
