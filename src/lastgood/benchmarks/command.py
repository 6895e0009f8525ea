"""`lastgood bench core`, `bench state` and `bench train`: the figures as a table, or as one JSON object."""

from __future__ import annotations

import argparse
import json
import sys

from .core_figures import core_figures
from .stopping import check, stoppable
from .train.options import add_train_arguments

CORE_TARGETS = {
    "persisted_over_raw": "at least 0.92",
    "copy_digest_over_memcpy": "at least 0.95",
    "digest_gb_per_s": "at least 12, or the memory's read bandwidth",
    "tiny_over_bare": "at most 1.3",
    "staleness_4_over_1": "at most 1.25",
    "open_over_records": "at most 1.2",
    "read_over_raw": "at least 0.85",
    "import_seconds": "under 1",
    "first_save_seconds": "under 1",
    "rss_growth_mb": "at most 5",
    "descriptor_growth": "0",
}


WHAT = {
    "core": "the persistence core beside plain writes and reads",
    "state": "saving and loading training state beside torch.save",
    "train": "one training loop with every way to save",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to measure, each with options of its own."""
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, line in WHAT.items():
        kind = kinds.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".", allow_abbrev=False)
        minutes = "three minutes" if name == "train" else "a minute"
        kind.add_argument("--quick", action="store_true", help=f"fewer and smaller measurements: {minutes}")
        kind.add_argument("--directory", help="where to write; by default the system's temporary directory")
        kind.add_argument("--json", action="store_true", help="print one JSON object")
        if name == "train":
            add_train_arguments(kind)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    if arguments.what == "train":
        from .train.command import run_train  # needs torch

        return run_train(arguments)
    return stoppable(lambda: measure(arguments))


def measure(arguments: argparse.Namespace) -> int:
    """The core, or training state."""
    targets: dict[str, str] = CORE_TARGETS
    if arguments.what == "state":
        from .state_figures import TARGETS, state_figures  # needs torch

        targets = TARGETS
        figures = state_figures(arguments.directory, quick=arguments.quick, progress=_progress)
    else:
        figures = core_figures(arguments.directory, quick=arguments.quick, progress=_progress)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    for name, value in figures.items():
        if name != "cells":
            shown = f"{value:.3f}" if isinstance(value, float) else str(value)
            print(f"{name:<28} {shown:>10}   {targets.get(name, '')}".rstrip())
    for cell in figures.get("cells", ()):
        print(f"{cell['name']:<36} ours {cell['ours']:.4g}   raw {cell['limit']:.4g}   ratio {cell['ratio']:.3f}")
    return 0


def _progress(what: str) -> None:
    check()
    if sys.stderr.isatty():
        print(f"measuring {what} …", file=sys.stderr)
