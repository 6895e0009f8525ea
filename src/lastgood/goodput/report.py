"""What `lastgood goodput` prints: a table for people, one object for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from .formula import Series, failures
from .replay import Outcome
from .trace import Trace

Sweep = Mapping[str, Sequence[Outcome]]
"""Of each system, the outcome at every interval."""


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome with the most goodput; of equal ones the rarer saves."""
    return max(outcomes, key=lambda outcome: (outcome.goodput, outcome.interval_steps))


def at(outcomes: Sequence[Outcome], interval: int) -> Outcome:
    """The outcome at this interval."""
    return next(outcome for outcome in outcomes if outcome.interval_steps == interval)


def as_table(trace: Trace, sweep: Sweep, interval: int) -> str:
    """Every system at one interval and at its own best, the best first."""
    losses = trace.losses()
    lost = sum(loss.lost for loss in losses)
    lines = [
        f"{trace.name}: {trace.duration_seconds / 3600:.2f} h, up to {trace.most_gpus} GPUs,"
        f" {len(losses)} losses of {lost} GPUs in all",
        "",
        f"{'':<14}{f'every {interval} steps':>15}{'':36}{'at its own best':>30}",
        f"{'':<14}{'goodput':>8}{'lost':>8}{'held':>8}{'down':>8}{'redone':>8}{'worst':>7}{'bound':>7}"
        f"{'steps':>9}{'goodput':>9}{'lost':>8}{'redone':>8}",
    ]
    for name in sorted(sweep, key=lambda name: -best_of(sweep[name]).goodput):
        fixed, best = at(sweep[name], interval), best_of(sweep[name])
        marked = "*" if fixed.fallbacks else " "
        lines.append(
            f"{name:<14}{fixed.goodput:8.3f}{share(fixed.lost, fixed)}{share(fixed.held, fixed)}{share(fixed.down, fixed)}"
            f"{fixed.redone_steps:8}{fixed.most_redone_steps:6}{marked}{fixed.bound_steps:7}"
            f"{best.interval_steps:9}{best.goodput:9.3f}{share(best.lost, best)}{best.redone_steps:8}"
        )
    if any(at(outcomes, interval).fallbacks for outcomes in sweep.values()):
        lines += ["", "* memory was gone after some losses: worst is of the others, redone is of all"]
    return "\n".join(lines)


def share(seconds: float, outcome: Outcome) -> str:
    """Of the available GPU time, in percent."""
    return f"{seconds / outcome.available:8.1%}"


def as_object(trace: Trace, sweep: Sweep, interval: int, *, costs: str, seed: int) -> dict[str, Any]:
    """The same, and the whole sweep."""
    return {
        "trace": about(trace),
        "costs": costs,
        "seed": seed,
        "interval_steps": interval,
        "fixed": {name: asdict(at(outcomes, interval)) for name, outcomes in sweep.items()},
        "best": {name: asdict(best_of(outcomes)) for name, outcomes in sweep.items()},
        "sweep": {name: [asdict(outcome) for outcome in outcomes] for name, outcomes in sweep.items()},
    }


def about(trace: Trace) -> dict[str, Any]:
    """What a reader should know of the trace."""
    losses = trace.losses()
    return {
        "name": trace.name,
        "seconds": trace.duration_seconds,
        "most_gpus": trace.most_gpus,
        "losses": len(losses),
        "gpus_lost": sum(loss.lost for loss in losses),
        "available_gpu_seconds": trace.available_gpu_seconds,
    }


def formula_table(trace: Trace, series: Sequence[Series]) -> str:
    """The artifact's figure as numbers."""
    intervals = series[0].intervals
    lines = [
        f"{trace.name}: {failures(trace)} failures by the artifact's count; useful iterations per second",
        "",
        f"{'every':<12}" + "".join(f"{interval:>10}" for interval in intervals),
    ]
    lines += [f"{each.system:<12}" + "".join(f"{value:10.2f}" for value in each.goodput(trace)) for each in series]
    return "\n".join(lines)


def formula_object(trace: Trace, series: Sequence[Series]) -> dict[str, Any]:
    """The same, unrounded."""
    return {
        "formula": "artifact",
        "trace": about(trace),
        "failures": failures(trace),
        "intervals": list(series[0].intervals),
        "goodput": {each.system: list(each.goodput(trace)) for each in series},
    }
