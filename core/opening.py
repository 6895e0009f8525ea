"""How a writer's store comes into being: under its lock, and not lost to an interrupt.

O1 all-or-nothing   when anything fails, the lock is given back, and a creation leaves the place as it was
O2 received         an interrupt that arrives meanwhile closes the new store first, since nobody will receive it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from .creation import Creation, read_header
from .directory import Directory, Lock
from .interrupt import Shield
from .layout import HEADER, Header, Layout, encode_marked_header


class Closable(Protocol):
    """What is being built."""

    def close(self) -> None:
        """Give everything back."""


Built = TypeVar("Built", bound=Closable)
Build = Callable[[Header, Lock], Built]


def create_store(directory: Directory, layout: Layout, build: Build[Built]) -> Built:
    """Make the files, then build on them."""

    def make() -> Built:
        creation = Creation(directory, layout)
        try:
            return build(Header(layout, False, ""), creation.lock)
        except BaseException:
            creation.undo()
            raise

    return _received(make)


def open_for_writing(directory: Directory, build: Build[Built]) -> Built:
    """Take the lock, repair the header where one part of it is damaged, then build on it."""

    def make() -> Built:
        lock = directory.lock()
        try:
            header = read_header(directory)  # under the lock: the writer before us may have changed it
            if header.damage:
                directory.publish(HEADER, encode_marked_header(header.layout, header.marked).tobytes())
            return build(header, lock)
        except BaseException:
            lock.release()
            raise

    return _received(make)


def _received(make: Callable[[], Built]) -> Built:
    built: Built | None = None
    try:
        with Shield():
            built = make()
    except BaseException:
        if built is not None:
            built.close()
        raise
    return built
