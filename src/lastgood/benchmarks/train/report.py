"""What `lastgood bench train` shows: a bar while it runs, a table for each block at the end."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from .loop import Cell
from .sweep import Plan, Samples

BAR_WIDTH = 30


class Bar:
    """One line on the error stream that is written over; where that is no terminal, one line for each block."""

    def __init__(self, plan: Plan, began: float) -> None:
        self._blocks = [(number, block) for number, block in enumerate(plan.blocks(), 1) for _ in block.contenders]
        self._block_count = self._blocks[-1][0]
        self._cells = plan.cell_count * plan.repetitions
        self._repetitions, self._limit, self._began = plan.repetitions, plan.limit_seconds, began
        self._first: float | None = None
        self._done = -1

    def __call__(self, cell: Cell | None, samples: Samples) -> None:
        """A cell begins; None at the end."""
        self._done += 1
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        if cell is None:
            print("\r\033[K" if sys.stderr.isatty() else "", end="", file=sys.stderr)
            return
        left = min((now - self._first) / self._done * (self._cells - self._done) if self._done else math.inf,
                   self._limit - (now - self._began))  # fmt: skip
        when = f", {max(0.0, left) / 60:.0f} min left" if left < math.inf else ""
        if sys.stderr.isatty():
            bar = "#" * round(min(1.0, self._done / self._cells) * BAR_WIDTH)
            what = f"{cell.contender}, {cell.state_mb} MB every {cell.interval} ({cell.step_kind})"
            shown = f"[{bar:.<{BAR_WIDTH}}] {self._done + 1}/{self._cells} {what}{when}"
            print(f"\r\033[K{shown}", end="", file=sys.stderr)
            return
        place = self._done % len(self._blocks)
        number, block = self._blocks[place]
        if place == 0 or number != self._blocks[place - 1][0]:
            turn = f"round {samples.rounds + 1} of {self._repetitions}, block {number} of {self._block_count}"
            what = f"{block.state_mb} MB every {block.interval} ({block.step_kind})"
            print(f"{turn}: {what}; {self._done} of {self._cells} cells done{when}", file=sys.stderr)


def as_table(figures: dict[str, Any]) -> str:
    """One table for each block, in the order of the field."""
    lines = [
        f"raw bandwidth {figures['raw_gb_per_s']:.2f} GB/s; medians of {figures['rounds']} whole rounds"
        + ("" if figures["complete"] else " (ended early)"),
    ]
    blocks: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for cell in figures["cells"]:
        blocks.setdefault((cell["state_mb"], cell["step_kind"], cell["interval"]), []).append(cell)
    for (state_mb, step_kind, interval), cells in blocks.items():
        floor = max((cell.get("floor") or 1.0) for cell in cells)
        lines += ["", f"{state_mb} MB, {step_kind} step, every {interval} steps; floor {floor:.3f}", HEADER]
        lines += [row(cell) for cell in sorted(cells, key=lambda cell: cell["slowdown"] or float("inf"))]
    lines += ["", *(f"not measured: {what}" for what in figures["missing"])]
    lines += [f"{NOT_DURABLE} does not survive a power loss"]
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
