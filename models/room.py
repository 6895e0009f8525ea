"""Opening the store that a state goes into, making it when there is none, with room for the state to grow a little."""

from __future__ import annotations

import logging
import os
from typing import Any

from lastgood.core import NoStore, Store

from .errors import StateTooLarge

logger = logging.getLogger("lastgood")

PAGE_BYTES = 4096
LEAST_ROOM_BYTES = 64 * 1024
FIXED_AT_CREATION = ("chunk_bytes", "meta_bytes", "persists")
"""Options of `Store.create` that an existing store has already settled."""


def slot_bytes_for(total_bytes: int) -> int:
    """A slot size for states of this size: an eighth more and 64 KiB, in whole pages."""
    wanted = total_bytes + total_bytes // 8 + LEAST_ROOM_BYTES
    return (wanted + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES


def open_existing(path: str | os.PathLike[str], *, new_run: bool = False, **options: Any) -> Store:
    """The store at `path`, opened for writing. Raises NoStore."""
    open_options = {name: value for name, value in options.items() if name not in FIXED_AT_CREATION}
    return Store.open(path, new_run=new_run, **open_options)


def open_or_create(
    path: str | os.PathLike[str], *, total_bytes: int, in_flight: int, keep: int, new_run: bool = False, **options: Any
) -> Store:
    """The store at `path`, opened for writing; made for states of `total_bytes` when there is none."""
    try:
        store = open_existing(path, new_run=new_run, **options)
    except NoStore:
        store = None
    if store is None:  # not inside the handler: an error of the creation has nothing to do with the one above
        slot_bytes = slot_bytes_for(total_bytes)
        return Store.create(path, slot_bytes=slot_bytes, in_flight=in_flight, keep=keep, **options)
    warn_of_other_sizes(store, in_flight=in_flight, keep=keep)
    return store


def warn_of_other_sizes(store: Store, *, in_flight: int, keep: int) -> None:
    """Say so when an existing store was made with other numbers than those asked for now."""
    for name, wanted, made in (("in_flight", in_flight, store.in_flight), ("keep", keep, store.keep)):
        if wanted != made:
            logger.warning("%s was made with %s=%d, which stays; %d was asked for", store.path, name, made, wanted)


def make_room(store: Store, total_bytes: int) -> None:
    """See to it that a state of this size fits into the store's slots: grow them, or raise StateTooLarge."""
    if total_bytes <= store.slot_bytes:
        return
    grow = getattr(store, "grow", None)
    if grow is None:
        raise StateTooLarge(
            f"the state has grown to {total_bytes:,} bytes, the slots of {store.path} have {store.slot_bytes:,}:"
            " restore it, then save into a store in a new directory"
        )
    slot_bytes = slot_bytes_for(total_bytes)
    logger.warning(
        "the state has grown to %d bytes: growing the slots of %s to %d", total_bytes, store.path, slot_bytes
    )
    grow(slot_bytes)
