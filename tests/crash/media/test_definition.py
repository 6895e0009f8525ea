"""The one definition behind every medium, and what the explorer makes of it for a store."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.medium import Medium, Operation, Rules, State, fold, ideals
from lastgood.crashsim.store_layout import Layout, StoreMedium

LAYOUT = Layout(slots=2, chunks=2)


class Event(NamedTuple):
    """One call of the explorer's."""

    name: str
    arguments: tuple[int, ...]


def event(name: str, *arguments: st.SearchStrategy[int]) -> st.SearchStrategy[Event]:
    return st.tuples(*arguments).map(lambda drawn: Event(name, drawn))


SLOT, CHUNK, CONTENT, FILE = st.integers(0, 1), st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)
WRITES = (
    event("write_record", SLOT, CONTENT),
    event("write_chunk", SLOT, CHUNK, CONTENT),
    event("rewrite_payload", SLOT, CONTENT),
    event("write", st.just(LAYOUT.mark), CONTENT),
)
PERSISTS = (event("persist", FILE), event("persist_chunk", SLOT, CHUNK))
FAILS = (event("fail_persist", FILE),)
SCRIPTS = st.lists(st.one_of(*WRITES, *PERSISTS, *FAILS), max_size=5)


class Plain:
    """A medium's rules, but its states are left as they come."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def __getattr__(self, name: str) -> object:
        return getattr(self._rules, name)

    def canonical(self, state: State) -> State:
        return state


def run(rules: object, script: list[Event]) -> tuple[StoreMedium, int]:
    """A store that began empty and durable, after this script."""
    store = StoreMedium(LAYOUT, rules)  # type: ignore[arg-type]
    number = store.settled([0] * (LAYOUT.mark + 1))
    for each in script:
        number = getattr(store, each.name)(number, *each.arguments)
    return store, number


def left(rules: object, script: list[Event]) -> set[tuple[int, ...]]:
    """Every image that a power loss leaves."""
    store, number = run(rules, script)
    return {store.states[each].base for each, _ in store.power_losses(number)}


@pytest.mark.parametrize("name", MEDIA)
@given(script=SCRIPTS, tail=SCRIPTS)
def test_the_canonical_form_changes_nothing(name: str, script: list[Event], tail: list[Event]) -> None:
    """The same images, views and evictions, now and after anything else, as where states are left as they come."""
    whole = [*script, *tail[:2]]
    settled, plain = (run(rules, whole) for rules in (MEDIA[name](), Plain(MEDIA[name]())))
    assert left(MEDIA[name](), whole) == left(Plain(MEDIA[name]()), whole)
    assert settled[0].visible(settled[1]) == plain[0].visible(plain[1])
    views = [{store.visible(each) for each in store.evictions(number)} for store, number in (settled, plain)]
    assert views[0] == views[1]
    assert all(MEDIA[name]().canonical(state) == state for state in settled[0].states), "told by a single look"


@given(script=st.lists(st.one_of(*WRITES, *PERSISTS), max_size=5))
def test_what_a_store_can_lose_on_each_medium(script: list[Event]) -> None:
    """`newest-survives` on a weaker medium says it for the stronger ones: page-cache for all disks, pmem for all memory."""
    images = {name: left(MEDIA[name](), script) for name in MEDIA}
    assert images["strict"] <= images["block"] <= images["page-cache"]
    assert images["strict"] <= images["pmem-eadr"] <= images["pmem"]
    for same in ("ext4", "mmap", "failing-fsync", "lying-disk"):
        assert images[same] == images["page-cache"]


@given(script=SCRIPTS)
def test_what_a_store_can_lose_when_persists_fail(script: list[Event]) -> None:
    images = {name: left(MEDIA[name](), script) for name in MEDIA}
    assert images["strict"] <= images["page-cache"] == images["ext4"] == images["mmap"] == images["lying-disk"]


@pytest.mark.parametrize("name", MEDIA)
@given(script=SCRIPTS)
def test_everything_written_is_read_and_may_be_durable(name: str, script: list[Event]) -> None:
    """M4 view: the next program sees every write, and a power loss may leave all of them."""
    held = [0] * (LAYOUT.mark + 1)
    for each in script:
        *where, content = each.arguments
        if each.name == "write":
            held[where[0]] = content
        elif each.name == "write_record":
            for place in LAYOUT.record_places(where[0]):
                held[place] = content
        elif each.name == "write_chunk":
            held[LAYOUT.chunk_place(*where)] = content
        elif each.name == "rewrite_payload":
            for chunk in range(LAYOUT.chunks):
                held[LAYOUT.chunk_place(where[0], chunk)] = content
    store, number = run(MEDIA[name](), script)
    assert store.visible(number) == tuple(held)
    assert LAYOUT.collapse(tuple(held)) in left(MEDIA[name](), script)


OPERATIONS = st.lists(
    st.builds(
        Operation,
        place=st.integers(0, 2),
        content=st.integers(1, 3),
        thread=st.integers(0, 1),
        scope=st.sampled_from([(0,), (1,), (0, 1)]),
        note=st.integers(0, 5),
        also=st.sampled_from([(), (), ((1, 7),), ((2, 0),)]),
    ),
    max_size=7,
)


@pytest.mark.parametrize("name", MEDIA)
@given(operations=OPERATIONS)
def test_images_are_the_downward_closed_sets(name: str, operations: list[Operation]) -> None:
    """Against the naive way: try every subset, keep those that contain what comes before each member (M2, M3)."""
    medium = Medium(MEDIA[name]())
    state = State((0, 0, 0), tuple(operations))
    naive = set()
    for mask in range(2 ** len(operations)):
        kept = [index for index in range(len(operations)) if mask >> index & 1]
        before = [(earlier, later) for later in kept for earlier in range(later)]
        if all(
            earlier in kept or not medium.rules.ordered(operations[earlier], operations[later])
            for earlier, later in before
        ):
            naive.add(tuple(kept))
    assert set(ideals(operations, medium.rules.ordered)) == naive
    found = medium.images(state, lambda image: image)
    assert {each.image for each in found} == {fold(state, kept) for kept in naive}
    for each in found:
        fewest = min(len(operations) - len(kept) for kept in naive if fold(state, kept) == each.image)
        assert len(each.lost) == fewest


@pytest.mark.parametrize("name", MEDIA)
@given(operations=OPERATIONS, chosen=st.lists(st.booleans(), min_size=7, max_size=7))
def test_what_is_forced_is_kept(name: str, operations: list[Operation], chosen: list[bool]) -> None:
    """M1: the images after some operations became durable are those before that contain them."""
    medium = Medium(MEDIA[name]())
    state = State((0, 0, 0), tuple(operations))
    forced = {index for index, is_forced in enumerate(chosen[: len(operations)]) if is_forced}
    after = medium.settle(state, chosen[: len(operations)])
    expected = {fold(state, kept) for kept in ideals(operations, medium.rules.ordered) if forced.issubset(kept)}
    assert {each.image for each in medium.images(after, lambda image: image)} == expected
