"""A directory of files in memory, for tests and for trying things out: the same seam, no durability at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .device import Device
from .directory import Directory, Lock
from .errors import StoreInUse


class MemoryDevice:
    """One file in memory. See Device."""

    def __init__(self, content: NDArray[np.uint8] | None = None) -> None:
        """Start with `content`, or empty."""
        self.content = np.empty(0, np.uint8) if content is None else content

    def write(self, offset: int, data: NDArray[np.uint8]) -> None:
        """See Device."""
        if offset + data.size > self.content.size:
            self.allocate(offset + data.size)
        self.content[offset : offset + data.size] = data

    def persist(self) -> None:
        """See Device; memory has nothing to wait for."""

    def read(self, offset: int, into: NDArray[np.uint8]) -> None:
        """See Device."""
        if offset + into.size > self.content.size:
            raise EOFError(f"the file ends at byte {self.content.size}")
        into[:] = self.content[offset : offset + into.size]

    def size(self) -> int:
        """See Device."""
        return self.content.size

    def allocate(self, length: int) -> None:
        """See Device."""
        if length > self.content.size:
            grown = np.zeros(length, np.uint8)
            grown[: self.content.size] = self.content
            self.content = grown

    def close(self) -> None:
        """See Device; the content stays with its directory."""


class MemoryDirectory(Directory):
    """Pass one to `Store.create` or `Store.open` instead of a path; it lives as long as you hold it."""

    def __init__(self, name: str = "memory") -> None:
        """An empty directory."""
        super().__init__(f"/{name}")
        self.files: dict[str, MemoryDevice] = {}
        self.device_kind, self.device_reason = "memory", "asked for"
        self._locked = False

    def make(self) -> list[str]:
        """See Directory; it is always there."""
        return []

    def require(self) -> None:
        """See Directory."""

    def names(self) -> list[str]:
        """See Directory."""
        return sorted(self.files)

    def read_small(self, name: str, limit: int = -1) -> bytes:
        """See Directory."""
        if name not in self.files:
            raise FileNotFoundError(name)
        content = self.files[name].content
        return content.tobytes() if limit < 0 else content[:limit].tobytes()

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Device:
        """See Directory."""
        if create:
            if name in self.files:
                raise FileExistsError(name)
            self.files[name] = MemoryDevice()
        elif name not in self.files:
            raise FileNotFoundError(name)
        return self.files[name]

    def publish(self, name: str, content: bytes) -> None:
        """See Directory."""
        self.files[name] = MemoryDevice(np.frombuffer(content, np.uint8).copy())

    def require_room(self, needed: int, largest: int) -> None:
        """See Directory; there is room until a write finds none."""

    def remove(self, name: str) -> None:
        """See Directory."""
        self.files.pop(name, None)

    def persist(self) -> None:
        """See Directory."""

    def choose_device(self, probe: str, *, writable: bool) -> None:
        """See Directory; there is no choice."""

    def lock(self) -> Lock:
        """See Directory."""
        if self._locked:
            raise StoreInUse(f"{self.path} is already open for writing in this process: close it first")
        self._locked = True
        return self

    def release(self) -> None:
        """See Lock: the directory is its own."""
        self._locked = False

    def writer_alive(self) -> bool:
        """See Directory."""
        return self._locked
