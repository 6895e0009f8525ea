"""The slots of a store, shared in another way between saves in flight and checkpoints kept when it is opened again."""

from __future__ import annotations

from typing import Any

import pytest

from lastgood.core import Store, WrongGeometry
from tests.store.small import check_kept, check_no_leak, create, payload_of, save
from tests.store.watched import WatchedMemory


def used() -> WatchedMemory:
    """A store of four slots that keeps steps 4 and 3, with 2 and 1 left over in the free ones."""
    directory = WatchedMemory()
    with create(directory) as store:
        for steps in ((1, 2), (3, 4)):
            for saving in [store.begin(step=step) for step in steps]:
                saving.push(payload_of(saving.ticket.step))
                saving.finish().wait(60)
    return directory


def overwrite_half(directory: WatchedMemory, step: int) -> None:
    """What a process leaves that dies while it writes over a free slot: the old record, and some of the old payload."""
    with Store.open(directory, read_only=True) as store:
        record = next(each for each in store._scan.records if each is not None and each.step == step)
    content = directory.files[f"slot-{record.slot:04d}"].content
    content[record.payload_offset : record.payload_offset + 4096] = payload_of(99, 4096)


def shares(directory: WatchedMemory) -> tuple[int, int]:
    """In flight and kept, as a reader sees it."""
    with Store.open(directory, read_only=True) as store:
        return store.in_flight, store.keep


@pytest.mark.parametrize("asked", [{"keep": 3}, {"in_flight": 1}, {"keep": 3, "in_flight": 1}])
def test_more_is_kept_from_the_first_save_on(asked: dict[str, int]) -> None:
    directory = used()
    with Store.open(directory, new_run=True, **asked) as store:
        save(store, 7)
        check_kept(store, [7, 4, 3])
        check_no_leak(store)
        save(store, 8)
        check_kept(store, [8, 7, 4])
        check_no_leak(store)
    assert shares(directory) == (1, 3)
    with Store.open(directory, new_run=True) as store:
        save(store, 9)
        check_kept(store, [9, 8, 7])


def test_less_is_kept_and_more_may_be_in_flight() -> None:
    directory = used()
    with Store.open(directory, new_run=True, keep=1) as store:
        assert (store.in_flight, store.keep) == (2, 2), "until the first save it is what it was"
        tickets = [store.save(payload_of(step), step=step) for step in range(7, 20)]
        for ticket in tickets:
            assert ticket.wait(60).step >= ticket.step
        check_kept(store, [19])
        check_no_leak(store)
    assert shares(directory) == (3, 1)


def test_a_slot_that_was_half_overwritten_is_not_kept() -> None:
    """`never-wrong`: 2 and 1 were not to be kept, so a save may have begun to write over them."""
    directory = used()
    overwrite_half(directory, 2)
    with Store.open(directory, new_run=True, keep=3) as store:
        store._started()
        check_kept(store, [4, 3, 1])
        check_no_leak(store)
        assert any("step 2" in reason for reason in store.passed_over)


def test_nor_is_it_when_a_newer_one_is_damaged() -> None:
    directory = used()
    overwrite_half(directory, 4)
    overwrite_half(directory, 2)
    with Store.open(directory, new_run=True) as store:
        store._started()
        check_kept(store, [3, 1])
        check_no_leak(store)


def test_nothing_changes_before_a_save() -> None:
    directory = used()
    before = directory.contents()
    with Store.open(directory, new_run=True, keep=3) as store:
        store.read()
    assert directory.contents() == before


@pytest.mark.parametrize(
    "asked", [{"keep": 4}, {"keep": 0}, {"keep": 2, "in_flight": 3}, {"in_flight": 4}, {"in_flight": 1, "keep": 1}]
)
def test_shares_that_do_not_add_up_are_refused(asked: dict[str, Any]) -> None:
    directory = used()
    before = directory.contents()
    with pytest.raises(WrongGeometry, match=r"in_flight|keep"):
        Store.open(directory, **asked)
    assert directory.contents() == before
    with Store.open(directory, new_run=True) as store:
        save(store, 7)


def test_a_share_is_a_whole_number() -> None:
    with pytest.raises(TypeError, match=r"keep=1\.5: give a whole number"):
        Store.open(used(), keep=1.5)  # type: ignore[arg-type]
