"""What the parts of a checkpoint cost, in seconds: the table that a replay reads.

    {"common": {"iteration_seconds": 0.1, "capture_seconds": 0.08, …}, "checkfreq": {"write_seconds": 2.7}}

A system's own entry stands above the common one. A file that `lastgood tune` wrote is such a table too (its `common`).
What is not given follows from what is: an update takes a twentieth of an iteration, a save alone writes as fast as
several, storing without a copy takes as long as the slower of copy and write, a peer's memory is as far as the host's.
"""

from __future__ import annotations

import dataclasses
import json
import os
from importlib import resources
from typing import Any

from .trace import BadInput

SHIPPED = "vgg16.json"
"""The table that comes with the project: VGG16 on one A100, from the published logs of PCcheck's artifact."""
MOST = 1e9
"""Of anything: thirty years, where it is seconds."""
MOST_IN_FLIGHT = 64


@dataclasses.dataclass(frozen=True)
class Costs:
    """One system's costs on one machine and job. 0 where a default follows from the other fields."""

    iteration_seconds: float
    capture_seconds: float
    write_seconds: float
    """A checkpoint's share of the device's whole bandwidth."""
    load_seconds: float
    restart_seconds: float = 30.0
    """From the failure until every process runs again and loading can begin."""
    single_write_seconds: float = 0.0
    """A save that is alone on the device, where one alone cannot use all of it."""
    direct_seconds: float = 0.0
    """Straight from where the state lives to durable memory, nothing in between."""
    update_seconds: float = 0.0
    peer_seconds: float = 0.0
    """The state to another machine's memory, and back."""
    idle_fraction: float = 0.5
    """Part of an iteration in which the network is free."""
    in_flight: int = 4
    pool_states: float = 2.0
    """Host memory for snapshots, in states (DataStates)."""
    gradient_fraction: float = 1 / 7
    """Bytes of a gradient over bytes of the state (GoCkpt)."""
    difference_fraction: float = 0.3
    """Bytes of a difference over bytes of the state (TierCheck)."""
    base_every: int = 50
    """Differences between two bases (TierCheck)."""
    backstop_seconds: float = 3 * 3600.0
    """Between two durable checkpoints of a system that relies on memory."""
    replicas: int = 2
    """Machines that hold each shard."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:  # nan neither
                raise BadInput(f"{field.name}: {value!r:.40}: give a number from 0 to {MOST:g}")
        for name in ("iteration_seconds", "in_flight", "replicas", "base_every", "backstop_seconds"):
            if not getattr(self, name) > 0:
                raise BadInput(f"{name}: {getattr(self, name)!r}: give more than 0")
        for name in ("in_flight", "replicas", "base_every"):
            if not isinstance(getattr(self, name), int):
                raise BadInput(f"{name}: {getattr(self, name)!r}: give a whole number")
        for name in ("in_flight", "pool_states"):
            if getattr(self, name) > MOST_IN_FLIGHT:
                raise BadInput(f"{name}: {getattr(self, name)!r}: give {MOST_IN_FLIGHT} at most")

    @property
    def alone(self) -> float:
        """Seconds of a write with the device to itself."""
        return max(self.write_seconds, self.single_write_seconds)

    @property
    def direct(self) -> float:
        """Seconds of storing without a copy in between."""
        return self.direct_seconds or max(self.capture_seconds, self.write_seconds)

    @property
    def undisturbed(self) -> float:
        """The part of an iteration during which weights and moments stand still."""
        return self.iteration_seconds - min(self.iteration_seconds, self.update_seconds or self.iteration_seconds / 20)

    @property
    def peer(self) -> float:
        """Seconds to a peer's memory."""
        return self.peer_seconds or self.capture_seconds


class CostTable:
    """The costs of every system, from a common entry and what differs."""

    def __init__(self, table: dict[str, dict[str, Any]], name: str = "costs", **overrides: float) -> None:
        self._table = table
        self._overrides = overrides
        self.name = name
        known = {field.name for field in dataclasses.fields(Costs)}
        for system, entry in table.items():
            if not isinstance(entry, dict):
                raise BadInput(f"{name}: {system}: give an object of numbers")
            unknown = sorted(set(entry) - known)
            if unknown:
                raise BadInput(
                    f"{name}: {system}: there is no cost {unknown[0]!r}; the costs are {', '.join(sorted(known))}"
                )
        self.of("common")

    def of(self, system: str) -> Costs:
        """The costs of this system."""
        entry = {**self._table.get("common", {}), **self._table.get(system, {}), **self._overrides}
        try:
            return Costs(**entry)
        except TypeError:
            needed = ("iteration_seconds", "capture_seconds", "write_seconds", "load_seconds")
            missing = [field for field in needed if field not in entry]
            raise BadInput(f"{self.name}: {system}: {', '.join(missing)} not given") from None
        except BadInput as problem:
            raise BadInput(f"{self.name}: {system}: {problem}") from None


def read_costs(path: str | os.PathLike[str] | None, **overrides: float) -> CostTable:
    """The table in a JSON file, the shipped one without. Raises BadInput and OSError."""
    if path is None:
        text, name = resources.files(__package__).joinpath(SHIPPED).read_text(encoding="utf-8"), SHIPPED
    else:
        name = os.path.basename(os.fspath(path))
        with open(path, encoding="utf-8") as file:
            text = file.read()
    try:
        content = json.loads(text)
        table = content.get("costs", content)
        entries = {system: entry for system, entry in table.items() if isinstance(entry, dict)}
        common = entries["common"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadInput(
            f'{name}: give a JSON object with a "common" entry, or a file that lastgood tune wrote'
        ) from None
    assert isinstance(common, dict)
    return CostTable(entries, name, **overrides)
