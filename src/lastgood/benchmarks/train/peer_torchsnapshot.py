"""torchsnapshot: `Snapshot.async_take`, which returns when the state is staged; no fsync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torchsnapshot import Snapshot, StateDict

from .contender import Peer


class TorchSnapshot(Peer):
    """One pending snapshot at a time."""

    name = "torchsnapshot"

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """Stages, then writes on its own thread."""
        return Snapshot.async_take(path, app_state={"state": StateDict(**self.job.tensors())}).wait

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """Into tensors like the live ones."""
        into = StateDict(**{name: torch.empty_like(tensor) for name, tensor in self.job.tensors().items()})
        Snapshot(path).restore(app_state={"state": into})
        return dict(into)
