"""What was wanted of a sweep, and what it measured: one row a figure, in the units that were asked for.

The rows are about one setting of lastgood, named beforehand: the best of several noisy ones would be mostly noise. Of the
peers the best one counts. A row whose cells were not measured says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .field import FIELD, is_ours

Cells = Sequence[dict[str, Any]]

OURS = "lastgood-lazy-2"
MANY = "lastgood-lazy-4"


@dataclass(frozen=True)
class Row:
    """One figure."""

    what: str
    wanted: str
    measured: str
    is_reached: bool | None
    """None: not measured."""


def rows(figures: dict[str, Any]) -> list[Row]:
    """Every figure."""
    cells = [cell for cell in figures["cells"] if cell["slowdown"] is not None and cell["contender"] != "none"]
    found = [over_floor(cells, 256, interval, 1.08 if interval == 1 else 1.03) for interval in (1, 2, 5, 10, 25)]
    found += [less_overhead(cells, 2, 50), less_overhead(cells, 10, 8), memory(cells)]
    found += [over_floor(cells, 1024, interval, 1.08) for interval in (1, 2)]
    found += [
        refusing(cells, policy, figures["raw_gb_per_s"], figures["step_ms"] / 1e3) for policy in ("skip", "replace")
    ]
    found += [real_step(cells), cpu(cells), staleness(cells)]
    return found


def of(cells: Cells, state_mb: int, interval: int, kind: str, wanted: Callable[[str], bool]) -> Cells:
    """The cells of one block whose contenders are wanted."""
    return [
        cell
        for cell in cells
        if (cell["state_mb"], cell["interval"], cell["step_kind"]) == (state_mb, interval, kind)
        and wanted(cell["contender"])
    ]


def is_chosen(name: str) -> bool:
    """The setting that the rows are about."""
    return name == OURS


def is_peer(name: str) -> bool:
    """Somebody else."""
    return not is_ours(name)


def missing(what: str, wanted: str) -> Row:
    """Not in this sweep."""
    return Row(what, wanted, "not measured", None)


def over_floor(cells: Cells, state_mb: int, interval: int, most: float) -> Row:
    """Slowdown over what the device allows."""
    what, wanted = f"{state_mb} MB every {interval}: slowdown over the floor", f"≤ {most:g}"
    here = of(cells, state_mb, interval, "emulated", is_chosen)
    if not here:
        return missing(what, wanted)
    ratio = here[0]["slowdown"] / here[0]["floor"]
    said = f"{ratio:.3f} ({here[0]['slowdown']:.3f}, floor {here[0]['floor']:.3f})"
    return Row(what, wanted, said, ratio <= most)


def less_overhead(cells: Cells, interval: int, least: float) -> Row:
    """Overhead of the best durable peer over ours."""
    what = f"256 MB every {interval}: overhead of the best durable peer over ours"
    ours = of(cells, 256, interval, "emulated", is_chosen)
    peers = [cell for cell in of(cells, 256, interval, "emulated", is_peer) if cell["durable"]]
    if not ours or not peers:
        return missing(what, f"≥ {least:g}")
    mine, theirs = ours[0], min(peers, key=lambda cell: cell["slowdown"])
    ratio = (theirs["slowdown"] - 1) / max(1e-4, mine["slowdown"] - 1)
    said = f"{ratio:.1f} ({theirs['contender']} {theirs['slowdown']:.3f}, lastgood {mine['slowdown']:.3f})"
    return Row(what, f"≥ {least:g}", said, ratio >= least)


def memory(cells: Cells) -> Row:
    """What saving adds to the memory of the job."""
    what = "256 MB every 2: extra memory over the state"
    here = of(cells, 256, 2, "emulated", is_chosen)
    if not here:
        return missing(what, "≤ 0.6")
    ratio = here[0]["peak_mb"] / 256
    return Row(what, "≤ 0.6", f"{ratio:.2f}", ratio <= 0.6)


def refusing(cells: Cells, policy: str, raw_gb_per_s: float, step_seconds: float) -> Row:
    """Slowdown, and how old the newest durable is when it becomes so.

    Just before the next one does it is older by the time between two, which is m/B too: no policy is below 2·m/B then.
    """
    what = f"1 GB every step, {policy}: slowdown; age of the newest, once durable, over 1.3·m/B + an interval"
    here = of(cells, 1024, 1, "emulated", lambda name: name.endswith(f"-{policy}"))
    if not here or here[0]["longest_seconds"] is None:
        return missing(what, "≤ 1.05; ≤ 1")
    cell = here[0]
    age = cell["longest_seconds"] / (1.3 * 1024 * 2**20 / (raw_gb_per_s * 1e9) + step_seconds)
    said = f"{cell['slowdown']:.3f}; {age:.2f} ({cell['dropped']} of {cell['saves']} refused)"
    return Row(what, "≤ 1.05; ≤ 1", said, cell["slowdown"] <= 1.05 and age <= 1)


def real_step(cells: Cells) -> Row:
    """A step that needs the CPU."""
    what = "256 MB every 10, real step on one thread: slowdown"
    here = of(cells, 256, 10, "torch", is_chosen)
    if not here:
        return missing(what, "≤ 1.05")
    return Row(what, "≤ 1.05", f"{here[0]['slowdown']:.3f}", here[0]["slowdown"] <= 1.05)


def cpu(cells: Cells) -> Row:
    """CPU seconds for each gigabyte, ours over the best peer's."""
    what = "the same: CPU seconds per GB over the best durable peer's"
    ours = of(cells, 256, 10, "torch", is_chosen)
    peers = [cell for cell in of(cells, 256, 10, "torch", is_peer) if cell["durable"]]
    if not ours or not peers:
        return missing(what, "≤ 0.5")
    mine, theirs = ours[0], min(peers, key=lambda cell: cell["cpu_seconds_per_gb"])
    ratio = mine["cpu_seconds_per_gb"] / max(1e-9, theirs["cpu_seconds_per_gb"])
    said = f"{ratio:.2f} ({mine['cpu_seconds_per_gb']:.2f}, {theirs['contender']} {theirs['cpu_seconds_per_gb']:.2f})"
    return Row(what, "≤ 0.5", said, ratio <= 0.5)


def staleness(cells: Cells) -> Row:
    """With 4 in flight, against the best durable peer that has one in flight while the training goes on."""
    what = "256 MB every 2: staleness with 4 in flight, and of the best durable peer with 1"
    ours = of(cells, 256, 2, "emulated", lambda name: name == MANY)
    peers = [
        cell
        for cell in of(cells, 256, 2, "emulated", is_peer)
        if cell["durable"] and not FIELD[cell["contender"]].holds
    ]
    stale = [cell for cell in peers if cell["staleness"] is not None]
    if not ours or not stale:
        return missing(what, "at most")
    best = min(stale, key=lambda cell: cell["staleness"])
    said = f"{ours[0]['staleness']:g}, {best['staleness']:g} steps ({best['contender']})"
    return Row(what, "at most", said, ours[0]["staleness"] <= best["staleness"])
