"""A resumed run sees the batches that the uninterrupted one would have seen, and the next epoch is a new order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from lastgood.models import ResumableSampler
from lastgood.models.decode import decode
from lastgood.models.encode import encode


def restored(sampler: ResumableSampler, **options: Any) -> ResumableSampler:
    """What a new process has after restoring this sampler's state."""
    state = decode(encode(sampler.state_dict()).to_bytes()).state
    fresh = ResumableSampler(len(sampler), state["seed"], shuffle=state["shuffle"], **options)
    fresh.load_state_dict(state)
    return fresh


def epochs(sampler: ResumableSampler, size: int, count: int, drop_last: bool = False) -> list[tuple[int, list[int]]]:
    """(epoch, batch) of a loop over `count` epochs in all."""
    return [
        (epoch, batch) for epoch in range(sampler.epoch, count) for batch in sampler.batches(size, drop_last=drop_last)
    ]


@given(st.integers(1, 23), st.integers(1, 9), st.integers(0, 30), st.integers(0, 2**64 - 1), st.booleans())
def test_stopping_after_any_batch_changes_nothing(
    length: int, size: int, stop: int, seed: int, drop_last: bool
) -> None:
    drop_last = drop_last and size <= length
    expected = epochs(ResumableSampler(length, seed), size, 3, drop_last)
    sampler = ResumableSampler(length, seed)
    seen: list[tuple[int, list[int]]] = []
    for epoch in range(3):
        for batch in sampler.batches(size, drop_last=drop_last):
            seen.append((epoch, batch))
            if len(seen) == stop:
                assert seen + epochs(restored(sampler), size, 3, drop_last) == expected
    assert seen == expected


def test_stopping_between_two_epochs_goes_on_with_the_next() -> None:
    """A save in the code after an epoch's loop must not run that epoch's end again, nor skip the next one."""
    sampler = ResumableSampler(10, seed=3)
    list(sampler.batches(4))
    after = restored(sampler)
    assert (after.epoch, after.position) == (0, 10)
    assert list(after) == list(sampler)
    assert after.epoch == 1


def test_stopping_after_the_last_batch_still_ends_that_epoch() -> None:
    sampler = ResumableSampler(10, seed=3)
    batches = iter(sampler.batches(5))
    next(batches), next(batches)
    after = restored(sampler)
    assert list(after) == [], "the loop's body is over, the code after the loop is still to run"
    assert after.epoch == 0
    assert len(list(after)) == 10
    assert after.epoch == 1


def test_every_epoch_is_a_new_order_of_all_samples() -> None:
    sampler = ResumableSampler(100, seed=1)
    orders = [tuple(sampler) for _ in range(5)]
    assert len(set(orders)) == 5
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert [tuple(ResumableSampler(100, seed=seed)) for seed in (1, 1, 2)].count(orders[0]) == 2
    assert list(ResumableSampler(5, shuffle=False)) == [0, 1, 2, 3, 4]


def test_an_order_is_the_same_on_every_machine_and_release() -> None:
    """Kept in saved runs for ever: a resume with another order would repeat samples and leave others out."""
    assert list(ResumableSampler(8, seed=7 + 2**33)) == [3, 7, 4, 1, 6, 5, 0, 2]
    assert list(ResumableSampler(8, seed=7)) == [6, 0, 5, 2, 4, 3, 1, 7]


def test_no_global_stream_is_drawn_from() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    list(ResumableSampler(50, seed=1).batches(4))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("size", [3, 5])
def test_in_a_data_loader(size: int) -> None:
    data = torch.arange(17) * 10

    def loader(sampler: ResumableSampler) -> DataLoader[Any]:
        return DataLoader(data, batch_sampler=sampler.batches(size), generator=torch.Generator())

    def rows(sampler: ResumableSampler, count: int) -> list[list[int]]:
        return [batch.tolist() for epoch in range(sampler.epoch, count) for batch in loader(sampler)]

    expected = rows(ResumableSampler(17, seed=5), 3)
    for stop in range(1, len(expected)):
        sampler = ResumableSampler(17, seed=5)
        seen: list[list[int]] = []
        for _ in range(3):
            for batch in loader(sampler):
                seen.append(batch.tolist())
                if len(seen) == stop:
                    break
            if len(seen) == stop:
                break
        torch.manual_seed(1)
        stream = torch.get_rng_state()
        assert seen + rows(restored(sampler), 3) == expected
        assert torch.get_rng_state().equal(stream), "with a generator of its own, a loader leaves the global one alone"


def test_as_the_sampler_of_a_data_loader() -> None:
    data = torch.arange(12)
    expected = list(ResumableSampler(12, seed=5))
    sampler = ResumableSampler(12, seed=5)
    batches = iter(DataLoader(data, sampler=sampler, batch_size=4))
    assert next(batches).tolist() == expected[:4]
    after = restored(sampler)
    assert after.position == 4
    assert [batch.tolist() for batch in DataLoader(data, sampler=after, batch_size=4)] == [expected[4:8], expected[8:]]
    assert len(DataLoader(data, sampler=after, batch_size=5)) == 3


def test_counted_by_hand_the_position_is_that_of_the_updates_not_of_the_readers() -> None:
    """A loader with workers asks for batches ahead: counted as handed out, those were lost at a resume."""
    expected = epochs(ResumableSampler(10, seed=2), 3, 2)
    sampler = ResumableSampler(10, seed=2, automatic=False)
    ahead: Iterator[list[int]] = iter(list(sampler.batches(3)))
    seen = []
    for _ in range(2):
        batch = next(ahead)
        seen.append((0, batch))
        sampler.consumed(len(batch))
    assert sampler.position == 6
    assert seen + epochs(restored(sampler), 3, 2) == expected
    for batch in ahead:
        sampler.consumed(len(batch))
    assert [batch for _, batch in expected[4:]] == list(restored(sampler, automatic=False).batches(3))
    assert list(sampler.batches(3)) == [batch for _, batch in expected[4:]]


def test_endless_batches_go_on_into_the_next_epochs() -> None:
    sampler = ResumableSampler(7, seed=4)
    batches = iter(sampler.batches(3, endless=True))
    assert [next(batches) for _ in range(7)] == [batch for _, batch in epochs(ResumableSampler(7, seed=4), 3, 3)][:7]
    assert len(sampler.batches(3)) == 3
    assert len(sampler.batches(3, drop_last=True)) == 2


def test_mistakes_are_told() -> None:
    sampler = ResumableSampler(5, seed=1)
    state = sampler.state_dict()
    for other in ({"length": 6}, {"seed": 2}, {"shuffle": False}, {"position": 6}, {"epoch": -1}):
        with pytest.raises(ValueError, match="sampler"):
            sampler.load_state_dict(state | other)
    assert sampler.state_dict() == state
    with pytest.raises(ValueError, match="automatic=False"):
        sampler.consumed(1)
    with pytest.raises(ValueError, match="5 samples are left"):
        ResumableSampler(5, automatic=False).consumed(6)
    for mistake in (lambda: ResumableSampler(0), lambda: ResumableSampler(1, seed=-1), lambda: sampler.batches(0)):
        with pytest.raises(ValueError, match="="):
            mistake()
    with pytest.raises(ValueError, match="make no batch"):
        sampler.batches(6, drop_last=True)
