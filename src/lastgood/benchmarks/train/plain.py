"""What people write themselves: torch.save and the system calls that make it durable, in the loop or on a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import torch

from .contender import Peer, persist


def write_durably(tensors: dict[str, torch.Tensor], path: str) -> None:
    """Write beside the path, persist, rename, persist the folder: nothing torn is ever at the path."""
    beside = os.path.join(os.path.dirname(path), "new", os.path.basename(path))
    os.makedirs(os.path.dirname(beside), exist_ok=True)
    with open(beside, "wb") as file:
        torch.save(tensors, file)
        file.seek(0, os.SEEK_CUR)  # empties Python's buffer
        os.fsync(file.fileno())
    os.rename(beside, path)
    persist(os.path.dirname(path))


class TorchSave(Peer):
    """`torch.save` and fsync while the training waits."""

    name = "torch-save"
    is_durable = True
    suffix = ".pt"

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """All of it."""
        with open(path, "wb") as file:
            torch.save(self.job.tensors(), file)
            file.seek(0, os.SEEK_CUR)
            os.fsync(file.fileno())
        return lambda: None

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """As it was written."""
        found: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
        return found


class TorchSaveThread(TorchSave):
    """A clone of the state, then everything else on a thread."""

    name = "torch-save-thread"

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """The clone; the thread."""
        clones = {name: tensor.clone() for name, tensor in self.job.tensors().items()}
        thread = threading.Thread(target=write_durably, args=(clones, path))
        thread.start()
        return thread.join
