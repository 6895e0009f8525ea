"""safetensors: `save_file` while the training waits; a new name is renamed into place, no fsync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from .contender import Peer


class Safetensors(Peer):
    """One file a save."""

    name = "safetensors"
    suffix = ".safetensors"

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """All of it."""
        save_file(self.job.tensors(), path)
        return lambda: None

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """As it was written."""
        return load_file(path)
