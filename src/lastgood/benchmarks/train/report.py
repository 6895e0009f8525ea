"""What `lastgood bench train` shows: a bar while it runs, a table for each block at the end."""

from __future__ import annotations

import sys
import time
from typing import Any

from .loop import Cell
from .sweep import Plan, Samples

BAR_WIDTH = 30


class Bar:
    """One line on the error stream that is written over; nothing where that is no terminal."""

    def __init__(self, plan: Plan) -> None:
        self._cells = plan.cell_count * plan.repetitions
        self._limit = plan.limit_seconds
        self._began = time.monotonic()
        self._done = -1

    def __call__(self, cell: Cell | None, samples: Samples) -> None:
        """A cell begins; None at the end."""
        self._done += 1
        if not sys.stderr.isatty():
            return
        if cell is None:
            print("\r\033[K", end="", file=sys.stderr)
            return
        spent = time.monotonic() - self._began
        part = min(1.0, self._done / self._cells)
        left = min(spent / self._done * (self._cells - self._done), self._limit - spent) if self._done else None
        bar = "#" * round(part * BAR_WIDTH)
        when = "" if left is None else f", {max(0.0, left) / 60:.0f} min left"
        what = f"{cell.contender}, {cell.state_mb} MB every {cell.interval} ({cell.step_kind})"
        print(f"\r\033[K[{bar:.<{BAR_WIDTH}}] {self._done + 1}/{self._cells} {what}{when}", end="", file=sys.stderr)


def as_table(figures: dict[str, Any]) -> str:
    """One table for each block, in the order of the field."""
    lines = [
        f"raw bandwidth {figures['raw_gb_per_s']:.2f} GB/s; medians of {figures['rounds']} whole rounds"
        + ("" if figures["complete"] else " (interrupted)"),
    ]
    blocks: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for cell in figures["cells"]:
        blocks.setdefault((cell["state_mb"], cell["step_kind"], cell["interval"]), []).append(cell)
    for (state_mb, step_kind, interval), cells in blocks.items():
        floor = max((cell.get("floor") or 1.0) for cell in cells)
        lines += ["", f"{state_mb} MB, {step_kind} step, every {interval} steps; floor {floor:.3f}", HEADER]
        lines += [row(cell) for cell in sorted(cells, key=lambda cell: cell["slowdown"] or float("inf"))]
    lines += ["", f"{NOT_DURABLE} does not survive a power loss"]
    lines += [f"absent: {name}: {reason}" for name, reason in figures["absent"].items()]
    return "\n".join(lines)


NOT_DURABLE = "~"
HEADER = (
    f"  {'':<28}{'slowdown':>9}{'range':>15}{'stall ms':>10}{'durable':>9}{'dropped':>8}{'stale':>6}{'peak MB':>9}"
    f"{'CPU s/GB':>10}{'GB/save':>9}"
)


def row(cell: dict[str, Any]) -> str:
    """One contender."""
    mark = " " if cell["durable"] or cell["contender"] == "none" else NOT_DURABLE
    name = f"{mark} {cell['contender']:<28}"
    if cell["slowdown"] is None:
        return f"{name}  failed: {cell['error']}"
    low, high = cell["slowdown_range"]
    stale = "" if cell["staleness"] is None else f"{cell['staleness']:g}"
    saves = f"{cell['durable_saves']}/{cell['saves']}"
    wrong = "" if cell["correct"] else "  WRONG when read back"
    return (
        f"{name}{cell['slowdown']:9.3f}{f'{low:.2f}–{high:.2f}':>15}{cell['stall_ms']:10.1f}{saves:>9}{cell['dropped']:8}"
        f"{stale:>6}{cell['peak_mb']:9.0f}{cell['cpu_seconds_per_gb']:10.2f}{cell['written_gb_per_save']:9.2f}{wrong}"
    )
