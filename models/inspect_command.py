"""`inspect` on the command line: what a store is and holds, and a table of what is in its newest checkpoint.

Also for a file that was exported or pinned. What the core prints comes first, unchanged; the table is added when the
checkpoint is a state that `lastgood.models` wrote. Only records and skeletons are read.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
from dataclasses import asdict
from typing import Any

from lastgood.core import StoreError, command

from .errors import NotAState
from .peeking import Peek, peek, table

ROWS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The core's arguments, and which checkpoint to look into."""
    command.add_arguments(parser)
    parser.add_argument("--step", type=int, help="look into another checkpoint than the newest")
    parser.add_argument("--all", action="store_true", help=f"every tensor, not only the first {ROWS}")


def run(arguments: argparse.Namespace) -> int:
    """Print what the core knows, then what is in the state."""
    rows = None if arguments.all else ROWS
    if os.path.isfile(arguments.path):
        found = peek(arguments.path)
        if arguments.step not in (None, found.step):
            raise StoreError(f"{arguments.path} is of step {found.step}, not {arguments.step}")
        print(
            json.dumps({"path": found.path, "state": facts_of(found)})
            if arguments.json
            else "\n".join(lines(found, rows))
        )
        return 0
    if not arguments.json:
        status = command.run_inspect(arguments)
        with contextlib.suppress(NotAState) if arguments.step is None else contextlib.nullcontext():
            found = _newest(arguments)
            if found is not None:
                print("\n".join(lines(found, rows)))
        return status
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = command.run_inspect(arguments)
    facts: dict[str, Any] = json.loads(printed.getvalue())
    try:
        found = _newest(arguments)
        facts["state"] = None if found is None else facts_of(found)
    except NotAState as problem:
        facts["state"], facts["state_problem"] = None, str(problem)
    print(json.dumps(facts))
    return status


def _newest(arguments: argparse.Namespace) -> Peek | None:
    """What is in the checkpoint asked for; None when nothing can be looked into, which the core has said already."""
    try:
        return peek(arguments.path, arguments.step)
    except NotAState:
        raise
    except StoreError:
        if arguments.step is not None:
            raise
        return None


def lines(found: Peek, rows: int | None) -> list[str]:
    """A heading and the table."""
    head = f"  step {found.step}: {found.payload_bytes:,} bytes, {found.age_seconds:,.0f} s old"
    return [head, *(f"    {line}" for line in table(found, rows))]


def facts_of(found: Peek) -> dict[str, Any]:
    """What was found, as plain values."""
    return {
        "step": found.step,
        "bytes": found.payload_bytes,
        "saved_at": found.saved_at,
        "leaves": [asdict(leaf) for leaf in found.leaves],
    }
