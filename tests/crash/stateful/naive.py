"""Stores that people write: one that is right, and others with one mistake each."""

from __future__ import annotations

import contextlib
import inspect
import zlib
from typing import Any, ClassVar

from lastgood.crashsim.stateful import Adapter, Disk, machine_for


class Careful(Adapter):
    """A new file beside the old one: written, persisted, renamed over it, and the name persisted. Right on this medium."""

    def open(self, disk: Disk) -> Disk:
        self._remove(disk, "new")
        return disk

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        self._remove(disk, "new")
        file = disk.open("new", create=True)
        file.write(0, zlib.crc32(payload).to_bytes(4, "little") + payload)
        file.persist()
        disk.rename("new", "checkpoint")
        disk.persist_names()
        return True

    def read(self, disk: Disk) -> bytes | None:
        if "checkpoint" not in disk.names():
            return None
        file = disk.open("checkpoint")
        content = file.read(0, file.size())
        if zlib.crc32(content[4:]).to_bytes(4, "little") != content[:4]:
            raise ValueError("the checkpoint is damaged")
        return content[4:]

    def _remove(self, disk: Disk, name: str) -> None:
        if name in disk.names():
            disk.remove(name)


def documented_example() -> Any:
    """The example in the documentation: a killed process leaves "new" behind, and no digest guards the bytes."""
    text = inspect.cleandoc(Adapter.__doc__ or "")
    code = text[text.index("class Renaming") : text.index("(It is not quite right")]
    namespace: dict[str, Any] = {"Adapter": Adapter, "machine_for": machine_for}
    exec(code, namespace)
    example = namespace["Renaming"]
    assert namespace["TestRenaming"].settings
    example.breaks = {"loud", "never-wrong"}
    return example


class NeverPersists(Careful):
    """The name is made durable, the bytes are not."""

    breaks: ClassVar = {"newest-survives"}

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        self._remove(disk, "new")
        file = disk.open("new", create=True)
        file.write(0, zlib.crc32(payload).to_bytes(4, "little") + payload)
        disk.rename("new", "checkpoint")
        disk.persist_names()
        return True


class ForgetsTheName(Careful):
    """The bytes are durable, their name is not."""

    breaks: ClassVar = {"newest-survives", "loud"}

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        self._remove(disk, "new")
        file = disk.open("new", create=True)
        file.write(0, zlib.crc32(payload).to_bytes(4, "little") + payload)
        file.persist()
        disk.rename("new", "checkpoint")
        return True


class RemovesFirst(Careful):
    """For an instant there is no checkpoint."""

    breaks: ClassVar = {"newest-survives", "loud"}

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        self._remove(disk, "new")
        file = disk.open("new", create=True)
        file.write(0, zlib.crc32(payload).to_bytes(4, "little") + payload)
        file.persist()
        self._remove(disk, "checkpoint")
        disk.rename("new", "checkpoint")
        disk.persist_names()
        return True


class InPlace(Careful):
    """The only copy is overwritten."""

    breaks: ClassVar = {"newest-survives", "loud"}

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        file = disk.open("checkpoint", create="checkpoint" not in disk.names())
        file.write(0, zlib.crc32(payload).to_bytes(4, "little") + payload)
        file.resize(len(payload) + 4)
        file.persist()
        disk.persist_names()
        return True


class Optimist(Careful):
    """A persist that fails is not worth a word."""

    breaks: ClassVar = {"newest-survives", "loud"}

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        self._remove(disk, "new")
        file = disk.open("new", create=True)
        file.write(0, zlib.crc32(payload).to_bytes(4, "little") + payload)
        with contextlib.suppress(OSError):
            file.persist()
        disk.rename("new", "checkpoint")
        with contextlib.suppress(OSError):
            disk.persist_names()
        return True


class Crowded(Careful):
    """Two saves at once, and one name for both their new files."""

    breaks: ClassVar = {"newest-survives", "never-wrong", "loud"}
    in_flight = 2


class OldestFirst(Careful):
    """Keeps two, and after a restart finds the wrong one."""

    breaks: ClassVar = {"newest-survives"}
    keep = 2

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        if "checkpoint" in disk.names():
            disk.rename("checkpoint", "older")
        return super().save(disk, number, payload)

    def read(self, disk: Disk) -> bytes | None:
        for name in ("older", "checkpoint"):
            if name in disk.names():
                file = disk.open(name)
                return file.read(0, file.size())[4:]
        return None


class Blind(Careful):
    """Whatever is wrong, there was nothing."""

    breaks: ClassVar = {"loud"}

    def read(self, disk: Disk) -> bytes | None:
        try:
            return super().read(disk)
        except ValueError:
            return None


class Hoarder(Careful):
    """Keeps a copy of every checkpoint it ever had."""

    breaks: ClassVar = {"bounded"}
    room_bytes = 12_000

    def save(self, disk: Disk, number: int, payload: bytes) -> bool:
        super().save(disk, number, payload)
        disk.open(f"copy-{number}", create=True).write(0, payload)
        return True


WRONG = (
    documented_example(), NeverPersists, ForgetsTheName, RemovesFirst, InPlace, Optimist, Crowded, OldestFirst, Blind, Hoarder,
)  # fmt: skip
