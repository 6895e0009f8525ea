"""An order of samples that a resumed run takes up where the saved one stood: nothing twice, nothing left out.

The order of an epoch is a function of (seed, epoch, length) alone, by numpy's MT19937 generator, whose numbers do not
change between releases; no global random stream is drawn from. The position counts samples handed out. In a loop that
asks for a batch, updates, then calls `ckpt.step`, that is the samples consumed by completed updates:

    sampler = ResumableSampler(len(data), seed=1)
    for epoch in range(sampler.epoch, epochs):
        for batch in sampler.batches(32):              # lists of sample ids; the rest of the epoch after a resume
            ...
            ckpt.step(step)

The same with `DataLoader(data, batch_sampler=sampler.batches(32), generator=torch.Generator())`. The generator matters:
without one, every new iterator of a DataLoader draws a number from torch's global stream, and a resume makes one
iterator more than the uninterrupted run did. `DataLoader(data, sampler=sampler, batch_size=32, ...)` works as well;
when the last batch of an epoch is short, that epoch counts as over as soon as this batch has been drawn.

A DataLoader with workers asks for batches ahead of the updates: `ResumableLoader` (`loader.py`) takes care of that. With a
loader of your own, pass `automatic=False` and say after each update
how many samples it took: `sampler.consumed(len(batch))`.

    state: (seed, length, shuffle, epoch, position, ended)      0 <= position <= length
    ended: iteration over this epoch came to its end; the next iteration is of the next epoch
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
from torch.utils.data import Sampler

from lastgood.core.incoming import whole_number


def seed_words(seed: int, epoch: int) -> list[int]:
    """What the order of an epoch is made from, for numpy's generator. Raises ValueError for a seed that is no such."""
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed={seed}: choose one from 0 to 2**64 - 1")
    return [seed % 2**32, seed // 2**32, epoch % 2**32, epoch // 2**32]


def epoch_order(length: int, seed: int, epoch: int, shuffle: bool) -> numpy.ndarray:
    """The order of an epoch's samples: the same for ever, by a generator that numpy has frozen, unlike newer ones."""
    if not shuffle:
        return numpy.arange(length)
    return numpy.random.RandomState(seed_words(seed, epoch)).permutation(length)


class ResumableSampler(Sampler[int]):
    """Sample ids 0 … length − 1, shuffled anew each epoch, with a position that is saved and restored."""

    def __init__(self, length: int, seed: int = 0, *, shuffle: bool = True, automatic: bool = True) -> None:
        whole_number("length", length)
        whole_number("seed", seed)
        if length < 1:
            raise ValueError(f"length={length}: a sampler needs at least one sample")
        seed_words(seed, 0)
        self._length = int(length)
        self._seed = int(seed)
        self._shuffle = bool(shuffle)
        self._automatic = bool(automatic)
        self._epoch = 0
        self._position = 0
        self._ended = False
        self._end = 0  # where iteration ended: counted by hand, the position may still be behind it

    @property
    def epoch(self) -> int:
        """The epoch that is under way, or has just ended."""
        return self._epoch

    @property
    def position(self) -> int:
        """Samples of this epoch that are done with."""
        return self._position

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        """The sample ids that are left of the epoch, or all of the next one when iteration over this one had ended."""
        for ids in self._walk(1):
            yield ids[0]

    def batches(self, size: int, *, drop_last: bool = False, endless: bool = False) -> Batches:
        """Lists of `size` sample ids, for iterating or as the `batch_sampler` of a DataLoader.

        The last list of an epoch may be shorter, or is dropped. `endless` goes on with the next epoch by itself.
        """
        if size < 1:
            raise ValueError(f"size={size}: a batch needs at least one sample")
        if drop_last and size > self._length:
            raise ValueError(f"size={size} with drop_last: {self._length} samples make no batch")
        return Batches(self, size, drop_last, endless)

    def consumed(self, count: int) -> None:
        """Say that an update used up the next `count` samples of the epoch (only with `automatic=False`)."""
        if self._automatic:
            raise ValueError("this sampler counts by itself: make it with automatic=False to call consumed()")
        if not 0 <= count <= self._length - self._position:
            raise ValueError(f"consumed({count}): {self._length - self._position} samples are left in the epoch")
        self._position += count

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, as plain values."""
        return {
            "length": self._length,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "epoch": self._epoch,
            "position": self._position,
            "ended": self._ended and self._position >= self._end,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where `state` stands. Raises ValueError, before any change, when it is of another order."""
        for name, here in (("length", self._length), ("seed", self._seed), ("shuffle", self._shuffle)):
            if state[name] != here:
                raise ValueError(f"the sampler was saved with {name}={state[name]}, here it has {name}={here}")
        epoch, position, ended = int(state["epoch"]), int(state["position"]), bool(state["ended"])
        if epoch < 0 or not 0 <= position <= self._length:
            raise ValueError(f"not a position of this sampler: epoch {epoch}, sample {position} of {self._length}")
        self._epoch, self._position, self._ended, self._end = epoch, position, ended, position

    def _order(self) -> numpy.ndarray:
        return epoch_order(self._length, self._seed, self._epoch, self._shuffle)

    def _walk(self, size: int, drop_last: bool = False) -> Iterator[list[int]]:
        """One epoch, or what is left of it, in lists of `size`."""
        if self._ended:
            self._epoch, self._position, self._ended = self._epoch + 1, 0, False
        order = self._order()
        at = self._position
        while at + (size if drop_last else 1) <= self._length:
            ids = order[at : at + size].tolist()
            at += len(ids)
            if self._automatic:
                self._position = at
            yield ids
        self._ended = True
        self._end = at


class Batches:
    """Batches of a sampler's ids; each iteration over it is one epoch, or what is left of one."""

    def __init__(self, sampler: ResumableSampler, size: int, drop_last: bool, endless: bool) -> None:
        self._sampler = sampler
        self._size = size
        self._drop_last = drop_last
        self._endless = endless

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        length = len(self._sampler)
        return length // self._size if self._drop_last else -(-length // self._size)

    def __iter__(self) -> Iterator[list[int]]:
        yield from self._sampler._walk(self._size, self._drop_last)
        while self._endless:
            yield from self._sampler._walk(self._size, self._drop_last)
