"""Wherever a run is cut, the samples that remain and the order of the next epochs are those of the run that never stopped."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

import lastgood.models as lm
from lastgood.core.memory import MemoryDirectory
from lastgood.models.loader import ResumableLoader

SAMPLES = 23


class Numbers(Dataset[Any]):
    """Each sample says its number and what it drew at random on the way."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.tensor([number, random.random(), np.random.rand(), torch.rand(()).item()], dtype=torch.float64)


class PlainNumbers(Numbers):
    def __getitem__(self, number: int) -> Any:
        return number


Seen = list[tuple[int, tuple[Any, ...]]]


def train(loader: Any, ckpt: Any, start: int, epochs: int, stop: int | None = None) -> Seen:
    """What each step used, with the epoch it believed to be in; stops, as in a crash, right after `ckpt.step(stop)`."""
    seen: Seen = []
    step = start
    for epoch in range(loader.epoch, epochs):
        for batch in loader:
            seen.append((epoch, tuple(torch.as_tensor(batch).flatten().tolist())))
            step += 1
            ckpt.step(step)
            if step == stop:
                return seen
    return seen


class NoCheckpointer:
    def step(self, step: int) -> None:
        pass


SETTINGS: list[dict[str, Any]] = [
    {},
    {"shuffle": False},
    {"drop_last": True},
    {"batch_size": 1},
    {"batch_size": SAMPLES},
    {"shards": 3, "shard": 1},
    {"shards": 3, "shard": 2, "drop_last": True},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings)) or "plain")
def test_crash_at_every_step_of_two_epochs(settings: dict[str, Any]) -> None:
    settings = {"batch_size": 4, "seed": 5} | settings
    whole = train(ResumableLoader(Numbers(), **settings), NoCheckpointer(), 0, epochs=3)
    per_epoch = len(ResumableLoader(Numbers(), **settings))
    assert len(whole) == 3 * per_epoch
    for crash in range(1, 2 * per_epoch + 1):
        directory = MemoryDirectory()
        first = ResumableLoader(Numbers(), **settings)
        ckpt = lm.Checkpointer(directory, {"data": first}, every=1)
        before = train(first, ckpt, 0, epochs=3, stop=crash)
        ckpt.close()
        second = ResumableLoader(Numbers(), **settings)
        with lm.Checkpointer(directory, {"data": second}, every=1) as ckpt:
            assert ckpt.restore() == crash
            after = train(second, ckpt, crash, epochs=3)
        assert before + after == whole, f"cut after step {crash}"


def test_every_sample_once_an_epoch_and_another_order_in_the_next() -> None:
    loader = ResumableLoader(PlainNumbers(), 4, seed=2)
    epochs = [[number for batch in loader for number in batch.tolist()] for _ in range(3)]
    assert all(sorted(each) == list(range(SAMPLES)) for each in epochs)
    assert len({tuple(each) for each in epochs}) == 3
    assert loader.epoch == 3


def test_shards_share_an_epoch_and_are_equally_long() -> None:
    shards = [
        [n for batch in ResumableLoader(PlainNumbers(), 4, shards=3, shard=r) for n in batch.tolist()] for r in range(3)
    ]
    assert [len(each) for each in shards] == [8, 8, 8]
    assert set().union(*shards) == set(range(SAMPLES))


def test_workers_may_be_as_many_as_they_like(tmp_path: Path) -> None:
    """Saved with two workers that had fetched ahead, resumed with none, then with one that stays: nothing twice, nothing
    left out, and what the samples drew at random is the same."""
    whole = train(ResumableLoader(Numbers(), 3, seed=9), NoCheckpointer(), 0, epochs=2)
    seen: Seen = []
    crashes = iter((3, 7, 11, None))
    for workers in ({"num_workers": 2, "prefetch_factor": 4}, {"num_workers": 0},
                    {"num_workers": 1, "persistent_workers": True}, {"num_workers": 2}):  # fmt: skip
        loader = ResumableLoader(Numbers(), 3, seed=9, **workers)
        with lm.Checkpointer(tmp_path / "store", {"data": loader}, every=1) as ckpt:
            seen += train(loader, ckpt, ckpt.restore(), epochs=2, stop=next(crashes))
    assert seen == whole


def test_what_was_drawn_but_not_used_by_an_update_is_drawn_again(tmp_path: Path) -> None:
    """SIGTERM while the next batch is there already: the position is that of the last completed update."""
    loader = ResumableLoader(PlainNumbers(), 4, seed=1)
    with lm.Checkpointer(tmp_path / "store", {"data": loader}, every=100, sigterm_grace=30) as ckpt:
        batches = iter(loader)
        next(batches)
        ckpt.step(1)
        drawn = next(batches).tolist()
        ckpt._preemption.note()
        with pytest.raises(SystemExit):
            ckpt.poll()
    again = ResumableLoader(PlainNumbers(), 4, seed=1)
    with lm.Checkpointer(tmp_path / "store", {"data": again}) as ckpt:
        assert ckpt.restore() == 1
        assert next(iter(again)).tolist() == drawn


def test_iterating_draws_nothing_from_the_global_streams() -> None:
    state = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    for _ in ResumableLoader(Numbers(), 4):
        pass
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == state


def test_left_in_the_middle_an_epoch_goes_on_where_it_was() -> None:
    loader = ResumableLoader(PlainNumbers(), 5, shuffle=False)
    first = next(iter(loader)).tolist()
    rest = [n for batch in loader for n in batch.tolist()]
    assert first + rest == list(range(SAMPLES))


def test_another_batch_size_and_another_number_of_shards_go_on_from_the_same_sample() -> None:
    loader = ResumableLoader(PlainNumbers(), 4, seed=3, shards=2)
    batches = iter(loader)
    next(batches), next(batches), next(batches)
    state = loader.state_dict()
    order = [n for batch in ResumableLoader(PlainNumbers(), 1, seed=3) for n in batch.tolist()]
    alone = ResumableLoader(PlainNumbers(), 6, seed=3)
    alone.load_state_dict(state)
    assert [n for batch in alone for n in batch.tolist()] == order[24:]
    three = ResumableLoader(PlainNumbers(), 6, seed=3, shards=3, shard=1)
    three.load_state_dict(loader.state_dict() | {"position": 6})
    with pytest.raises(ValueError, match="do not divide among 3"):
        three.load_state_dict(loader.state_dict() | {"position": 7})


def test_around_a_loader_that_is_there_already() -> None:
    data = PlainNumbers()
    around = ResumableLoader.around(DataLoader(data, batch_size=5, shuffle=True, drop_last=True), seed=4)
    assert len(around) == 4
    assert [len(batch) for batch in around] == [5, 5, 5, 5]
    assert [n for batch in ResumableLoader.around(DataLoader(data, 5)) for n in batch.tolist()] == list(range(SAMPLES))
    sharded = DataLoader(data, 5, sampler=DistributedSampler(data, num_replicas=2, rank=1))
    assert ResumableLoader.around(sharded).shard_length == 12
    with pytest.raises(ValueError, match="WeightedRandomSampler has an order of its own"):
        ResumableLoader.around(DataLoader(data, 5, sampler=WeightedRandomSampler([1.0] * SAMPLES, 9)))


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(5))


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: ResumableLoader(Stream(), 4), "Stream has no length"),
        (lambda: ResumableLoader(PlainNumbers(), 0), "batch_size=0"),
        (lambda: ResumableLoader(PlainNumbers(), 2.5), "batch_size=2.5: give a whole number"),
        (lambda: ResumableLoader(PlainNumbers(), "4"), "batch_size='4': give a whole number"),
        (lambda: ResumableLoader(PlainNumbers(), 4, seed=None), "seed=None: give a whole number"),
        (lambda: lm.ResumableSampler(7.5), "length=7.5: give a whole number"),
        (lambda: ResumableLoader(PlainNumbers(), 4, shards=2, shard=2), "shard=2 of 2"),
        (lambda: ResumableLoader(PlainNumbers(), 4, seed=-1), "seed=-1"),
        (lambda: ResumableLoader(PlainNumbers(), 4, sampler=[1]), "give seed and shuffle"),
        (lambda: ResumableLoader(PlainNumbers(), 4, in_order=False), "in_order=False"),
        (lambda: ResumableLoader.around(DataLoader(PlainNumbers(), batch_size=None)), "batch_sampler of its own"),
        (lambda: ResumableLoader(PlainNumbers(), 4).load_state_dict(
            ResumableLoader(PlainNumbers(), 4, seed=1).state_dict()), "saved with seed=1, here it has seed=0"),
    ],
    ids=range(12),
)  # fmt: skip
def test_mistakes_are_told_in_one_line(make: Any, phrase: str) -> None:
    with pytest.raises((TypeError, ValueError), match=phrase) as problem:
        make()
    assert "\n" not in str(problem.value)


class TakenAsItIs:
    """A loader with a state of its own, like torchdata's StatefulDataLoader: nested, with bytes, tensors and None."""

    def __init__(self) -> None:
        self.drawn, self.epoch = 0, 0

    def __iter__(self) -> Any:
        while self.drawn < 7:
            self.drawn += 1
            yield torch.tensor([self.epoch * 7 + self.drawn])
        self.drawn, self.epoch = 0, self.epoch + 1

    def state_dict(self) -> dict[str, Any]:
        return {
            "_snapshot": {"_snapshot_step": self.drawn, "_main_snapshot": {"_sampler_iter_state": None, "epoch": self.epoch}},
            "_steps_since_snapshot": 0, "_iterator_finished": False, "_base_seed": torch.tensor(3), "raw": b"\\x00",
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drawn = state["_snapshot"]["_snapshot_step"]
        self.epoch = state["_snapshot"]["_main_snapshot"]["epoch"]


def test_a_loader_with_a_state_of_its_own_is_taken_as_it_is(tmp_path: Path) -> None:
    whole = train(TakenAsItIs(), NoCheckpointer(), 0, epochs=2)
    for crash in range(1, 7):
        first = TakenAsItIs()
        with lm.Checkpointer(tmp_path / str(crash), {"data": first}, every=1) as ckpt:
            before = train(first, ckpt, 0, 2, stop=crash)
        second = TakenAsItIs()
        with lm.Checkpointer(tmp_path / str(crash), {"data": second}, every=1) as ckpt:
            assert before + train(second, ckpt, ckpt.restore(), 2) == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_torchdatas_loader(tmp_path: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def make() -> Any:
        sampler = lm.ResumableSampler(SAMPLES, seed=1)
        return stateful.StatefulDataLoader(PlainNumbers(), batch_size=4, sampler=sampler, num_workers=workers)

    def drawn(loader: Any, ckpt: Any, start: int, stop: int) -> list[list[int]]:
        seen = []
        for step, batch in enumerate(loader, start + 1):
            seen.append(batch.tolist())
            ckpt.step(step)
            if step == stop:
                break
        return seen

    whole = drawn(make(), NoCheckpointer(), 0, 6)
    for crash in range(1, 6):
        first = make()
        with lm.Checkpointer(tmp_path / str(crash), {"data": first}, every=1) as ckpt:
            before = drawn(first, ckpt, 0, crash)
        second = make()
        with lm.Checkpointer(tmp_path / str(crash), {"data": second}, every=1) as ckpt:
            assert before + drawn(second, ckpt, ckpt.restore(), 6) == whole
