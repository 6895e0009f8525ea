"""torch.distributed.checkpoint, asynchronous, with its thread and with its process. One save in flight, as is advised.

It persists its files, not the folder that names them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from .contender import Peer


class DistributedThread(Peer):
    """`async_save` with its thread."""

    name = "dcp-thread"
    is_durable = True
    kind = AsyncCheckpointerType.THREAD

    def setup(self) -> None:
        """One rank alone; the process that writes wants a group."""
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    def start(self, step: int, path: str) -> Callable[[], Any]:
        """Copies the state, then returns."""
        future = dcp.async_save(self.job.tensors(), checkpoint_id=path, async_checkpointer_type=self.kind)
        return getattr(future, "upload_completion", future).result

    def read(self, path: str) -> dict[str, torch.Tensor]:
        """Into tensors like the live ones."""
        found = {name: torch.empty_like(tensor) for name, tensor in self.job.tensors().items()}
        dcp.load(found, checkpoint_id=path)
        return found

    def close(self) -> None:
        """The group too."""
        super().close()
        dist.destroy_process_group()


class DistributedProcess(DistributedThread):
    """`async_save` with its process."""

    name = "dcp-process"
    kind = AsyncCheckpointerType.PROCESS
