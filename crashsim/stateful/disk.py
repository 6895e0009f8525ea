"""A disk of real bytes: files by name, what a power loss may leave of them, and operations that are refused.

The rules are those of ordinary files behind a page cache (`media/page_cache`), for bytes instead of symbols:

    write, resize     land in the cache; each sector, and the size, may reach the medium at any later moment, or never
    persist           of a file: on return all that was written to it before is on the medium, its *name* is not
    rename, remove    of names: in the cache, one micro-operation each, until `persist_names` returns
    failed persist    its sectors are marked clean: readable, never written again by later persists, perhaps on the medium;
                      sizes and names, which file systems keep in a log, are left for the next persist
    kill              changes nothing: the next process reads the cache
    power loss        any set of what is outstanding is on the medium, the rest never was

K1 forced-is-kept   what a returned persist covered is in every image
K2 in-place         of two writes to one place the later one, where it is kept, is what is found
K3 one-step         every operation that changes or reads something asks `hook` first, and is refused or done whole
                    (a refused write may be half done)
"""

from __future__ import annotations

import errno
import itertools
from typing import NamedTuple

from .operations import NAMES, Hook, Loss, Operation, Refusal, nothing_refused, raise_refusal

SECTOR = 512

Place = tuple[int, int | str]
"""(file, sector), (file, SIZE), or (NAMES, name)."""
SIZE = -1


class _Micro(NamedTuple):
    effects: tuple[tuple[Place, object], ...]
    file: int
    operation: int
    is_forgotten: bool


class File:
    """An open file; it follows a rename. Any number may be open, and closing forces nothing."""

    def __init__(self, disk: Disk, number: int, name: str) -> None:
        """Not for callers: use `Disk.open`."""
        self._disk = disk
        self._number = number
        self.name = name

    def write(self, offset: int, data: bytes) -> None:
        """Make `data` visible at `offset`, growing the file where needed. Raises OSError; part may be written then."""
        refusal = self._disk.ask(Operation("write", self.name, offset, len(data), self._number))
        done = len(data) if refusal is None else len(data) * refusal.quarters // 4
        self._disk.write(self._number, offset, data[:done])
        raise_refusal(refusal, self.name)

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset`."""
        raise_refusal(self._disk.ask(Operation("read", self.name, offset, length, self._number)), self.name)
        return bytes(self._disk.contents[self._number][offset : offset + length])

    def persist(self) -> None:
        """Return once all that was written to the file before survives a power loss; says nothing of its name."""
        refusal = self._disk.ask(Operation("persist", self.name, file=self._number))
        self._disk.persist(self._number, failed=refusal is not None)
        raise_refusal(refusal, self.name)

    def resize(self, length: int) -> None:
        """Cut the file, or extend it with zeros."""
        raise_refusal(self._disk.ask(Operation("resize", self.name, length=length, file=self._number)), self.name)
        self._disk.resize(self._number, length)

    def size(self) -> int:
        """Bytes in the file."""
        return len(self._disk.contents[self._number])

    def close(self) -> None:
        """Give back the descriptor."""


class Disk:
    """One directory of files. Stores use the first half of the methods, the machine the second."""

    def __init__(self) -> None:
        """Empty."""
        self.hook: Hook = nothing_refused
        self.contents: dict[int, bytearray] = {}
        self.is_locked = False
        self._names: dict[str, int] = {}
        self._medium: dict[Place, object] = {}
        self._outstanding: list[_Micro] = []
        self._files = 0
        self._operations = 0

    # --- what a store does -------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The files."""
        return sorted(self._names)

    def open(self, name: str, *, create: bool = False) -> File:
        """A file by name; with `create` a new empty one, which must not be there. Raises FileNotFoundError, OSError."""
        if create:
            raise_refusal(self.ask(Operation("create", name)), name)
            if name in self._names:
                raise FileExistsError(errno.EEXIST, "there already", name)
            self._files += 1
            self.contents[self._files] = bytearray()
            self._issue(self._files, ((self._files, SIZE), 0))
            self._rename({name: self._files})
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        return File(self, self._names[name], name)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of what had it."""
        raise_refusal(self.ask(Operation("rename", old)), old)
        if old not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        self._rename({new: self._names[old], old: None})

    def remove(self, name: str) -> None:
        """Take a file's name away."""
        raise_refusal(self.ask(Operation("remove", name)), name)
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        self._rename({name: None})

    def persist_names(self) -> None:
        """Return once every name survives a power loss; says nothing of contents."""
        refusal = self.ask(Operation("persist-names", ""))
        self.persist(NAMES, failed=refusal is not None)
        raise_refusal(refusal, ".")

    # --- what happens below ------------------------------------------------------------------------------------------

    def ask(self, operation: Operation) -> Refusal | None:
        """One step is about to be made (K3)."""
        self._operations += 1
        return self.hook(operation)

    def write(self, number: int, offset: int, data: bytes) -> None:
        """Into the cache, a micro-operation a sector."""
        content = self.contents[number]
        if offset + len(data) > len(content):
            content.extend(bytes(offset + len(data) - len(content)))
            self._issue(number, ((number, SIZE), len(content)))
        content[offset : offset + len(data)] = data
        for sector in range(offset // SECTOR, -(-(offset + len(data)) // SECTOR)):
            self._issue_sector(number, sector)

    def resize(self, number: int, length: int) -> None:
        """The size is a place of its own; what is cut off is gone, also when the file grows again."""
        content = self.contents[number]
        before = len(content)
        if length < before:
            del content[length:]
            for sector in range(length // SECTOR, -(-before // SECTOR)):
                self._issue_sector(number, sector)
        content.extend(bytes(length - len(content)))
        self._issue(number, ((number, SIZE), length))

    def persist(self, number: int, *, failed: bool) -> None:
        """What is covered goes to the medium (K1); when the persist fails it is forgotten instead."""
        left: list[_Micro] = []
        forced: set[Place] = set()
        for micro in reversed(self._outstanding):
            covered = micro.file == number
            if covered and not failed and not micro.is_forgotten:
                self._fold([effect for effect in micro.effects if effect[0] not in forced])
                forced.update(place for place, _ in micro.effects)
            else:
                effects = tuple(effect for effect in micro.effects if effect[0] not in forced)
                if effects:
                    is_forgotten = micro.is_forgotten or (covered and failed and is_sector(effects[0][0]))
                    left.append(micro._replace(effects=effects, is_forgotten=is_forgotten))
        self._outstanding = left[::-1]

    def _issue(self, file: int, *effects: tuple[Place, object]) -> None:
        self._outstanding.append(_Micro(effects, file, self._operations, False))

    def _issue_sector(self, number: int, sector: int) -> None:
        content = bytes(self.contents[number][sector * SECTOR : (sector + 1) * SECTOR])
        self._issue(number, ((number, sector), content))

    def _rename(self, changes: dict[str, int | None]) -> None:
        for name, number in changes.items():
            if number is None:
                self._names.pop(name, None)
            else:
                self._names[name] = number
        self._issue(NAMES, *(((NAMES, name), number) for name, number in changes.items()))

    def _fold(self, effects: list[tuple[Place, object]]) -> None:
        self._medium.update(effects)

    # --- what the world does -----------------------------------------------------------------------------------------

    @property
    def total_bytes(self) -> int:
        """Bytes in all named files."""
        return sum(len(self.contents[number]) for number in self._names.values())

    def outstanding_operations(self) -> int:
        """Operations of which something is not on the medium for certain."""
        return len({micro.operation for micro in self._outstanding})

    def copy(self) -> Disk:
        """The same disk, cache and all, for finding out what would happen."""
        twin = Disk()
        twin.contents = {number: bytearray(content) for number, content in self.contents.items()}
        twin._names = dict(self._names)
        twin._medium = dict(self._medium)
        twin._outstanding = list(self._outstanding)
        twin._files, twin._operations = self._files, self._operations
        return twin

    def lose_power(self, loss: Loss) -> None:
        """Only the medium is left, with what was written back in time; nothing is outstanding then."""
        operations = sorted({micro.operation for micro in self._outstanding})
        rank = {operation: index for index, operation in enumerate(operations)}
        torn = operations[loss.torn % len(operations)] if loss.torn >= 0 and operations else -1
        sectors = itertools.count()

        def is_lost(micro: _Micro) -> bool:
            if micro.operation == torn:
                return bool(loss.sectors >> next(sectors) % 16 & 1)
            return bool(loss.operations >> rank[micro.operation] % 16 & 1)

        self._keep_only([micro for micro in self._outstanding if not is_lost(micro)])

    def lose_power_without(self, number: int) -> None:
        """The same, where all was written back but what a persist of this file (or of NAMES) would cover."""
        self._keep_only([micro for micro in self._outstanding if micro.file != number])

    def _keep_only(self, kept: list[_Micro]) -> None:
        for micro in kept:  # in the order of issue, which is K2
            self._fold(list(micro.effects))
        self._outstanding = []
        self.is_locked = False
        self._read_medium()

    def _read_medium(self) -> None:
        self._names = {
            str(place[1]): number
            for place, number in self._medium.items()
            if place[0] == NAMES and isinstance(number, int)
        }
        self.contents = {}
        for number in set(self._names.values()):
            size = self._medium.get((number, SIZE), 0)
            assert isinstance(size, int)
            content = bytearray(size)
            for sector in range(-(-size // SECTOR)):
                there = self._medium.get((number, sector), b"")
                assert isinstance(there, bytes)
                piece = there[: size - sector * SECTOR]
                content[sector * SECTOR : sector * SECTOR + len(piece)] = piece
            self.contents[number] = content

    def kill_process(self) -> None:
        """The process is gone with its locks; the cache is as it was."""
        self.is_locked = False

    def damage(self, name: str, offset: int, mask: int) -> None:
        """Change one byte where it lies, in the cache and on the medium."""
        number = self._names[name]
        content = self.contents[number]
        content[offset] ^= mask
        place = (number, offset // SECTOR)
        self._outstanding = [micro for micro in self._outstanding if micro.effects[0][0] != place]
        self._medium[place] = bytes(content[place[1] * SECTOR : (place[1] + 1) * SECTOR])


def is_sector(place: Place) -> bool:
    """Whether this is content, as against a size or a name."""
    return place[0] != NAMES and place[1] != SIZE
