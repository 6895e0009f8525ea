"""`lastgood bench train`: measure, then a table or one JSON object; a figure when that is asked for."""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.util import find_spec

from ..stopping import postponed, stoppable
from .options import QUICK_SECONDS, BadPlan, plan_of
from .page import NoMarks, check_marks, rewrite

DONE, FAILED_CHECK, BAD_USAGE = 0, 1, 2


def run_train(arguments: argparse.Namespace) -> int:
    """The exit status: 1 when a checkpoint was not what was saved, 128 + the signal when one ended it.

    What was measured until then is shown in either case. `--quick` is over after `QUICK_SECONDS`, whatever it is at.
    """
    began = time.monotonic()
    return stoppable(lambda: measure(arguments, began), QUICK_SECONDS if arguments.quick else 0.0)


def measure(arguments: argparse.Namespace, began: float) -> int:
    """All of it."""
    try:
        plan = plan_of(arguments)
        if arguments.page:
            check_marks(arguments.page)
        if arguments.figure and find_spec("matplotlib") is None:
            raise ModuleNotFoundError("the figure is drawn with matplotlib", name="matplotlib")
    except (BadPlan, NoMarks) as problem:
        print(f"lastgood: {problem}", file=sys.stderr)
        return BAD_USAGE
    from .figures import figures_of
    from .report import Bar, as_table
    from .sweep import sweep

    samples = sweep(plan, arguments.directory, Bar(plan, began), began)
    with postponed():
        figures = figures_of(plan, samples)
        print(json.dumps(figures) if arguments.json else as_table(figures))
        if arguments.figure:
            from .figure import draw  # needs matplotlib

            draw(arguments.figure, figures)
        if arguments.page and not samples.stopped:
            rewrite(arguments.page, figures)
    if samples.stopped and not samples.stopped.is_out_of_time:
        return samples.stopped.status
    return DONE if all(cell.get("correct", True) for cell in figures["cells"]) else FAILED_CHECK
