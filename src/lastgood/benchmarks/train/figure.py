"""Slowdown against the interval, one line a contender, the floor shaded. The one module here that needs matplotlib."""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # the backend is chosen first: there may be no screen

from .field import is_ours


def draw(path: str, figures: dict[str, Any]) -> None:
    """Write the figure; the format follows the name's ending."""
    cells = [cell for cell in figures["cells"] if cell["slowdown"] is not None and cell["contender"] != "none"]
    panels = sorted({(cell["step_kind"], cell["state_mb"]) for cell in cells})
    drawn, axes = pyplot.subplots(1, max(1, len(panels)), figsize=(6 * max(1, len(panels)), 5), squeeze=False)
    names = list(dict.fromkeys(cell["contender"] for cell in cells))
    for (step_kind, state_mb), panel in zip(panels, axes[0], strict=False):
        here = [cell for cell in cells if (cell["step_kind"], cell["state_mb"]) == (step_kind, state_mb)]
        for number, name in enumerate(names):
            line = sorted((cell["interval"], cell["slowdown"]) for cell in here if cell["contender"] == name)
            style = {"linewidth": 2.2, "marker": "o"} if is_ours(name) else {"linewidth": 1.1, "marker": "."}
            durable = any(cell["durable"] for cell in here if cell["contender"] == name)
            panel.plot(
                *zip(*line, strict=True),
                label=name,
                color=f"C{number % 10}",
                linestyle="-" if durable else ":",
                **style,
            ) if line else None
        floor = sorted({(cell["interval"], cell["floor"]) for cell in here})
        panel.fill_between([each for each, _ in floor], 1, [each for _, each in floor], alpha=0.2, color="gray")
        panel.axhline(1, color="gray", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_yscale("log")
        ticks = [interval for interval, _ in floor]
        panel.set_xticks(ticks, [str(tick) for tick in ticks])
        panel.minorticks_off()
        panel.set_title(f"{state_mb} MB, {step_kind} step")
        panel.set_xlabel("steps between saves")
    axes[0][0].set_ylabel("slowdown (gray: what the device allows; dotted: not durable)")
    axes[0][-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.02, 1.0))
    drawn.tight_layout()
    drawn.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(drawn)
