"""orbax: `StandardCheckpointer`, made for JAX and given numpy arrays; writes on threads, persists files and folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import orbax.checkpoint as orbax
import torch

from .contender import Peer


class Orbax(Peer):
    """One save in flight."""

    name = "orbax"
    is_durable = True

    def setup(self) -> None:
        """Its threads are started here."""
        self._checkpointer = orbax.StandardCheckpointer()

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """Copies the arrays, then returns."""
        self._checkpointer.save(path, {name: tensor.numpy() for name, tensor in self.job.tensors().items()})
        wait: Callable[[], Any] = self._checkpointer.wait_until_finished
        return wait

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """Into arrays like the live ones."""
        like = {name: numpy.empty(tensor.shape, numpy.float32) for name, tensor in self.job.tensors().items()}
        return {
            name: torch.from_numpy(numpy.array(value)) for name, value in self._checkpointer.restore(path, like).items()
        }

    def close(self) -> None:
        """Its threads too."""
        super().close()
        self._checkpointer.close()
