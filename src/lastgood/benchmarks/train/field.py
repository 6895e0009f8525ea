"""The field: every contender by name, which of them are here, and how each is made.

A peer's module is imported in the process of its cell only. A peer whose package is not installed is named as absent.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

IN_FLIGHT = (1, 2, 4)


@dataclass(frozen=True)
class Entry:
    """How one contender is made."""

    name: str
    module: str
    made_by: str
    is_durable: bool
    needs: str = ""
    """The package that has to be installed."""
    arguments: tuple[Any, ...] = ()
    with_fsync: bool = False
    refuses: bool = False
    """Its overload policy gives saves up rather than holding the training."""
    holds: bool = False
    """The training waits until a save is complete."""

    @property
    def is_here(self) -> bool:
        """Whether its package is installed."""
        return not self.needs or find_spec(self.needs) is not None

    def make(self) -> Any:
        """The contender."""
        made_by = getattr(importlib.import_module(f"{__package__}.{self.module}"), self.made_by)
        return made_by(with_fsync=True) if self.with_fsync else made_by(*self.arguments)


def ours(capture: str, in_flight: int, overload: str = "block") -> Entry:
    """One setting of lastgood."""
    name = f"lastgood-{capture}-{in_flight}" + ("" if overload == "block" else f"-{overload}")
    return Entry(name, "ours", "Lastgood", True, arguments=(capture, in_flight, overload), refuses=overload != "block")


def peer(name: str, module: str, made_by: str, needs: str, *, holds: bool = False) -> list[Entry]:
    """A peer that does not persist, as it is and with fsync added."""
    entry = Entry(name, module, made_by, False, needs, holds=holds)
    return [entry, Entry(f"{name}+fsync", module, made_by, True, needs, with_fsync=True, holds=holds)]


FIELD = {
    entry.name: entry
    for entry in [
        Entry("none", "contender", "Contender", False),
        *(ours(capture, in_flight) for capture in ("boundary", "lazy") for in_flight in IN_FLIGHT),
        ours("lazy", 1, "skip"),
        ours("lazy", 2, "replace"),
        Entry("torch-save", "plain", "TorchSave", True, holds=True),
        Entry("torch-save-thread", "plain", "TorchSaveThread", True),
        Entry("dcp-thread", "distributed", "DistributedThread", True),
        Entry("dcp-process", "distributed", "DistributedProcess", True),
        Entry("orbax", "peer_orbax", "Orbax", True, "orbax"),
        *peer("torch_checkpointing", "peer_torch_checkpointing", "TorchCheckpointing", "torch_checkpointing"),
        *peer("torchsnapshot", "peer_torchsnapshot", "TorchSnapshot", "torchsnapshot"),
        *peer("lightning", "peer_lightning", "LightningAsync", "lightning"),
        *peer("safetensors", "peer_safetensors", "Safetensors", "safetensors", holds=True),
    ]
}
"""In the order of the table."""

BASELINE = "none"
QUICK = (
    "none", "lastgood-boundary-1", "lastgood-lazy-1", "lastgood-lazy-4", "torch-save", "torch-save-thread",
    "dcp-thread", "torch_checkpointing+fsync", "torchsnapshot+fsync",
)  # fmt: skip
"""Durable ones, the best of their kind."""


def is_ours(name: str) -> bool:
    """Whether this is lastgood."""
    return name.startswith("lastgood-")


def absent() -> dict[str, str]:
    """Contenders that cannot run here, each with the reason."""
    return {
        entry.name: f"{entry.needs} is not installed: pip install 'lastgood[bench]'"
        for entry in FIELD.values()
        if not entry.is_here
    }
