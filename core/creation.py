"""How a store comes into being, new or opened again: its files, its lock, and an interrupt that loses neither.

Creation reserves every byte the store will ever take, makes files and names durable, and renames the header into place
last: before that instant there is no store, after it there is a whole one.

O1 all-or-nothing   when anything fails, the lock is given back, and a creation leaves the place as it was
O2 received         an interrupt that arrives meanwhile closes the new store first, since nobody will receive it
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .at_exit import Closable
from .device import Device, aligned_buffer
from .directory import Directory, Lock
from .errors import Damaged, NoStore, NotAStore, StoreError, StoreExists
from .interrupt import Shield
from .layout import HEADER, LOCK, Header, Layout, decode_header, encode_header, slot_name
from .layout import MAGIC as HEADER_MAGIC
from .lock import HOLDER
from .memory import MemoryDevice
from .record import EMPTY_MAGIC, MAGIC, encode_empty
from .rules import PAGE_BYTES, SLOT_LIMIT

Built = TypeVar("Built", bound=Closable)
Build = Callable[[Header, Lock], Built]


def create_store(directory: Directory, layout: Layout, build: Build[Built]) -> Built:
    """Make the files of a store, then build on them.

    Raises StoreExists, NotAStore (other files are there), StoreInUse, or OSError; ENOSPC says the bytes needed.
    """

    def make(undo: ExitStack) -> Built:
        undo.callback(directory.unmake, directory.make())
        _check_vacant(directory)
        had_lock = LOCK in directory.names()
        lock = directory.lock()
        undo.callback(lock.release)
        try:
            _check_vacant(directory)  # again: another process may have been first
        except OSError:
            if not had_lock:
                directory.remove(LOCK)
            raise
        undo.callback(_remove_all, directory)  # it is ours now, and nobody else begins one here before the lock is back
        _fill(directory, layout)
        return build(Header(layout, False, ""), lock)

    return received(make)


def open_for_writing(directory: Directory, build: Build[Built]) -> Built:
    """Take the lock, repair the header where one part of it is damaged, then build on it."""

    def make(undo: ExitStack) -> Built:
        lock = directory.lock()
        undo.callback(lock.release)
        header = read_header(directory)  # under the lock: the writer before us may have changed it
        if header.damage:
            directory.publish(HEADER, encode_header(header.layout, marked=header.marked).tobytes())
        return build(header, lock)

    return received(make)


def received(make: Callable[[ExitStack], Built]) -> Built:
    """What `make` builds (O1, O2): it undoes what it has done by what it leaves on the stack."""
    built: Built | None = None
    try:
        with Shield(), ExitStack() as undo:
            built = make(undo)
            undo.pop_all()
    except BaseException:
        if built is not None:
            built.close()
        raise
    return built


def _remove_all(directory: Directory) -> None:
    with suppress(OSError):
        for name in (HEADER, *directory.names()):  # the header first: without it there is no store
            with suppress(OSError):
                directory.remove(name)


def _check_vacant(directory: Directory) -> None:
    """Nothing but what an interrupted creation leaves may be there: what else is there is somebody's, whatever its name."""
    strangers = [name for name in directory.names() if not _is_leftover(directory, name)]
    if HEADER in strangers:
        raise StoreExists(f"{directory.path} holds a store already: open it, or give another path")
    if _holds_records(directory):
        raise StoreExists(f"{directory.path} {_HEADER_LOST}")
    if strangers:
        raise NotAStore(f"{directory.path} holds other files ({strangers[0]}, ...): give an empty directory")


_LEFT = {LOCK: HOLDER, f"{HEADER}.new": HEADER_MAGIC} | {slot_name(slot): EMPTY_MAGIC for slot in range(SLOT_LIMIT)}
"""What the files of a creation begin with, as far as they are written, unless they are all zeros."""


def _is_leftover(directory: Directory, name: str) -> bool:
    beginning = _LEFT.get(name)
    if beginning is None:
        return False
    try:
        found = directory.read_small(name, len(beginning))
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EINVAL, errno.ELOOP):  # a directory, a pipe, a link to nowhere
            return False
        raise
    return beginning.startswith(found) or not any(found)


_HEADER_LOST = f"holds checkpoints, but the file `{HEADER}` is missing: restore it from a copy"


def _holds_records(directory: Directory) -> bool:
    """Whether some slot file begins with a record: a creation writes none, so a header was there once."""
    return any(
        directory.read_small(name, len(MAGIC)) == MAGIC for name in directory.names() if name.startswith("slot-")
    )


def _fill(directory: Directory, layout: Layout) -> None:
    for name in directory.names():
        if name != LOCK:
            directory.remove(name)
    try:
        for slot in range(layout.slot_count):
            _make_slot(directory, layout, slot).close()
            if slot == 0:
                directory.choose_device(slot_name(0), writable=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.strerror = (
                f"{error.strerror}: this store needs {layout.total_bytes:,} bytes"
                f" ({layout.slot_count} slots of {layout.file_bytes:,})"
            )
        raise
    directory.persist()
    directory.publish(HEADER, encode_header(layout).tobytes())


def _make_slot(directory: Directory, layout: Layout, slot: int) -> Device:
    """A new slot file with all its room and an empty record, durable but for its name."""
    device = directory.open(slot_name(slot), create=True)
    try:
        device.allocate(layout.file_bytes)
        page = aligned_buffer(PAGE_BYTES)
        page[:] = encode_empty(layout.store, slot)
        device.write(0, page)
        device.persist()
    except BaseException:
        device.close()
        directory.remove(slot_name(slot))  # ours: it was not there before
        raise
    return device


def read_header(directory: Directory) -> Header:
    """What `decode_header` says of the store in `directory`. Raises NoStore, NotAStore, Damaged, FormatTooNew."""
    try:
        image = directory.read_small(HEADER)
    except (FileNotFoundError, NotADirectoryError):
        reason = _why_no_header(directory)
        try:
            image = directory.read_small(HEADER)  # there now, when a creation has ended meanwhile
        except FileNotFoundError:
            raise reason from None
    return decode_header(image, directory.path)


def _why_no_header(directory: Directory) -> StoreError:
    directory.require()
    if _holds_records(directory):
        return Damaged(f"{directory.path} {_HEADER_LOST}")
    names = directory.names()
    if names and all(name.startswith("slot-") or name in (LOCK, f"{HEADER}.new") for name in names):
        return NoStore(f"no store at {directory.path}: its creation was never completed")
    if names:
        return NotAStore(f"{directory.path} is a directory without a store in it (no file `{HEADER}`)")
    return NoStore(f"no store at {directory.path}: the directory is empty")


def open_missing(directory: Directory, devices: list[Device | None], *, writable: bool) -> None:
    """Open those slot files that are None and are there now: a writer makes anew what is missing.

    One that cannot be opened does not keep a reader from the others.
    """
    for slot, device in enumerate(devices):
        if device is None:
            try:
                devices[slot] = directory.open(slot_name(slot), writable=writable)
            except FileNotFoundError:
                continue
            except OSError as error:
                if writable or error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                    raise
                devices[slot] = _Unopened(error)


class _Unopened(MemoryDevice):
    """A slot file that cannot be opened, read like one that cannot be read."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def size(self) -> int:
        raise self._error

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        raise self._error


def make_missing(directory: Directory, layout: Layout, devices: list[Device | None]) -> list[Device]:
    """Create the slot files that are missing, durably, so that a writer has all its slots (promise `no-leak`)."""
    for slot in [slot for slot, device in enumerate(devices) if device is None]:
        try:
            device = _make_slot(directory, layout, slot)
        except FileExistsError as error:
            raise StoreError(
                f"{directory.join(slot_name(slot))} was missing a moment ago and is there now, or is a link to nothing:"
                " open the store again, or remove the link"
            ) from error
        try:
            directory.persist()
        except BaseException:
            device.close()
            directory.remove(slot_name(slot))  # so that the next attempt makes its name durable too
            raise
        devices[slot] = device
    return [device for device in devices if device is not None]


def close_all(devices: list[Device | None]) -> None:
    """Close what is open, each whatever became of the others."""
    with ExitStack() as last:
        for device in devices:
            if device is not None:
                last.callback(device.close)
