"""`lastgood goodput`: replay a failure trace for every strategy, over a sweep of intervals.

lastgood goodput                                the synthetic spot trace that comes with lastgood
lastgood goodput --trace FILE --costs FILE      your own; a file of `lastgood tune` is a table of costs
lastgood goodput --generate poisson --every 600
lastgood goodput --formula artifact             the published closed form instead, for the published VGG16 series
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from lastgood.output_path import why_not_writable

from . import report
from .costs import read_costs
from .extent import refuse_what_is_too_large
from .formula import published
from .generate import KINDS, generate
from .replay import replay
from .strategies import ROWS
from .trace import BadInput, Trace, read_trace, shipped_trace

DONE, BAD_USAGE = 0, 2
INTERVALS, INTERVAL = "1,2,5,10,25,50,100,200,500", 10
MADE: dict[str, Any] = {"gpus": 64, "hours": 12.0, "every": 1800.0, "away": 600.0}
"""Of a trace that is generated."""
REPLAYED = ("costs", "restart", "interval", "intervals", "figure")
"""What a replay reads and the closed form does not."""
FIGURES = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lastgood goodput`."""
    what = parser.add_argument_group("the failures")
    what.add_argument("--trace", metavar="FILE", help="a CSV file with columns Time (seconds) and GPUs")
    what.add_argument("--generate", choices=sorted(KINDS), help="make a trace by rule instead")
    what.add_argument("--gpus", type=int, help=f"for --generate: GPUs of the whole job (default {MADE['gpus']})")
    what.add_argument("--hours", type=float, help=f"for --generate: its length (default {MADE['hours']:g})")
    what.add_argument("--every", type=float, help=f"for --generate: seconds between losses (default {MADE['every']:g})")
    what.add_argument("--away", type=float, help=f"for --generate: seconds until they are back ({MADE['away']:g})")
    what.add_argument("--seed", type=int, default=0, help="for what is drawn (default 0)")
    how = parser.add_argument_group("the job")
    how.add_argument(
        "--costs", metavar="FILE", help="a table of costs in JSON (default: VGG16 on an A100, as published)"
    )
    how.add_argument("--restart", type=float, metavar="SECONDS", help="from a failure until loading begins")
    how.add_argument("--interval", type=int, help=f"the fixed interval that is shown (default {INTERVAL} steps)")
    how.add_argument("--intervals", help=f"the sweep (default {INTERVALS})")
    how.add_argument("--formula", choices=["artifact"], help="compute the published artifact's closed form instead")
    parser.add_argument("--figure", metavar="FILE", help="also draw it (.png, .svg or .pdf; needs matplotlib)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Replay and print; returns the exit status."""
    try:
        trace = the_trace(arguments)
        if arguments.formula:
            refuse_given(arguments, REPLAYED, "--formula has its own: give one of them")
            series = published()
            shown = report.formula_object(trace, series) if arguments.json else report.formula_table(trace, series)
        else:
            shown = replayed(trace, arguments)
    except BadInput as problem:
        print(f"lastgood: {problem}", file=sys.stderr)
        return BAD_USAGE
    print(json.dumps(shown) if arguments.json else shown)
    return DONE


def the_trace(arguments: argparse.Namespace) -> Trace:
    """The one that is asked for."""
    if arguments.trace and arguments.generate:
        raise BadInput("--trace and --generate: give one of the two")
    if not arguments.generate:
        refuse_given(arguments, MADE, f"this is for --generate: say which of {', '.join(sorted(KINDS))}")
    if arguments.trace:
        return read_trace(arguments.trace)
    if arguments.generate:
        given = {name: getattr(arguments, name) for name in MADE}
        sizes = {name: MADE[name] if value is None else value for name, value in given.items()}
        return generate(arguments.generate, seed=arguments.seed, **sizes)
    return shipped_trace()


def refuse_given(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise BadInput for an option that would be ignored."""
    for name in names:
        if getattr(arguments, name) is not None:
            raise BadInput(f"--{name}: {why}")


def replayed(trace: Trace, arguments: argparse.Namespace) -> Any:
    """The sweep, as a table or an object; drawn on the way when that was asked for."""
    fixed = INTERVAL if arguments.interval is None else arguments.interval
    intervals = the_intervals(arguments.intervals or INTERVALS, fixed)
    if arguments.figure and not arguments.figure.endswith(FIGURES):
        raise BadInput(f"--figure {arguments.figure}: give a name that ends in {', '.join(FIGURES)}")
    if arguments.figure and (reason := why_not_writable(arguments.figure)):
        raise BadInput(f"--figure {arguments.figure}: {reason}")
    overrides = {} if arguments.restart is None else {"restart_seconds": arguments.restart}
    costs = read_costs(arguments.costs, **overrides)
    refuse_what_is_too_large(trace, [costs.of(row.name) for row in ROWS], intervals)
    sweep = {}
    for row in ROWS:
        show_progress(row.name)
        sweep[row.name] = [
            replay(trace, row, costs.of(row.name), interval, seed=arguments.seed) for interval in intervals
        ]
    if arguments.figure:
        from .figure import draw  # needs matplotlib

        draw(arguments.figure, trace, sweep)
    if arguments.json:
        return report.as_object(trace, sweep, fixed, costs=costs.name, seed=arguments.seed)
    return report.as_table(trace, sweep, fixed)


def the_intervals(text: str, fixed: int) -> list[int]:
    """The sweep in order, with the fixed interval among it."""
    try:
        intervals = sorted({fixed, *(int(word) for word in text.split(","))})
    except ValueError:
        raise BadInput(f"--intervals {text}: give numbers of steps with commas between them, like 1,2,5,10") from None
    return intervals


def show_progress(name: str) -> None:
    """One line for each system, on a terminal only."""
    if sys.stderr.isatty():
        print(f"replaying {name} …", file=sys.stderr)
