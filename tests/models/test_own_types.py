"""Types of the user's own: registered ones come back as they were; a name in a file never finds code (`never-wrong`)."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch

import lastgood.models as lm
from lastgood.models import registry
from lastgood.models.decode import decode
from lastgood.models.encode import encode
from lastgood.models.errors import NotAState, NotPlainData, NotRegistered


@dataclass
class Settings:
    rate: float
    layers: list[torch.Tensor]
    seen: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.seen += 1


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    inner: Any = None


class Point(NamedTuple):
    x: float
    y: Any


class Phase(enum.Enum):
    WARM = 1
    COLD = "c"


class Options(enum.Flag):
    A = 1
    B = 2


class Vocabulary:
    def __init__(self, words: list[str]) -> None:
        self.words = words


class Marked(torch.Tensor):
    pass


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    types, names = dict(registry.BY_TYPE), dict(registry.BY_NAME)
    yield
    registry.BY_TYPE.clear(), registry.BY_NAME.clear()
    registry.BY_TYPE.update(types), registry.BY_NAME.update(names)


def there_and_back(state: Any) -> Any:
    return decode(encode(state).to_bytes()).state


def test_dataclasses_named_tuples_and_enums() -> None:
    for kind in (Settings, Frozen, Point, Phase, Options):
        assert lm.register(kind) is kind
    settings = Settings(0.5, [torch.ones(2)])
    settings.seen = 41
    state = {"s": settings, "f": Frozen("a", Point(1.5, {"k": Phase.COLD})), "o": Options.A | Options.B, Phase.WARM: 1}
    restored = there_and_back(state)
    assert (restored["s"].rate, restored["s"].seen) == (0.5, 41), "no code of the class was run"
    assert restored["s"].layers[0].equal(torch.ones(2))
    assert restored["f"] == state["f"]
    assert type(restored["f"].inner) is Point
    assert restored["o"] is state["o"]
    assert restored[Phase.WARM] == 1


def test_encoder_and_decoder_of_ones_own() -> None:
    lm.register(
        Vocabulary, encode=lambda value: {"words": value.words}, decode=lambda plain: Vocabulary(plain["words"])
    )
    lm.register(Marked, encode=lambda value: value.as_subclass(torch.Tensor), decode=lambda t: t.as_subclass(Marked))
    restored = there_and_back([Vocabulary(["a"]), torch.ones(3).as_subclass(Marked)])
    assert restored[0].words == ["a"]
    assert type(restored[1]) is Marked


def test_as_a_decorator_with_a_name(tmp_path: Any) -> None:
    @lm.register(name="settings")
    @dataclass
    class Local:
        a: int

    lm.save(tmp_path / "store", {"s": Local(3)})
    registry.forget(Local)

    @lm.register(name="settings")
    @dataclass
    class Moved:
        a: int

    assert lm.load(tmp_path / "store") == {"s": Moved(3)}


def test_a_type_that_is_not_registered_is_refused_where_it_is_saved_and_where_it_is_loaded() -> None:
    with pytest.raises(NotPlainData, match=r"^state\['a'\]\[0\]: .*Settings is not plain data; register its type"):
        encode({"a": [Settings(1.0, [])]})
    lm.register(Settings)
    payload = encode({"a": [Settings(1.0, [])]}).to_bytes()
    registry.forget(Settings)
    with pytest.raises(
        NotRegistered, match=r"^state\['a'\]\[0\]: saved as '.*Settings', a type that is not registered"
    ):
        decode(payload)


def test_a_subclass_is_not_taken_for_its_base() -> None:
    class More(Settings):
        pass

    lm.register(Settings)
    with pytest.raises(NotPlainData, match="More is not plain data"):
        encode(More(1.0, []))


def test_what_a_dataclass_holds_besides_its_fields_is_not_lost_in_silence() -> None:
    lm.register(Settings)
    settings = Settings(1.0, [])
    settings.extra = 1  # type: ignore[attr-defined]
    with pytest.raises(NotPlainData, match="an attribute besides its fields, 'extra'"):
        encode({"s": settings})


def test_fields_that_are_no_data_are_refused_by_their_path() -> None:
    lm.register(Settings), lm.register(Point)
    with pytest.raises(NotPlainData, match=r"^state\['s'\]\.layers\[0\]\.y: function is not plain data"):
        encode({"s": Settings(1.0, [Point(1, lambda: 1)])})  # type: ignore[list-item]


def test_other_fields_than_were_saved_are_told() -> None:
    lm.register(Point, name="point")
    payload = encode({"p": Point(1, 2)}).to_bytes()
    registry.forget(Point)

    @dataclass
    class Other:
        x: int
        z: int

    lm.register(Other, name="point")
    with pytest.raises(NotAState, match=r"^state\['p'\]: point has the fields x, z here, x, y in the store"):
        decode(payload)


def test_failures_of_an_encoder_or_decoder_are_told_by_key_path() -> None:
    def refuses(value: Any) -> Any:
        raise OSError("gone")

    lm.register(Vocabulary, encode=refuses, decode=refuses)
    with pytest.raises(NotPlainData, match=r"^state\['v'\]: .*Vocabulary cannot be taken apart: OSError: gone"):
        encode({"v": Vocabulary([])})
    lm.register(Vocabulary, encode=lambda value: value.words, decode=refuses)
    with pytest.raises(NotAState, match=r"^state\['v'\]: .*Vocabulary cannot be made of what was saved: OSError: gone"):
        there_and_back({"v": Vocabulary([])})
    lm.register(Vocabulary, encode=lambda value: value.words, decode=list)
    with pytest.raises(NotAState, match=r"gave a list, not a Vocabulary"):
        there_and_back({"v": Vocabulary([])})


def test_a_cycle_through_a_registered_type_is_refused() -> None:
    lm.register(Vocabulary, encode=lambda value: value.words, decode=Vocabulary)
    ring = Vocabulary([])
    ring.words.append(ring)  # type: ignore[arg-type]
    with pytest.raises(NotPlainData, match="this Vocabulary contains itself"):
        encode({"v": ring})


def test_a_name_in_a_payload_finds_registered_types_only() -> None:
    lm.register(Point)
    payload = encode({"p": Point(1, 2)}).to_bytes()
    name = registry.name_of(Point).encode()
    for other in (b"builtins.print", b"os.system"):
        planted = payload.replace(name, other + b" " * (len(name) - len(other)))
        with pytest.raises(NotRegistered):
            decode(planted)


@pytest.mark.parametrize(
    ("arguments", "options", "phrase"),
    [
        ((3,), {}, "is not a type"),
        ((dict,), {}, "not your own"),
        ((torch.Tensor,), {}, "not your own"),
        ((Vocabulary,), {}, "give encode and decode"),
        ((Vocabulary,), {"encode": str}, "together"),
        ((Point,), {"name": ""}, "give text"),
    ],
)
def test_what_cannot_be_registered_is_told(arguments: Any, options: Any, phrase: str) -> None:
    with pytest.raises(TypeError, match=phrase):
        lm.register(*arguments, **options)


def test_a_name_belongs_to_one_type() -> None:
    lm.register(Point, name="same")
    with pytest.raises(ValueError, match="'same' is taken by"):
        lm.register(Frozen, name="same")
    lm.register(Point, name="same")
