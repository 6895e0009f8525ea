"""Opening the store that a state goes into, making it when there is none, with room for what the state will be.

Every slot is reserved on the disk at once, so room to spare is paid for in each of them: a hundredth and 64 KiB, for lists of
losses and the like. What an optimizer has yet to make is known and added; a state that outgrows its slots all the same makes
the store grow, which costs a new header and, as each slot is used again, its extension.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
import weakref
from typing import Any

import torch

from lastgood.core import NoStore, Store, StoreInUse, at_exit

from .capture import Capture

logger = logging.getLogger("lastgood")

PAGE_BYTES = 4096
LEAST_ROOM_BYTES = 64 * 1024
FIXED_AT_CREATION = ("chunk_bytes", "meta_bytes", "persists")
"""Options of `Store.create` that an existing store has already settled."""


def slot_bytes_for(total_bytes: int) -> int:
    """A slot size for states of this size: a hundredth more and 64 KiB, in whole pages."""
    wanted = total_bytes + total_bytes // 100 + LEAST_ROOM_BYTES
    return (wanted + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES


def open_existing(path: str | os.PathLike[str], *, new_run: bool = False, **options: Any) -> Store:
    """The store at `path`, opened for writing. Raises NoStore."""
    open_options = {name: value for name, value in options.items() if name not in FIXED_AT_CREATION}
    await_dropped()
    try:
        return Store.open(path, new_run=new_run, **open_options)
    except StoreInUse as problem:
        if "this process" not in str(problem):
            raise
        told = str(problem)
    gc.collect()  # whoever had it may be out of reach already
    await_dropped()
    try:
        return Store.open(path, new_run=new_run, **open_options)
    except StoreInUse:
        raise StoreInUse(
            f"{told}: call close() of the Checkpointer that was made for it earlier (in a notebook, an error that is still"
            " shown may hold the last one: restart the kernel)"
        ) from None


_leaving: list[threading.Thread] = []


def give_back_when_dropped(owner: Any, store: Store, capture: Capture) -> weakref.finalize[Any, Any]:
    """Should `owner` be dropped without being closed, what it has begun is completed and its store given back.

    By a thread of its own: the last reference may go in any thread, in the middle of anything.
    """

    def give_back() -> None:
        thread = threading.Thread(target=_close, args=(store, capture), name="lastgood-dropped")
        _leaving.append(thread)
        thread.start()

    finalizer = weakref.finalize(owner, give_back)
    finalizer.atexit = False  # a store that is open then is closed by itself
    return finalizer


class Untold:
    """A failure that nobody was there to be told of: it is told at interpreter exit, as that of a store left open is."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def close(self) -> None:
        """Tell."""
        raise self._problem


def _close(store: Store, capture: Capture) -> None:
    try:
        capture.close()
        store.close()
    except Exception as problem:
        logger.error("%s: its checkpointer was dropped without close(): %s", store.path, problem)
        at_exit.watch(Untold(problem))


def await_dropped() -> None:
    """Wait until those that were dropped have given their stores back."""
    while _leaving:
        _leaving.pop().join()


def open_or_create(
    path: str | os.PathLike[str],
    *,
    total_bytes: int,
    keep: int,
    in_flight: int | None = None,
    new_run: bool = False,
    **options: Any,
) -> Store:
    """The store at `path`, opened for writing; made for states of `total_bytes` when there is none.

    Without `in_flight` it is made for one save at a time, and one that is there for more is as good.
    """
    try:
        store = open_existing(path, new_run=new_run, **options)
    except NoStore:
        store = None
    if store is None:  # not inside the handler: an error of the creation has nothing to do with the one above
        slot_bytes = slot_bytes_for(total_bytes)
        return Store.create(path, slot_bytes=slot_bytes, in_flight=in_flight or 1, keep=keep, **options)
    warn_of_other_sizes(store, in_flight=in_flight or store.in_flight, keep=keep)
    return store


def warn_of_other_sizes(store: Store, *, in_flight: int, keep: int) -> None:
    """Say so when an existing store was made with other numbers than those asked for now."""
    for name, wanted, made in (("in_flight", in_flight, store.in_flight), ("keep", keep, store.keep)):
        if wanted != made:
            logger.warning("%s was made with %s=%d, which stays; %d was asked for", store.path, name, made, wanted)


def make_room(store: Store, total_bytes: int) -> None:
    """See to it that a state of this size fits into the store's slots: grow them, and say so."""
    if total_bytes > store.slot_bytes:
        slot_bytes = slot_bytes_for(total_bytes)
        sizes = f"{total_bytes:,}", f"{slot_bytes:,}"
        logger.warning("the state has grown to %s bytes: growing the slots of %s to %s", sizes[0], store.path, sizes[1])
        store.grow(slot_bytes)


def moments_to_come(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the moments that parameters without optimizer state will get.

    torch makes them at a parameter's first update: a store made by a save before that would have to grow at once. An
    estimate: exact for torch's SGD and Adam family, generous for the rest.
    """
    total = 0
    for group in optimizer.param_groups:
        parameters = [each for each in group["params"] if not optimizer.state.get(each)]
        total += moments_per_parameter(group) * sum(each.nbytes for each in parameters if each.requires_grad)
    return total


def moments_per_parameter(group: dict[str, Any]) -> int:
    """How many tensors of a parameter's size an optimizer with these settings keeps for it."""
    if "betas" in group:
        return 3 if group.get("amsgrad") else 2
    if "momentum" in group and "nesterov" in group:
        return 1 if group["momentum"] else 0
    return 2
