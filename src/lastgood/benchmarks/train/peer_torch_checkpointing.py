"""torch_checkpointing: copies behind the next step, writes in a process, one save in flight, no fsync.

Direct writes are switched off: on ext4 each save fails with them (an unaligned write is refused).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_checkpointing import CheckpointManager
from torch_checkpointing.storage.filesystem import LocalFileSystemStorageConfig

from .contender import Peer


class TorchCheckpointing(Peer):
    """A `CheckpointManager` with asynchronous saves."""

    name = "torch_checkpointing"

    def setup(self) -> None:
        """Its process is started here."""
        config = CheckpointManager.Config.with_async_save()
        config.storage_config = LocalFileSystemStorageConfig(use_direct_io=False)
        self._manager = CheckpointManager(config)

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """Returns before the state is copied."""
        future = self._manager.save(path, {"state": self.job.tensors()})
        assert future is not None
        return future.result

    def before_update(self) -> None:
        """Its lock: held while the state is being copied."""
        with self._manager.lock():
            pass

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """Into tensors like the live ones."""
        into = {name: torch.empty_like(tensor) for name, tensor in self.job.tensors().items()}
        found: dict[str, torch.Tensor] = self._manager.load(path, into={"state": into})["state"]
        return found

    def close(self) -> None:
        """Ends the process too."""
        super().close()
        self._manager.close()
