"""Stores whose devices tell a test what they are about to do, so that it can count, delay, or refuse it.

directory = WatchedMemory(watch)             or WatchedFiles(path, watch, "buffered")
store = Store.create(directory, ...)         every operation calls watch(Operation) first; what that raises, raises
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastgood.core.device import Device
from lastgood.core.directory import Directory
from lastgood.core.memory import MemoryDirectory
from lastgood.core.rules import PAGE_BYTES

AREA_BYTES = PAGE_BYTES
"""The record area of the stores in these tests."""


@dataclass(frozen=True)
class Operation:
    """What a device is about to do: "write", "persist", "read" or "allocate", to which file."""

    kind: str
    file: str
    offset: int = 0
    data: NDArray[np.uint8] | None = None

    def __str__(self) -> str:
        """For a list of what happened."""
        return f"{self.kind} {self.file}" + (f" at {self.offset}" if self.kind in ("write", "read") else "")

    @property
    def is_payload(self) -> bool:
        """Whether it moves payload, not a record or the header."""
        return self.kind in ("write", "read") and self.file.startswith("slot-") and self.offset >= AREA_BYTES


Watch = Callable[[Operation], None]


def nothing(operation: Operation) -> None:
    """Let it happen."""


class WatchedDevice:
    """A device that asks first."""

    def __init__(self, inner: Device, file: str, directory: Any) -> None:
        """`directory.watch` is asked, so that a test can change its mind while the store is open."""
        self.inner = inner
        self.file = file
        self.directory = directory

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        self.directory.watch(Operation("write", self.file, offset, data))
        self.inner.write(offset, data)

    def persist(self) -> None:
        self.directory.watch(Operation("persist", self.file))
        self.inner.persist()

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        self.directory.watch(Operation("read", self.file, offset))
        self.inner.read(offset, into)

    def size(self) -> int:
        return self.inner.size()

    def allocate(self, length: int) -> None:
        self.directory.watch(Operation("allocate", self.file))
        self.inner.allocate(length)

    def close(self) -> None:
        self.inner.close()


class WatchedMemory(MemoryDirectory):
    """A directory in memory with watched devices."""

    def __init__(self, watch: Watch = nothing) -> None:
        super().__init__()
        self.watch = watch

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Device:
        return WatchedDevice(super().open(name, create=create, writable=writable), name, self)

    def contents(self) -> dict[str, bytes]:
        """Every file and its bytes."""
        return {name: device.content.tobytes() for name, device in self.files.items()}


class WatchedFiles(Directory):
    """A directory of real files with watched devices."""

    def __init__(self, path: str | os.PathLike[str], watch: Watch = nothing, device: str = "auto") -> None:
        super().__init__(path, device)
        self.watch = watch

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Device:
        return WatchedDevice(super().open(name, create=create, writable=writable), name, self)


class Gate:
    """Holds saves up at a chosen operation until a test lets each of them go: any order of finishing can be forced.

    A save is known by its step, which its payload begins with.
    """

    def __init__(self, kind: str) -> None:
        """Hold at "write" (of a payload) or at "persist" (of a payload, so before its record is written)."""
        self.kind = kind
        self.held: list[int] = []
        self._step_in: dict[str, int] = {}
        self._released: set[int] = set()
        self._all_released = False
        self._changed = threading.Condition()

    def __call__(self, operation: Operation) -> None:
        """The watch."""
        if operation.kind == "write" and operation.is_payload and operation.offset == AREA_BYTES:
            assert operation.data is not None
            self._step_in[operation.file] = int.from_bytes(operation.data[:8].tobytes(), "little")
        step = self._step_in.get(operation.file)
        if operation.kind != self.kind or step is None or (self.kind == "write" and not operation.is_payload):
            return
        with self._changed:
            if step not in self._released and not self._all_released:
                self.held.append(step)
                self._changed.notify_all()
            while step not in self._released and not self._all_released:
                self._changed.wait()

    def __enter__(self) -> Gate:
        """`with create(...) as store, gate:` opens it before the store is closed, whatever the test came to."""
        return self

    def __exit__(self, *error: object) -> None:
        """Nobody may hang on a test that failed."""
        self.open()

    def wait_for(self, steps: set[int]) -> None:
        """Return once all of these are held."""
        with self._changed:
            assert self._changed.wait_for(lambda: steps <= set(self.held), 30), f"held are {self.held}, not {steps}"

    def release(self, step: int) -> None:
        """Let one save go on, now and later."""
        with self._changed:
            self._released.add(step)
            self._changed.notify_all()

    def open(self) -> None:
        """Let everybody go on, now and later."""
        with self._changed:
            self._all_released = True
            self._changed.notify_all()
