"""The seam between the loop and a way to save: what is called when, and what it must tell.

    begin(job, directory) ── [compute ── before_update ── update ── save(step) if due] … ── drain ── load ── close
                                                                      └ newest_durable_step(), after every step

`Peer` does it for everybody who saves into a new path each time: it keeps two, waits for the save before where that is
how the peer is meant to be used, and learns on a thread of its own when a save is complete. With `with_fsync` it then
persists every file and folder of the save, before the save counts.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import threading
from collections.abc import Callable
from typing import Any

import torch

from .job import Job

KEPT = 2


class Contender:
    """No checkpoints at all: what the others are compared with."""

    name = "none"
    is_durable = False
    """Whether a save that is complete survives a power loss."""
    places = 1
    """Saves in flight."""
    warm_saves = 0
    """Made before the loop, so that nothing is done there for the first time."""

    def __init__(self) -> None:
        self.dropped = 0

    def begin(self, job: Job, directory: str) -> None:
        """Learn the job; `directory` is empty and exists."""

    def save(self, step: int) -> None:
        """The training stands still while this runs."""

    def before_update(self) -> None:
        """The optimizer is about to change the state."""

    def newest_durable_step(self) -> int | None:
        """The newest save that is complete (and durable, if the contender is)."""
        return None

    def durable_count(self) -> int:
        """Complete saves so far."""
        return 0

    def drain(self) -> None:
        """Return when every save has ended."""

    def load(self) -> dict[str, torch.Tensor]:
        """The newest checkpoint, read back from storage."""
        return {}

    def close(self) -> None:
        """Let go of everything."""


class Peer(Contender):
    """One path for each save; a subclass starts a save and returns what waits for its end."""

    warm_saves = 2
    waits_for_previous = True
    suffix = ""

    def __init__(self, *, with_fsync: bool = False) -> None:
        super().__init__()
        self._with_fsync = with_fsync
        if with_fsync:
            self.name, self.is_durable = f"{self.name}+fsync", True
        self.job: Job
        self.directory = ""
        self._ends: queue.SimpleQueue[tuple[int, Callable[[], Any]] | None] = queue.SimpleQueue()
        self._unfinished = 0
        self._complete: list[int] = []
        self._error: BaseException | None = None
        self._turn = threading.Condition()
        self._watcher = threading.Thread(target=self._watch, name="watcher", daemon=True)

    # --- what a peer writes ------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Make what the peer needs."""

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """Start the save and return a function that returns when it is complete."""
        raise NotImplementedError

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """The state in this path."""
        raise NotImplementedError

    # --- what the loop calls -----------------------------------------------------------------------------------------

    def begin(self, job: Job, directory: str) -> None:
        """Set up, and start the thread that waits for ends."""
        self.job, self.directory = job, directory
        self.setup()
        self._watcher.start()

    def path_of(self, step: int) -> str:
        """Where the save of this step goes."""
        return os.path.join(self.directory, f"step-{step:08d}{self.suffix}")

    def save(self, step: int) -> None:
        """Wait for the save before if that is the custom, then start this one."""
        if self.waits_for_previous:
            self.drain()
        self._tell()
        wait = self.start(step, self.path_of(step))
        with self._turn:
            self._unfinished += 1
        self._ends.put((step, wait))

    def newest_durable_step(self) -> int | None:
        """The last that ended."""
        return self._complete[-1] if self._complete else None

    def durable_count(self) -> int:
        """All that ended."""
        return len(self._complete)

    def drain(self) -> None:
        """Sleep until the watcher has seen every end."""
        with self._turn:
            self._turn.wait_for(lambda: not self._unfinished)
        self._tell()

    def load(self) -> dict[str, torch.Tensor]:
        """The newest one."""
        step = self.newest_durable_step()
        assert step is not None
        return self.read(self.path_of(step))

    def close(self) -> None:
        """End the watcher."""
        self._ends.put(None)
        self._watcher.join()

    def _tell(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _watch(self) -> None:
        while (end := self._ends.get()) is not None:
            step, wait = end
            try:
                wait()
                if self._with_fsync:
                    persist_tree(self.path_of(step))
                self._complete.append(step)
                if len(self._complete) > KEPT:
                    remove(self.path_of(self._complete[-KEPT - 1]))
            except BaseException as error:
                self._error = error
            finally:
                with self._turn:
                    self._unfinished -= 1
                    self._turn.notify_all()


def persist_tree(path: str) -> None:
    """Every file and folder of this path, and the folder that names it."""
    for folder, _, files in os.walk(path):
        for name in (*(os.path.join(folder, file) for file in files), folder):
            persist(name)
    if os.path.isfile(path):
        persist(path)
    persist(os.path.dirname(path))


def persist(path: str) -> None:
    """One file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """A file or a folder, there or not."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
