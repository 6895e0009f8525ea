"""Ends a process at one chosen moment of its work: before any step of a driver, or in the middle of any write.

A moment is the instant before one of these begins: a write, a persist, an allocation, a rename, an fsync of a directory
or of a new size, an acknowledgement, and the end of a save. Between two of them a process does nothing that outlives it.
Counting them is the same code as dying at one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from lastgood.core import Ticket
from lastgood.core.engine import Engine
from lastgood.core.files import BufferedFile, DirectFile
from lastgood.core.mapped import MappedFile

SECTOR = 512


class Moments:
    """Counts moments in all threads; the process gets SIGKILL at number `last`, half of that write done if `torn`."""

    def __init__(self, last: int, torn: bool) -> None:
        self.count = 0
        self.writes: list[int] = []
        self._last = last
        self._torn = torn
        self._one_at_a_time = threading.Lock()

    def install(self) -> None:
        """From now on."""
        for owner, name in (
            (Ticket, "acknowledge"),
            (Engine, "finished"),
            (BufferedFile, "persist"),
            (MappedFile, "persist"),
            (BufferedFile, "allocate"),
            (os, "fsync"),
            (os, "rename"),
        ):
            setattr(owner, name, self._before(getattr(owner, name)))
        for kind in (BufferedFile, DirectFile, MappedFile):
            kind.write = self._around_write(kind.write)  # type: ignore[method-assign]

    def _is_last(self) -> bool:
        with self._one_at_a_time:
            self.count += 1
            return self.count == self._last

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            if self._is_last():
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return counted

    def _around_write(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(device: Any, offset: int, data: Any) -> Any:
            if self._is_last():
                if self._torn:
                    _write_half(device, offset, data)
                os.kill(os.getpid(), signal.SIGKILL)
            self.writes.append(self.count)
            return function(device, offset, data)

        return counted


def _write_half(device: Any, offset: int, data: Any) -> None:
    half = data.size // 2 // SECTOR * SECTOR
    if isinstance(device, MappedFile):
        device._bytes[offset : offset + half] = data[:half]
        return
    with contextlib.suppress(OSError):  # a device that refuses half a page has written nothing
        os.pwrite(device._descriptor, data[:half], offset)
