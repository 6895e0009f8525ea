"""A loader for training that resumes at the very sample: workers, prefetching, shards, and epochs of any length.

    loader = ResumableLoader(dataset, batch_size=32, seed=1, num_workers=4)
    ckpt = Checkpointer(directory, {"model": model, "optimizer": optimizer, "data": loader})
    step = ckpt.restore()
    for epoch in range(loader.epoch, epochs):
        for batch in loader:                       # the epoch, or what a resume left of it
            ...                                    # forward, backward, update
            step += 1
            ckpt.step(step)

or `ResumableLoader.around(DataLoader(...))`, which takes over the options of a loader that is there already.

D1 consumed       the position counts samples of batches whose update was completed, as `ckpt.step` says; what workers have
                  fetched ahead, or the loop has drawn since, is drawn again after a resume
D2 own-order      the order is a function of (seed, epoch, length): nothing that happened before has a part in it
D3 own-chance     what an item's own code draws at random depends on (seed, epoch, sample) only, not on which worker made it,
                  so a resume with another number of workers sees the same augmentations; `seed_items=False` turns it off
D4 no-trace       iterating draws nothing from the global random streams of the training's process

    state: (length, seed, shuffle, shards, epoch, position, ended)      position: samples of this shard, in this epoch
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, get_worker_info
from torch.utils.data.distributed import DistributedSampler

from lastgood.core.incoming import whole_number

from .sampler import epoch_order, seed_words

OPTIONS = (
    "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "prefetch_factor",
    "persistent_workers",
)  # fmt: skip
"""What `around` takes over from another loader, besides its batches."""


class Place(NamedTuple):
    """Where in the data the training stands."""

    epoch: int
    position: int
    ended: bool


class ResumableLoader:
    """Batches of a dataset, epoch after epoch, with a position that is saved and restored."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        shards: int = 1,
        shard: int = 0,
        seed_items: bool = True,
        **options: Any,
    ) -> None:
        """`shards` processes see one `shard` each, all equally long; further options are those of a DataLoader."""
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
            raise TypeError(f"{type(dataset).__name__} has no length: a place in it cannot be found again by number")
        for name, value in (("batch_size", batch_size), ("seed", seed), ("shards", shards), ("shard", shard)):
            whole_number(name, value)
        if not 0 <= shard < shards or batch_size < 1 or len(dataset) < 1:
            raise ValueError(
                f"batch_size={batch_size}, shard={shard} of {shards}, {len(dataset)} samples: nothing to draw"
            )
        if misplaced := {"sampler", "batch_sampler", "generator"} & set(options):
            raise ValueError(f"{', '.join(sorted(misplaced))}: the order is the loader's own; give seed and shuffle")
        if not options.get("in_order", True):
            raise ValueError("in_order=False: batches that overtake each other have no place to resume from")
        self._length, self._seed, self._shuffle = len(dataset), int(seed), bool(shuffle)
        seed_words(self._seed, 0)
        self._batch_size, self._drop_last = int(batch_size), bool(drop_last)
        self._shards, self._shard = int(shards), int(shard)
        self._drawn = self._completed = Place(0, 0, False)
        self._follows_updates = False
        self._ahead: deque[int] = deque()
        self._generator = torch.Generator()
        items = SeededItems(dataset, self._seed) if seed_items else PlainItems(dataset)
        self._loader = DataLoader(items, batch_sampler=_Ahead(self), generator=self._generator, **options)

    @classmethod
    def around(cls, loader: DataLoader[Any], *, seed: int = 0, seed_items: bool = True) -> ResumableLoader:
        """The same dataset, batch size and options as another loader's; the order is new, by `seed`."""
        sampler = loader.sampler
        if loader.batch_size is None:
            raise ValueError("this loader has a batch_sampler of its own: give dataset and batch_size instead")
        options = {name: getattr(loader, name) for name in OPTIONS}
        shards, shard = 1, 0
        if isinstance(sampler, DistributedSampler):
            shards, shard, shuffle = sampler.num_replicas, sampler.rank, sampler.shuffle
        elif isinstance(sampler, RandomSampler) and not sampler.replacement and sampler.num_samples == len(sampler):
            shuffle = True
        elif isinstance(sampler, SequentialSampler):
            shuffle = False
        else:
            raise ValueError(f"a {type(sampler).__name__} has an order of its own: give dataset and shuffle instead")
        return cls(
            loader.dataset, loader.batch_size, seed=seed, shuffle=shuffle, drop_last=loader.drop_last, shards=shards,
            shard=shard, seed_items=seed_items, **options,
        )  # fmt: skip

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration will be of: the one under way, or the next when that one has ended."""
        return self._drawn.epoch + self._drawn.ended

    @property
    def shard_length(self) -> int:
        """Samples of one epoch in this shard. All shards are equally long: some samples come twice, to fill up."""
        return self._length // self._shards if self._drop_last else -(-self._length // self._shards)

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        length = self.shard_length
        return length // self._batch_size if self._drop_last else -(-length // self._batch_size)

    def __iter__(self) -> Iterator[Any]:
        """The batches that are left of the epoch under way, or those of the next one when it has ended."""
        if self._drawn.ended:
            self._drawn = Place(self._drawn.epoch + 1, 0, False)
        self._ahead.clear()
        self._generator.manual_seed(
            int(numpy.random.SeedSequence([self._seed, self._drawn.epoch]).generate_state(1)[0])
        )
        for batch in self._loader:
            epoch, position, _ = self._drawn
            self._drawn = Place(epoch, position + self._ahead.popleft(), False)
            yield batch
        self._drawn = self._drawn._replace(ended=True)

    def _batches_ahead(self) -> Iterator[list[tuple[int, int]]]:
        """What is left of the epoch, for the DataLoader, which may ask for it long before it is used."""
        epoch, at, _ = self._drawn
        ids = self._ids(epoch)
        while at + (self._batch_size if self._drop_last else 1) <= len(ids):
            chosen = ids[at : at + self._batch_size].tolist()
            at += len(chosen)
            self._ahead.append(len(chosen))
            yield [(epoch, number) for number in chosen]

    def _ids(self, epoch: int) -> numpy.ndarray:
        order = epoch_order(self._length, self._seed, epoch, self._shuffle)
        whole = self.shard_length * self._shards
        return numpy.resize(order, whole)[self._shard :: self._shards]

    # --- the position ------------------------------------------------------------------------------------------------

    def follow_updates(self) -> None:
        """From now on the position is what `completed` says. Called by a Checkpointer that has this among its parts."""
        self._follows_updates = True
        self._completed = self._drawn

    def completed(self) -> None:
        """An update has used up everything that was drawn so far (D1)."""
        self._completed = self._drawn

    def state_dict(self) -> dict[str, Any]:
        """Where the training stands, as plain values."""
        place = self._completed if self._follows_updates else self._drawn
        return {
            "length": self._length, "seed": self._seed, "shuffle": self._shuffle, "shards": self._shards,
            "epoch": place.epoch, "position": place.position, "ended": place.ended,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where `state` stands. Raises ValueError, before any change, when it is of another order."""
        for name, here in (("length", self._length), ("seed", self._seed), ("shuffle", self._shuffle)):
            if state[name] != here:
                raise ValueError(f"the loader was saved with {name}={state[name]}, here it has {name}={here}")
        epoch, ended = int(state["epoch"]), bool(state["ended"])
        position, rest = divmod(int(state["position"]) * int(state["shards"]), self._shards)
        if rest and not ended:
            raise ValueError(
                f"{state['position']} samples in each of {state['shards']} shards do not divide among {self._shards}"
            )
        if epoch < 0 or position < 0 or (position > self.shard_length and state["shards"] == self._shards):
            raise ValueError(f"not a position of this loader: epoch {epoch}, sample {position} of {self.shard_length}")
        self._drawn = self._completed = Place(epoch, min(position, self.shard_length), ended)


class _Ahead:
    """The DataLoader's view of the order: batches from where the training stands."""

    def __init__(self, loader: ResumableLoader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        return self._loader._batches_ahead()


class PlainItems:
    """A dataset, asked by (epoch, sample)."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, key: tuple[int, int]) -> Any:
        """The sample."""
        return self.dataset[key[1]]


class SeededItems(PlainItems):
    """The same, with random streams that depend on nothing but the seed, the epoch and the sample (D3, D4)."""

    def __init__(self, dataset: Any, seed: int) -> None:
        super().__init__(dataset)
        self._seed = seed

    def __getitem__(self, key: tuple[int, int]) -> Any:
        """The sample, made with streams of its own; the streams around it are left as they were."""
        epoch, number = key
        kept = None
        if get_worker_info() is None:
            kept = random.getstate(), numpy.random.get_state(), torch.default_generator.get_state()
        words = [*seed_words(self._seed, epoch), number % 2**32, number // 2**32]
        random.seed(int.from_bytes(numpy.array(words, "<u4").tobytes(), "little"))
        numpy.random.seed(words)
        torch.default_generator.manual_seed(random.getrandbits(63))
        try:
            return self.dataset[number]
        finally:
            if kept is not None:
                random.setstate(kept[0])
                numpy.random.set_state(kept[1])
                torch.default_generator.set_state(kept[2])
