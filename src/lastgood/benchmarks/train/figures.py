"""The figures of a sweep: medians over its rounds, by the names that `--json` prints."""

from __future__ import annotations

import os
import platform
import statistics
from typing import Any

import torch

from ..raw import MEGABYTE
from .field import BASELINE, FIELD, absent
from .loop import Cell
from .sweep import Plan, Samples


def figures_of(plan: Plan, samples: Samples) -> dict[str, Any]:
    """The whole object."""
    done = {(cell.contender, cell.state_mb, cell.interval, cell.step_kind) for cell in samples.cells}
    rate = statistics.median(samples.raw_rates) if samples.raw_rates else 0.0
    return {
        "machine": machine() | load_of(samples),
        "raw_gb_per_s": rate / 1e9,
        "raw_gb_per_s_range": [min(samples.raw_rates) / 1e9, max(samples.raw_rates) / 1e9] if samples.raw_rates else [],
        "step_ms": plan.step_seconds * 1e3,
        "rounds": samples.rounds,
        "complete": samples.stopped is None,
        "absent": absent(),
        "missing": [
            f"{name}, {block.state_mb} MB every {block.interval} ({block.step_kind})"
            for block in plan.blocks()
            for name in block.contenders
            if (name, *block[:3]) not in done
        ],
        "cells": [figures_of_cell(cell, runs, rate) for cell, runs in samples.cells.items()],
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def load_of(samples: Samples) -> dict[str, Any]:
    """Processes that wanted to run, the benchmark's own among them: the median over its blocks, the least and the most."""
    loads = samples.loads or [os.getloadavg()[0]]
    return {"load": round(statistics.median(loads), 1), "load_range": [round(min(loads), 1), round(max(loads), 1)]}


def figures_of_cell(cell: Cell, runs: list[dict[str, Any]], raw_rate: float) -> dict[str, Any]:
    """One cell. What could not be measured is None, with the reason in `error`."""
    about: dict[str, Any] = {
        "contender": cell.contender,
        "state_mb": cell.state_mb,
        "interval": cell.interval,
        "step_kind": cell.step_kind,
        "durable": FIELD[cell.contender].is_durable,
    }
    good = [run for run in runs if "error" not in run and "baseline_seconds" in run]
    if not good:
        return about | {
            "slowdown": None,
            "error": next((run["error"] for run in runs if "error" in run), "no baseline"),
        }
    slowdowns = [run["iteration_seconds"] / run["baseline_seconds"] for run in good]
    step_seconds = statistics.median(run["baseline_seconds"] for run in good)
    needed = good[0]["state_bytes"] / (cell.interval * step_seconds * raw_rate) if raw_rate else 0.0
    saves = cell.contender != BASELINE
    return about | {
        "slowdown": statistics.median(slowdowns),
        "slowdown_range": [min(slowdowns), max(slowdowns)],
        "floor": max(1.0, needed) if saves else 1.0,
        "repetitions": len(good),
        "iteration_ms": median_of(good, "iteration_seconds") * 1e3,
        "stall_ms": median_of(good, "stall_seconds") * 1e3,
        "saves": sum(run["saves"] for run in good) if saves else 0,
        "durable_saves": sum(run["complete"] for run in good) if FIELD[cell.contender].is_durable else 0,
        "complete_saves": sum(run["complete"] for run in good),
        "dropped": sum(run["dropped"] for run in good),
        "staleness": median_of(good, "staleness"),
        "oldest_seconds": max((run["oldest_seconds"] for run in good if run["oldest_seconds"]), default=None),
        "longest_seconds": max((run["longest_seconds"] for run in good if run["longest_seconds"]), default=None),
        "peak_mb": statistics.median(run["extra_bytes"] + run["descendant_bytes"] for run in good) / MEGABYTE,
        "cpu_seconds_per_gb": statistics.median(cpu_per_gigabyte(run) for run in good) if saves else 0.0,
        "written_gb_per_save": statistics.median(run["written_bytes"] / run["saves"] for run in good) / 1e9,
        "drain_ms": median_of(good, "drain_seconds") * 1e3,
        "correct": not any(run["wrong"] for run in good),
        "error": next((run["error"] for run in runs if "error" in run), None),
    }


def cpu_per_gigabyte(run: dict[str, Any]) -> float:
    """CPU seconds of all processes for each gigabyte of state saved, but what the step itself and the loop around it take."""
    extra = run["cpu_seconds"] - run["baseline_cpu_seconds"] * run["iterations"]
    return float(max(0.0, extra) / (run["saves"] * run["state_bytes"] / 1e9))


def median_of(runs: list[dict[str, Any]], name: str) -> Any:
    """The median, or None when it was never measured."""
    values = [run[name] for run in runs if run[name] is not None]
    return statistics.median(values) if values else None
