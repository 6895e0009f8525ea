"""Lightning's AsyncCheckpointIO: clones the state, writes on one thread, queues without bound; no fsync."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch.plugins.io import AsyncCheckpointIO, TorchCheckpointIO

from .contender import Peer


class Told(TorchCheckpointIO):
    """Remembers which paths were written; Lightning itself tells nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[str] = set()

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        """Write, then remember."""
        super().save_checkpoint(checkpoint, path, storage_options)
        self.written.add(str(path))


class LightningAsync(Peer):
    """As a `Trainer` uses it."""

    name = "lightning"
    suffix = ".pt"
    waits_for_previous = False

    def setup(self) -> None:
        """The plugin around a plain writer."""
        self._inner = Told()
        self._plugin = AsyncCheckpointIO(self._inner)

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """Clones, queues, returns."""
        self._plugin.save_checkpoint(self.job.tensors(), path)

        def wait() -> None:
            while path not in self._inner.written:
                if self._plugin._error is not None:
                    raise self._plugin._error
                time.sleep(0.002)

        return wait

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """A plain file of torch."""
        found: dict[str, torch.Tensor] = torch.load(path, weights_only=True)
        return found

    def close(self) -> None:
        """Its thread too."""
        super().close()
        self._plugin.teardown()
