"""What each simulated medium can leave after a crash: litmus tests with exact sets, and properties of the definition."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.medium import Medium, Operation, Persist, State, fold, ideals

FILES = (0, 0, 1)
"""Places 0 and 1 belong to file 0, place 2 to file 1."""


def run(medium: Medium, script: Sequence[tuple[str, int, int]]) -> State:
    """`w place content`, `p file 0` a persist, `f file 0` one that fails; everything begins as 0, durable."""
    state = State((0,) * len(FILES), ())
    for what, first, second in script:
        if what == "w":
            state = medium.issue(state, Operation(first, second, scope=(FILES[first],)))
        else:
            state = (medium.persist if what == "p" else medium.fail_persist)(state, Persist(first, 0))
        state = medium.rules.canonical(state)
    return state


def images(name: str, script: Sequence[tuple[str, int, int]]) -> set[str]:
    """Every image that a power loss after the script can leave, each as its three contents."""
    medium = Medium(MEDIA[name]())
    return {"".join(map(str, each.image)) for each in medium.images(run(medium, script), lambda image: image)}


W0, W1, W2 = ("w", 0, 1), ("w", 1, 1), ("w", 2, 1)
LITMUS = [
    ("nothing written", [], {"000"}, {"000"}),
    ("one write", [W0], {"000", "100"}, {"000", "100"}),
    ("two places of a file", [W0, W1], {"000", "100", "110"}, {"000", "100", "010", "110"}),
    ("two files", [W1, W2], {"000", "010", "011"}, {"000", "010", "001", "011"}),
    ("one place twice", [W0, ("w", 0, 2)], {"000", "100", "200"}, {"000", "100", "200"}),
    ("persist", [W0, W1, ("p", 0, 0)], {"110"}, {"110"}),
    ("persist of another file", [W0, ("p", 1, 0)], {"100"}, {"000", "100"}),
    ("persist, then a write", [W0, ("p", 0, 0), W1], {"100", "110"}, {"100", "110"}),
    ("persist of the later file only", [W0, W2, ("p", 1, 0)], {"101"}, {"001", "101"}),
    ("old again, not persisted", [W0, ("w", 0, 0)], {"000", "100"}, {"000", "100"}),
    ("old again, persisted", [W0, ("w", 0, 0), ("p", 0, 0)], {"000"}, {"000"}),
    ("failed persist", [W0, ("f", 0, 0)], {"000", "100"}, {"000", "100"}),
    ("failed persist, another succeeds", [W0, ("f", 0, 0), ("p", 0, 0)], {"100"}, {"000", "100"}),
    ("failed, written again, persisted", [W0, ("f", 0, 0), W0, ("p", 0, 0)], {"100"}, {"100"}),
    ("failed, only the other place again", [W0, W1, ("f", 0, 0), W1, ("p", 0, 0)], {"110"}, {"010", "110"}),
    ("failed persist of another file", [W0, ("f", 1, 0), ("p", 0, 0)], {"100"}, {"100"}),
]


@pytest.mark.parametrize(("script", "strict", "page_cache"), [case[1:] for case in LITMUS], ids=[c[0] for c in LITMUS])
def test_litmus(script: list[tuple[str, int, int]], strict: set[str], page_cache: set[str]) -> None:
    """Equality, both ways: an image too many cries wolf, an image too few is blind."""
    assert images("strict", script) == strict
    assert images("page-cache", script) == page_cache


SCRIPTS = st.lists(
    st.one_of(
        st.tuples(st.just("w"), st.integers(0, 2), st.integers(0, 3)),
        st.tuples(st.sampled_from("pf"), st.integers(0, 1), st.just(0)),
    ),
    max_size=7,
)


@given(SCRIPTS)
def test_strict_leaves_nothing_that_page_cache_does_not(script: list[tuple[str, int, int]]) -> None:
    without_failures = [step for step in script if step[0] != "f"]
    assert images("strict", without_failures) <= images("page-cache", without_failures)


@pytest.mark.parametrize("name", MEDIA)
@given(script=SCRIPTS)
def test_everything_written_is_read_and_may_be_durable(name: str, script: list[tuple[str, int, int]]) -> None:
    medium = Medium(MEDIA[name]())
    state = run(medium, script)
    last = {place: content for what, place, content in script if what == "w"}
    visible = medium.visible(state)
    assert visible == tuple(last.get(place, 0) for place in range(len(FILES)))
    assert "".join(map(str, visible)) in images(name, script)


@pytest.mark.parametrize("name", MEDIA)
@given(script=SCRIPTS, tail=SCRIPTS)
def test_the_canonical_form_changes_nothing(
    name: str, script: list[tuple[str, int, int]], tail: list[tuple[str, int, int]]
) -> None:
    """The same images, now and after anything else, as a medium that never simplifies its state."""
    rules = MEDIA[name]()

    class Plain(MEDIA[name]):  # type: ignore[misc]
        def canonical(self, state: State) -> State:
            return state

    def left(medium: Medium) -> set[tuple[int, ...]]:
        return {each.image for each in medium.images(run(medium, [*script, *tail]), lambda image: image)}

    assert left(Medium(rules)) == left(Medium(Plain()))


@given(script=SCRIPTS)
def test_images_are_the_downward_closed_sets(script: list[tuple[str, int, int]]) -> None:
    """Against the naive way: try every subset, keep those that contain what comes before each member."""
    for name in MEDIA:
        medium = Medium(MEDIA[name]())
        state = run(medium, script)
        operations = state.outstanding
        naive = set()
        for mask in range(2 ** len(operations)):
            kept = [index for index in range(len(operations)) if mask >> index & 1]
            closed = all(
                earlier in kept
                for later in kept
                for earlier in range(later)
                if medium.rules.ordered(operations[earlier], operations[later])
            )
            if closed:
                naive.add(tuple(kept))
        assert set(ideals(operations, medium.rules.ordered)) == naive
        assert {each.image for each in medium.images(state, lambda image: image)} == {fold(state, k) for k in naive}
