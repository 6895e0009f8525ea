"""From device memory into page-locked host memory, on a stream of its own, one region ahead of whoever reads.

Only used for tensors on CUDA. The copy of a region waits, on the device, for what the training's stream had done when the
region was asked for first; no stream waits for the host, and the default stream is not synchronised with. Two page-locked
areas take turns: while one is read, the other is filled.

Everything above this module is tested with a stand-in for the device; this module itself has not been run on a CUDA
device here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import torch

from .capture import LiveBytes, PackedBytes

Reader = Callable[[], Any]


class Link(Protocol):
    """Brings bytes of one device's memory to the host."""

    def start(self, read: LiveBytes | PackedBytes, area: int) -> Any:
        """Start copying into area 0 or 1; returns what `wait` needs."""

    def wait(self, started: Any) -> Any:
        """Wait for the copy and return its bytes, on the host."""


def read_ahead(readers: Sequence[Reader], link: Link | None = None) -> tuple[Reader, ...]:
    """The readers, in the order in which they will be called; those of device memory start one region ahead."""
    remote = [place for place, read in enumerate(readers) if is_remote(read)]
    if not remote:
        return tuple(readers)
    ahead = ReadAhead([readers[place] for place in remote], CudaLink() if link is None else link)  # type: ignore[misc]
    turned = list(readers)
    for number, place in enumerate(remote):
        turned[place] = ahead.reader(number)
    return tuple(turned)


def is_remote(read: Reader) -> bool:
    """Whether this reads device memory."""
    return isinstance(read, (LiveBytes, PackedBytes)) and read.tensor.device.type != "cpu"


class ReadAhead:
    """Keeps one copy going while the one before it is being read."""

    def __init__(self, reads: list[LiveBytes | PackedBytes], link: Link) -> None:
        self._reads = reads
        self._link = link
        self._started: dict[int, Any] = {}

    def reader(self, number: int) -> Reader:
        """A reader of the region with this number."""
        return lambda: self._read(number)

    def _read(self, number: int) -> Any:
        self._start(number)
        content = self._link.wait(self._started.pop(number))
        self._start(number + 1)
        return content

    def _start(self, number: int) -> None:
        if number < len(self._reads) and number not in self._started:
            self._started[number] = self._link.start(self._reads[number], number % 2)


class CudaLink:
    """A side stream and two page-locked areas, made once and kept for the process."""

    _areas: ClassVar[dict[tuple[int, int], torch.Tensor]] = {}
    _streams: ClassVar[dict[int, Any]] = {}

    def __init__(self) -> None:
        """Mark what the training's stream has to finish before anything is read."""
        self._boundary = torch.cuda.Event()
        self._boundary.record()

    def start(self, read: LiveBytes | PackedBytes, area: int) -> Any:
        """Start the copy on the side stream."""
        device = read.tensor.device.index or 0
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = torch.cuda.Stream(device)
        with torch.cuda.stream(stream), torch.no_grad():
            stream.wait_event(self._boundary)
            source = region_of(read)
            target = self._area(device, area, source.numel())
            target.copy_(source, non_blocking=True)
            done = torch.cuda.Event()
            done.record(stream)
        return done, target, source

    def wait(self, started: Any) -> Any:
        """Wait for this copy alone."""
        done, target, _ = started
        done.synchronize()
        return target.numpy()

    def _area(self, device: int, area: int, length: int) -> torch.Tensor:
        held = self._areas.get((device, area))
        if held is None or held.numel() < length:
            held = self._areas[device, area] = torch.empty(length, dtype=torch.uint8, pin_memory=True)
        return held[:length]


def region_of(read: LiveBytes | PackedBytes) -> torch.Tensor:
    """The bytes that a reader stands for, as a flat tensor where they live."""
    if isinstance(read, PackedBytes):
        return read.tensor.contiguous().reshape(-1).view(torch.uint8)
    view = torch.empty(0, dtype=torch.uint8, device=read.tensor.device)
    return view.set_(read.tensor.untyped_storage(), read.start, (read.stop - read.start,), (1,))
