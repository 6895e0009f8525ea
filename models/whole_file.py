"""A file that appears under its name whole and persisted, or not at all, whoever kills the writer (promise `no-harm`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from lastgood.core.directory import persist_directory


@contextmanager
def writing(path: str, *, replace: bool = False, check: Callable[[str], object] | None = None) -> Iterator[BinaryIO]:
    """Write a file beside `path`, persist it, and give it the name when the block ends without an exception.

    Raises FileExistsError when the name is taken, unless it may be replaced; what was there stays until the new file is
    durable. `check` is given the finished file before it gets its name. The file gets the mode and the group that a
    plain open would give.
    """
    if not replace and os.path.lexists(path):
        raise FileExistsError(17, "File exists; give another name, or ask for it to be replaced", path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such directory", folder)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "xb") as file:
            descriptor = os.dup(file.fileno())  # outlives the buffers, and hears of every failed write
            try:
                yield file
                file.close()
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        if check is not None:
            check(beside)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    persist_directory(folder)


def make_directory(path: str) -> None:
    """Make a directory whose parent is there, durably: what will be in it must not lose its way to it."""
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    persist_directory(os.path.dirname(path))
