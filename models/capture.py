"""How bytes of a tensor become host bytes that `Store.save` can copy, and when they may change again. Trusted.

The boundary capture is the copy that `Store.save` makes: it returns once every buffer is in the staging arena, so
training may go on at once and nothing of the next step can get into this checkpoint. A tensor on the CPU is handed over
as a view of its own memory: one copy in all, and the store knows the size before it begins. A tensor on another device
is copied to the host first; the copy is made when the store asks for that buffer, so host memory holds one region at a
time, not the whole state.

Every capture is one class with `begin`: `BoundaryCopy` here, `LazyCopy` in `lazy.py`, the choice between the two in
`choosing.py`. Where tensors live is known here and in `device_link.py` only: pinned memory and streams belong there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy
import torch

from lastgood.core import Store, Ticket

SMALL_BYTES = 16 * 1024
"""Below this, a copy costs less than a view."""


def host_bytes(tensor: torch.Tensor, start: int, stop: int) -> Any:
    """Bytes [start, stop) of a tensor's storage, on the host: a view of host memory, a copy of any other or of a few.

    Not by `Tensor.numpy`: that forbids the live storage ever to be resized again, which sharded training does; nor by
    DLPack, which takes sixty times as long.
    """
    storage = tensor.untyped_storage()
    assert 0 <= start <= stop <= storage.nbytes()
    if tensor.is_cpu:
        if stop - start < SMALL_BYTES:
            return ctypes.string_at(storage.data_ptr() + start, stop - start)
        memory: Any = (ctypes.c_ubyte * (stop - start)).from_address(storage.data_ptr() + start)
        memory.owner = storage  # lives as long as the view
        return numpy.frombuffer(memory, numpy.uint8)
    view = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return numpy.from_dlpack(view.set_(storage, start, (stop - start,), (1,)).cpu())


class LiveBytes:
    """A reader of bytes [start, stop) of a live tensor's storage. The tensor tells a capture whether it may wait."""

    __slots__ = ("start", "stop", "tensor")

    def __init__(self, tensor: torch.Tensor, start: int, stop: int) -> None:
        self.tensor = tensor
        self.start = start
        self.stop = stop

    def __call__(self) -> Any:
        """The bytes as they are now; no copy when that is host memory."""
        return host_bytes(self.tensor, self.start, self.stop)


class PackedBytes:
    """A reader of a live tensor's values in row-major order, without its holes; this is the one that copies twice."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __call__(self) -> Any:
        """The values as they are now."""
        packed = self.tensor.contiguous()
        start = int(packed.storage_offset()) * packed.element_size()
        return host_bytes(packed, start, start + packed.nbytes)


class Snapshot(Protocol):
    """An encoded state: its size is known, its buffers are not read yet."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of every buffer behind the first, in order."""

    @property
    def readers(self) -> tuple[Callable[[], Any], ...]:
        """What reads each of them, when it is asked to."""

    @property
    def total_bytes(self) -> int:
        """Bytes in all buffers together."""

    def buffers(self) -> Iterator[Any]:
        """The payload's buffers, in order."""


class Capture:
    """How a consistent copy gets out of the training's way (the capture axis). Only `begin` must be written."""

    waited_seconds = 0.0
    """Time that optimizer steps were made to wait, in all."""

    def bind(self, entries: Sequence[Any]) -> None:
        """Learn which objects the snapshots will be of. Called once, before the first `begin`."""

    def begin(self, store: Store, snapshot: Snapshot, *, step: int, meta: bytes) -> Ticket:
        """Start the save; from here on the capture decides when the live memory is read."""
        raise NotImplementedError

    def settle(self) -> None:
        """Return when nothing of what was begun reads live memory any more, and the store has been given all of it."""

    def close(self) -> None:
        """Nothing will be begun any more: let go of the objects."""

    def explain(self) -> str:
        """What is being done, and why, in one line."""
        return type(self).__name__


class BoundaryCopy(Capture):
    """Copy everything between two updates, before `begin` returns. The default."""

    def begin(self, store: Store, snapshot: Snapshot, *, step: int, meta: bytes) -> Ticket:
        """Start the save; every buffer has been copied when this returns."""
        return store.save(snapshot.buffers(), step=step, meta=meta, total_bytes=snapshot.total_bytes)

    def explain(self) -> str:
        """One line."""
        return "boundary: everything is copied before step() returns"
