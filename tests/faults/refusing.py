"""Ways for the world to say no at exactly one place: the k-th operation of a device, or the k-th call into the system."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.store.watched import Operation


class Refusal:
    """Counts what matters and refuses those of given numbers (from 0); with `lasting` all of their kind from then on.

    Also a watch for devices (`tests.store.watched`). `happened` lists what was counted, `refused` what was refused.
    """

    def __init__(self, *numbers: int, error: int = 5, lasting: bool = False) -> None:
        """No number refuses nothing: a first run counts."""
        self.numbers = numbers
        self.error = error
        self.lasting = lasting
        self.is_over = False
        self.happened: list[str] = []
        self.refused: list[str] = []
        self._lock = threading.Lock()

    def consider(self, what: str, path: str) -> None:
        """Let it happen, or raise."""
        if self.is_over:
            return
        with self._lock:
            count = len(self.happened)
            self.happened.append(what)
            kind = what.split()[0]
            again = self.lasting and self.refused and self.refused[0].split()[0] == kind and kind not in TIDYING
            hit = count in self.numbers or again
            if hit:
                self.refused.append(what)
        if hit:
            raise OSError(self.error, os.strerror(self.error), path)

    def __call__(self, operation: Operation) -> None:
        """For WatchedMemory and WatchedFiles."""
        self.consider(str(operation), operation.file)

    def end(self) -> None:
        """The cause is gone."""
        self.is_over = True


CALLS = {
    "open", "pwrite", "preadv", "pread", "fdatasync", "fsync", "posix_fallocate", "rename", "unlink", "makedirs", "mkdir",
    "rmdir", "listdir", "fstat", "ftruncate",
}  # fmt: skip


TIDYING = {"unlink", "rmdir", "listdir"}
"""Refused once, not for good: nobody can tidy up where even that is refused."""


class RefusingSystem:
    """Stands in for the module `os` in the core's modules that talk to the system; everything else goes through."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._paths: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            first = arguments[0]
            path = self._paths.get(first, "?") if isinstance(first, int) else os.fspath(first)
            self._refusal.consider(f"{name} {os.path.basename(path)}", path)
            result = real(*arguments, **options)
            if name == "open":
                self._paths[result] = path
            return result

        return call


@contextmanager
def system(replacement: Any) -> Iterator[None]:
    """Let the core's file modules call this instead of `os`."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("files", "directory", "lock"):
            patch.setattr(f"lastgood.core.{module}.os", replacement)
        yield


def counted(run: Callable[[Refusal], None]) -> list[str]:
    """What a run does when nothing is refused."""
    refusal = Refusal()
    run(refusal)
    return refusal.happened
