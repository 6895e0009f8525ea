"""A counterexample is a short string, and the string is the counterexample."""

from __future__ import annotations

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import replay
from lastgood.crashsim.promises import Violation
from lastgood.crashsim.replay import BadReplay, Replay, decode, encode, split_path
from lastgood.crashsim.search import Counterexample

STRING = "x1.pointer-only-compare.page-cache.2-4-2-1-0-0-0.t.newest-survives.u00000a0b0x1o.P2:3xK/P0"


def test_every_part_comes_back() -> None:
    found = decode(STRING)
    assert found.program == "pointer-only-compare"
    assert found.bounds == Bounds(saves=4)
    assert found.counterexample.start == "u"
    assert found.counterexample.moves == ("0", "0", "0", "0", "0a", "0b", "0x", "1o")
    assert found.counterexample.violation == Violation("newest-survives", "", "P2:3xK/P0", "trusted")
    assert encode(found) == STRING


def test_moves_into_another_life_come_back() -> None:
    violation = Violation("loud", "", "P0", "")
    lived = Replay("real", Bounds(restarts=2), Counterexample("e", ("0", "P3:2K/", "1a", "K/", "0"), violation))
    assert decode(encode(lived)) == lived


def test_a_path_is_told_crash_by_crash() -> None:
    assert split_path("P3:2xK/P0") == [("P3", ":2x"), ("K", "/"), ("P0", "")]


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("x2" + STRING[2:], "version x2"),
        ("", "not a replay string"),
        ("pointer-only-compare", "not a replay string"),
        (STRING.rsplit(".", 1)[0], "7 parts where 8 belong"),
        (STRING.replace("2-4-2", "2-4"), "bounds"),
        (STRING.replace("2-4-2", "0-4-2"), "savers in this replay string is 0"),
        (STRING.replace(".t.", ".q."), "unknown digests"),
        (STRING.replace("newest-survives", "no-such"), "unknown promise"),
        (STRING.replace(".u0000", ".z0000"), "schedule"),
        (STRING.replace("0a0b", "0a0q"), "schedule"),
        (STRING + "!", "schedule"),
    ],
)
def test_a_string_that_says_nothing_is_refused_in_one_line(string: str, message: str) -> None:
    with pytest.raises(BadReplay, match=message) as refused:
        decode(string)
    assert "\n" not in str(refused.value)


def test_a_schedule_that_the_program_does_not_allow_is_refused() -> None:
    with pytest.raises(BadReplay, match="move 5"):
        replay(decode(STRING.replace("u00000a", "u00001a")))


def test_a_mutant_that_is_gone_is_refused() -> None:
    with pytest.raises(BadReplay, match="not known"):
        replay(decode(STRING.replace("pointer-only-compare", "gone")))


def test_a_schedule_that_breaks_nothing_any_more_is_clean() -> None:
    """The way to see that a mended program is mended."""
    assert not replay(decode("x1.real.page-cache.2-4-2-1-0-0-0.t.newest-survives.u000.K")).sentence
