"""The oracle: what may be found, drawn case by case. Each promise can be broken, and is then named."""

from __future__ import annotations

import pytest

from lastgood.crashsim.stateful import BrokenPromise, Ledger
from lastgood.crashsim.stateful.ledger import payload_of


def ledger_of(drawing: str, keep: int = 1, sequences: dict[int, int] | None = None) -> Ledger:
    """One letter an event: b begins the next save; a digit acknowledges that save; a letter of "vwxyz" ends save 1 to 5."""
    ledger = Ledger(keep, lambda number: (sequences or {}).get(number))
    for letter in drawing:
        if letter == "b":
            ledger.begin(100)
        elif letter.isdigit():
            ledger.acknowledge(int(letter))
        else:
            ledger.end(1 + "vwxyz".index(letter))
    return ledger


def verdict(ledger: Ledger, number: int | None) -> str:
    """The promise that finding this save breaks, empty when it may be found."""
    found = ledger.saves[number].payload if number is not None else None
    try:
        ledger.judge(found, ledger.demand(), "here:")
    except BrokenPromise as broken:
        return str(broken).split(":")[0]
    return ""


@pytest.mark.parametrize(
    ("drawing", "found", "promise"),
    [
        ("", None, ""),
        ("b", None, ""),
        ("b", 1, ""),
        ("b1v", None, "loud"),
        ("b1v", 1, ""),
        ("b1vb", 1, ""),
        ("b1vb", 2, ""),
        ("b1vb2w", 1, "newest-survives"),
        ("b1vb2w", 2, ""),
        ("bb12vw", 1, ""),  # they overlapped: nobody knows which is newer
        ("bb2w1v", 2, ""),
        ("bvb2w", 1, "newest-survives"),  # 1 failed before 2 began, and came back
    ],
)
def test_what_may_be_found(drawing: str, found: int | None, promise: str) -> None:
    assert verdict(ledger_of(drawing), found) == promise


def test_the_stores_own_order_decides_where_it_has_one() -> None:
    overlapping = ledger_of("bb12vw", sequences={1: 2, 2: 1})
    assert verdict(overlapping, 1) == ""
    assert verdict(overlapping, 2) == "newest-survives"
    with pytest.raises(BrokenPromise, match=r"^monotone: .* sequence 7"):
        ledger_of("bb12", sequences={1: 7, 2: 7})


def test_bytes_that_no_save_was_given() -> None:
    ledger = ledger_of("b1vb2w")
    for found in (
        b"",
        bytes(100),
        ledger.saves[2].payload[:-1],
        ledger.saves[2].payload[:50] + ledger.saves[1].payload[50:],
    ):
        with pytest.raises(BrokenPromise, match=r"^never-wrong"):
            ledger.judge(found, ledger.demand(), "here:")
    assert len({payload_of(number, 64)[4:] for number in range(200)}) == 200


def test_damage_lowers_the_floor_by_what_it_touched() -> None:
    ledger = ledger_of("b1vb2wb3x", keep=2)
    assert [save.number for save in ledger.newest()] == [3, 2]
    ledger.damage({3})
    assert verdict(ledger, 2) == ""
    assert verdict(ledger, 1) == "newest-survives"
    with pytest.raises(BrokenPromise, match=r"^newest-survives: here: OSError: gone"):
        ledger.judge_failure(OSError("gone"), ledger.demand(), "here:", is_excused=False)
    ledger.damage(None)
    ledger.judge_failure(OSError("gone"), ledger.demand(), "here:", is_excused=False)
    assert verdict(ledger, None) == "loud", "something was acknowledged once"


def test_more_are_kept_only_of_those_to_come() -> None:
    """And one that turns out to be durable late is not in the place of a newer one that was let go."""
    ledger = ledger_of("bvb2wb3x", keep=2)
    for keep, newest in ((1, [3]), (3, [3])):
        ledger.keep(keep)
        assert [save.number for save in ledger.newest()] == newest
    ledger.keep(2)
    ledger.acknowledge(1)
    assert [save.number for save in ledger.newest()] == [3]
    ledger.acknowledge(ledger.begin(100).number)
    assert [save.number for save in ledger.newest()] == [4, 3]


def test_a_failure_without_a_cause() -> None:
    ledger = ledger_of("b")
    with pytest.raises(BrokenPromise, match=r"^loud: here: OSError: why, though nothing was refused"):
        ledger.judge_failure(OSError("why"), ledger.demand(), "here:", is_excused=False)
    ledger.judge_failure(OSError("why"), ledger.demand(), "here:", is_excused=True)
    with pytest.raises(KeyboardInterrupt):
        ledger.judge_failure(KeyboardInterrupt(), ledger.demand(), "here:", is_excused=True)


def test_two_reads_of_one_process_do_not_go_back() -> None:
    ledger = ledger_of("b1vb2w")
    demand = ledger.demand()
    ledger.judge_in_process(ledger.saves[2].payload, demand, "here:")
    older = ledger_of("b1v").demand()  # of before the second was acknowledged
    with pytest.raises(BrokenPromise, match=r"^monotone: here: save 1 is read after save 2"):
        ledger.judge_in_process(ledger.saves[1].payload, older, "here:")
    ledger.die()
    ledger.judge_in_process(ledger.saves[1].payload, older, "here:")
