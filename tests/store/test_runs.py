"""Whose checkpoints these are: saves continue the run of what was read, and a used store is not taken over unasked."""

from __future__ import annotations

from typing import Any

import pytest

from lastgood.core import NoStore, OtherRun, Store
from lastgood.core.memory import MemoryDirectory
from tests.store.small import check_kept, check_no_leak, create, payload_of, save


@pytest.fixture
def used() -> Any:
    """A directory with a store that keeps steps 3 and 2, and its run."""
    directory = MemoryDirectory()
    with create(directory) as store:
        for step in (1, 2, 3):
            save(store, step)
        return directory, store.run


def test_saving_into_a_used_store_without_restoring_is_refused(used: Any) -> None:
    directory, _ = used
    before = {name: device.content.tobytes() for name, device in directory.files.items()}
    with Store.open(directory) as store:
        with pytest.raises(OtherRun, match="restore from it first, or give new_run=True"):
            store.save(payload_of(9), step=9)
        assert {name: device.content.tobytes() for name, device in directory.files.items()} == before
        check_kept(store, [3, 2])
        assert store.statistics().saves == 0


@pytest.mark.parametrize("how", ["read", "read step", "read record", "read_with_record", "continue_run"])
def test_restoring_first_continues_the_run(used: Any, how: str) -> None:
    directory, run = used
    with Store.open(directory) as store:
        assert store.run != run
        calls = {
            "read": store.read,
            "read step": lambda: store.read(step=2),
            "read record": lambda: store.read(store.records()[1]),
            "read_with_record": store.read_with_record,
            "continue_run": store.continue_run,
        }
        calls[how]()
        assert store.run == run
        assert save(store, 4).run.hex() == run
        check_kept(store, [4, 3])
        check_no_leak(store)


def test_a_read_that_fails_is_no_restore(used: Any) -> None:
    directory, _ = used
    with Store.open(directory) as store:
        with pytest.raises(NoStore, match=r"no checkpoint of step 7 .* steps \[2, 3\]"):
            store.read(step=7)
        with pytest.raises(OtherRun):
            save(store, 4)


def test_a_store_that_was_only_created_may_be_used_by_anybody() -> None:
    directory = MemoryDirectory()
    create(directory).close()
    with Store.open(directory) as store:
        save(store, 1)
        check_kept(store, [1])


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_a_new_run_leaves_the_old_ones_newest_until_it_has_enough_of_its_own(keep: int) -> None:
    directory = MemoryDirectory()
    with create(directory, keep=keep) as store:
        for step in (101, 102, 103, 104):
            save(store, step)
        old_run, old_sequence = store.run, store.newest().sequence
    with Store.open(directory, new_run=True) as store:
        assert store.run != old_run
        old = [104, 103, 102][:keep]
        for step in range(1, keep + 3):
            record = save(store, step)
            assert record.run.hex() == store.run
            assert record.sequence > old_sequence
            own = list(range(step, 0, -1))
            check_kept(store, [*own, *old][:keep])
            if step < keep:
                assert 104 in [record.step for record in store.records()]
        check_no_leak(store)


def test_two_runs_at_the_same_step_are_told_apart(used: Any) -> None:
    directory, run = used
    with Store.open(directory, new_run=True) as store:
        save(store, 3)
        records = store.records()
        assert [record.step for record in records] == [3, 3]
        assert records[0].run != records[1].run == bytes.fromhex(run)


def test_sequences_go_on_after_reopening() -> None:
    """`monotone`: through many openings, with saves, without, and read-only, a sequence is never given out twice."""
    directory = MemoryDirectory()
    sequences = []
    create(directory).close()
    for opening in range(6):
        with Store.open(directory) as store:
            if sequences:
                store.read()
            for step in range(opening):
                sequences.append(save(store, step).sequence)
        with Store.open(directory, read_only=True) as store:
            assert not sequences or store.newest().sequence == sequences[-1]
    assert sequences == sorted(set(sequences))


def test_reopening_keeps_what_was_kept_and_frees_the_rest() -> None:
    directory = MemoryDirectory()
    with create(directory, in_flight=3, keep=2) as store:
        for step in range(1, 9):
            save(store, step)
    for step in range(9, 12):
        with Store.open(directory) as store:
            check_kept(store, [step - 1, step - 2])
            store.read()
            save(store, step)
            check_kept(store, [step, step - 1])
            check_no_leak(store)


def test_a_read_only_store_has_no_run_and_no_staging_memory(used: Any) -> None:
    with Store.open(used[0], read_only=True) as store:
        assert (store.run, store.staging_bytes, store.statistics().saves) == ("", 0, 0)
        assert store.marked


def test_marked_says_whether_anything_was_ever_acknowledged() -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        assert not store.marked
        save(store, 1)
        assert store.marked
    with Store.open(directory, read_only=True) as store:
        assert store.marked
