"""Goodput against the interval, one line for each system. The one module here that needs matplotlib."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # the backend is chosen first: there may be no screen

from .report import Sweep, best_of
from .trace import Trace


def draw(path: str, trace: Trace, sweep: Sweep) -> None:
    """Write the figure; the format follows the name's ending."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for number, name in enumerate(sorted(sweep, key=lambda name: -best_of(sweep[name]).goodput)):
        outcomes = sweep[name]
        style: dict[str, Any] = {"linewidth": 2.5} if name == "lastgood" else {"linewidth": 1.2}
        axes.plot(
            [outcome.interval_steps for outcome in outcomes],
            [outcome.goodput for outcome in outcomes],
            label=name,
            color=f"C{number}",
            linestyle="-" if number < 10 else "--",
            marker="o",
            markersize=3,
            **style,
        )
    axes.set_xscale("log")
    ticks = sorted({outcome.interval_steps for outcomes in sweep.values() for outcome in outcomes})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("steps between saves")
    axes.set_ylabel("goodput: kept work over what the GPUs present could do")
    axes.set_title(f"{trace.name}: {len(trace.losses())} losses in {trace.duration_seconds / 3600:.1f} h")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
