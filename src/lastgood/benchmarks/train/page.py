"""The part of docs/performance.md that a sweep writes: `lastgood bench train --page docs/performance.md`.

What stands between the two marks is replaced, the rest of the page stays as it is.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .field import BASELINE, FIELD
from .targets import rows

BEGIN = "<!-- bench train: written by `lastgood bench train --page`, do not edit -->"
END = "<!-- bench train: end -->"
PEERS = ("torch", "lightning", "orbax-checkpoint", "safetensors", "torch_checkpointing", "torchsnapshot")


class NoMarks(ValueError):
    """The page has no place for the figures. The message is one line."""


def check_marks(path: str) -> tuple[str, str]:
    """What stands before and after the part. Raises NoMarks."""
    with open(path, encoding="utf-8") as file:
        before, begin, rest = file.read().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoMarks(f"--page {path}: the page needs the lines {BEGIN!r} and {END!r}")
    return before, after


def rewrite(path: str, figures: dict[str, Any]) -> None:
    """Put the figures into the page, in one rename. Raises NoMarks."""
    before, after = check_marks(path)
    beside = f"{path}.new"
    with open(beside, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{part(figures)}\n{END}{after}")
    os.replace(beside, path)


def part(figures: dict[str, Any]) -> str:
    """The Markdown."""
    return "\n".join([*about(figures), *wanted(figures), *tables(figures), *not_shown(figures)])


def about(figures: dict[str, Any]) -> list[str]:
    """Machine, versions, noise."""
    machine, rates = figures["machine"], figures["raw_gb_per_s_range"]
    versions = ", ".join(f"{name} {installed(name)}" for name in PEERS if installed(name))
    return [
        f"Machine: {machine['system']}, {machine['cpus']} CPUs, Python {machine['python']}; {versions}.",
        f"Raw bandwidth of plain overwrites, measured in each block: {figures['raw_gb_per_s']:.2f} GB/s"
        f" ({rates[0]:.2f} – {rates[1]:.2f}). Medians of {figures['rounds']} rounds; every slowdown is over training without"
        f" checkpoints in the same block, contenders in an order drawn anew. Steps of {figures['step_ms']:g} ms.",
        load(machine),
        "",
    ]


def load(machine: dict[str, Any]) -> str:
    """How busy the machine was, and what that does to the figures."""
    low, high = machine["load_range"]
    said = f"Processes that wanted to run, the benchmark's own among them: {machine['load']:g} ({low:g} – {high:g})."
    if machine["load"] <= machine["cpus"]:
        return said
    return (
        f"{said} That is more than there are CPUs: the emulated step sleeps and hardly notices, but whatever has to be"
        " copied or serialized waits for its turn. Measure again on a machine that has nothing else to do."
    )


def installed(name: str) -> str:
    """The version of a package; empty when it is not here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def wanted(figures: dict[str, Any]) -> list[str]:
    """What was wanted, what was measured."""
    lines = ["| figure | wanted | measured | |", "|---|---|---|---|"]
    said = {True: "reached", False: "**missed**", None: ""}
    lines += [f"| {row.what} | {row.wanted} | {row.measured} | {said[row.is_reached]} |" for row in rows(figures)]
    return [*lines, ""]


def tables(figures: dict[str, Any]) -> list[str]:
    """Slowdown of every contender at every interval, one table for each state and kind of step."""
    lines: list[str] = []
    cells = {(c["step_kind"], c["state_mb"], c["contender"], c["interval"]): c for c in figures["cells"]}
    for step_kind, state_mb in sorted({key[:2] for key in cells}):
        intervals = sorted({key[3] for key in cells if key[:2] == (step_kind, state_mb)})
        here = {key[2] for key in cells if key[:2] == (step_kind, state_mb)}
        names = [name for name in FIELD if name in here and name != BASELINE]
        lines += [
            f"{state_mb} MB, {step_kind} step: slowdown (stall of a save in ms); extra memory in MB and CPU seconds per GB"
            f" every {intervals[0]} steps:",
            "",
            "| | " + " | ".join(f"every {interval}" for interval in intervals) + " | memory | CPU |",
            "|---" * (len(intervals) + 3) + "|",
        ]
        for name in names:
            row = [cells.get((step_kind, state_mb, name, interval)) for interval in intervals]
            lines.append(f"| {name} | " + " | ".join(shown(cell) for cell in row) + f" | {extras(row[0])} |")
        floors = [next((c["floor"] for k, c in cells.items() if k[:2] == (step_kind, state_mb) and k[3] == interval
                        and c.get("floor") and k[2] != "none"), 1.0) for interval in intervals]  # fmt: skip
        lines += ["| *floor* | " + " | ".join(f"{floor:.3f}" for floor in floors) + " | | |", ""]
    return lines


def shown(cell: dict[str, Any] | None) -> str:
    """Slowdown and stall; a cell that failed says so."""
    if cell is None:
        return ""
    if cell["slowdown"] is None:
        return "failed"
    dropped = f", {cell['dropped']}/{cell['saves']} dropped" if cell["dropped"] else ""
    return f"{cell['slowdown']:.3f} ({cell['stall_ms']:.0f}{dropped})"


def extras(cell: dict[str, Any] | None) -> str:
    """Memory and CPU."""
    if cell is None or cell["slowdown"] is None:
        return " | "
    return f"{cell['peak_mb']:.0f} | {cell['cpu_seconds_per_gb']:.2f}"


def not_shown(figures: dict[str, Any]) -> list[str]:
    """What a reader might miss."""
    durable = sorted({cell["contender"] for cell in figures["cells"] if not cell["durable"]} - {"none"})
    lines = []
    if durable:
        lines.append(f"Not durable as they are (no fsync; `+fsync` adds it): {', '.join(durable)}.")
    if figures["absent"]:
        lines.append(f"Absent: {', '.join(figures['absent'])}.")
    return [
        *lines,
        "Not shown: several ranks, GPUs, other file systems and disks, more than one machine; dlrover, DeepSpeed and"
        " nvidia-resiliency-ext, which need a daemon, a compiler or a GPU.",
        "",
    ]
