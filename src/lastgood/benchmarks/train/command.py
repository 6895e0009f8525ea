"""`lastgood bench train`: measure, then a table or one JSON object; a figure when that is asked for."""

from __future__ import annotations

import argparse
import json
import sys

from .options import BadPlan, plan_of
from .page import NoMarks, check_marks, rewrite

DONE, FAILED_CHECK, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130


def run_train(arguments: argparse.Namespace) -> int:
    """The exit status: 1 when a checkpoint was not what was saved, 130 when interrupted (what there is, is shown)."""
    try:
        plan = plan_of(arguments)
        if arguments.page:
            check_marks(arguments.page)
    except (BadPlan, NoMarks) as problem:
        print(f"lastgood: {problem}", file=sys.stderr)
        return BAD_USAGE
    from .figures import figures_of
    from .report import Bar, as_table
    from .sweep import sweep

    samples = sweep(plan, arguments.directory, Bar(plan))
    figures = figures_of(plan, samples)
    print(json.dumps(figures) if arguments.json else as_table(figures))
    if arguments.figure:
        from .figure import draw  # needs matplotlib

        draw(arguments.figure, figures)
    if arguments.page and not samples.interrupted:
        rewrite(arguments.page, figures)
    if samples.interrupted:
        return INTERRUPTED
    return DONE if all(cell.get("correct", True) for cell in figures["cells"]) else FAILED_CHECK
