"""The core's directory and devices over a simulated disk: the same calls in the same order as on a file system."""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from lastgood.core.device import Device
from lastgood.core.directory import Directory
from lastgood.core.errors import StoreInUse

from .stateful.disk import Disk, File


class SimulatedDevice:
    """One file. See `Device`."""

    def __init__(self, file: File) -> None:
        """Open."""
        self._file = file

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """See Device."""
        self._file.write(offset, data.tobytes())

    def persist(self) -> None:
        """See Device."""
        self._file.persist()

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        """See Device."""
        found = self._file.read(offset, into.size)
        if len(found) < into.size:
            raise EOFError(f"{self._file.name} ends at byte {self._file.size()}")
        into[:] = np.frombuffer(found, np.uint8)

    def size(self) -> int:
        """See Device."""
        return self._file.size()

    def allocate(self, length: int) -> None:
        """See Device."""
        if length > self._file.size():
            self._file.resize(length)

    def close(self) -> None:
        """See Device."""
        self._file.close()


class SimulatedDirectory(Directory):
    """Pass one to `Store.create` or `Store.open` instead of a path; the disk outlives it, as a disk outlives a process."""

    def __init__(self, disk: Disk) -> None:
        """Over this disk."""
        super().__init__("/simulated")
        self.device_kind, self.device_reason = "simulated", "asked for"
        self._disk = disk

    def make(self) -> list[str]:
        """See Directory; it is always there."""
        return []

    def require(self) -> None:
        """See Directory."""

    def names(self) -> list[str]:
        """See Directory."""
        return self._disk.names()

    def read_small(self, name: str, limit: int = -1) -> bytes:
        """See Directory."""
        file = self._disk.open(name)
        return file.read(0, file.size() if limit < 0 else limit)

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Device:
        """See Directory."""
        return SimulatedDevice(self._disk.open(name, create=create))

    def publish(self, name: str, content: bytes) -> None:
        """See Directory."""
        aside = f"{name}.new"
        self.remove(aside)
        device = self.open(aside, create=True)
        device.write(0, np.frombuffer(content, np.uint8))
        device.persist()
        self._disk.rename(aside, name)
        self.persist()

    def require_room(self, needed: int, largest: int) -> None:
        """See Directory; there is room until a write finds none."""

    def remove(self, name: str) -> None:
        """See Directory."""
        with contextlib.suppress(FileNotFoundError):
            self._disk.remove(name)

    def persist(self) -> None:
        """See Directory."""
        self._disk.persist_names()

    def choose_device(self, probe: str, *, writable: bool) -> None:
        """See Directory; there is no choice."""

    def lock(self) -> SimulatedLock:
        """See Directory."""
        if self._disk.is_locked:
            raise StoreInUse(f"{self.path} is open for writing already: close it first")
        self._disk.is_locked = True
        return SimulatedLock(self._disk)

    def writer_alive(self) -> bool:
        """See Directory."""
        return self._disk.is_locked


class SimulatedLock:
    """Held until released, or until the process is killed."""

    def __init__(self, disk: Disk) -> None:
        """Held."""
        self._disk = disk

    def release(self) -> None:
        """Give it back."""
        self._disk.is_locked = False
