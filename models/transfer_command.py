"""`export` and `import` on the command line.

lastgood export STORE OUT      the newest checkpoint into a file: .lastgood, .safetensors, .pt
lastgood import FILE STORE     a file of any of these forms, anybody's, into a store
"""

from __future__ import annotations

import argparse
import json
import sys

from lastgood.core import OtherRun

from .exports import export, found_in, save_found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the one that is being called."""
    if parser.prog.endswith("import"):
        parser.add_argument("file", help="a .safetensors, .pt or .lastgood file")
        parser.add_argument("path", help="the store's directory; made when there is none")
        parser.add_argument("--step", type=int, help="the step to save it as (default: what the file says, or 0)")
        parser.add_argument("--new-run", action="store_true", help="also into a store that holds another run")
    else:
        parser.add_argument("path", help="the store's directory")
        parser.add_argument("out", help="the file to write; its suffix says the form: .safetensors, .pt, .lastgood")
        parser.add_argument("--step", type=int, help="another checkpoint than the newest")
        parser.add_argument("--only", metavar="KEY", help="one part of the state, such as model, under its own names")
        parser.add_argument("--replace", action="store_true", help="write over a file that is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Copy in the direction that `arguments.command` names."""
    if arguments.command == "import":
        found = found_in(arguments.file)
        try:
            record = save_found(found, arguments.path, step=arguments.step, new_run=arguments.new_run)
        except OtherRun:
            told = (
                f"{arguments.path} holds checkpoints already: give another path, or --new-run to begin a new run there"
            )
            raise OtherRun(told) from None
        facts = {"path": arguments.path, "step": record.step, "bytes": record.payload_bytes}
        line = f"{arguments.file} is step {record.step} of {arguments.path} now, {record.payload_bytes:,} bytes"
        if arguments.step is None and not found.says_step:
            line += " (the file says no step: --step N gives another)"
    else:
        done = export(
            arguments.path, arguments.out, step=arguments.step, only=arguments.only, replace=arguments.replace
        )
        facts = {"path": done.path, "step": done.step, "bytes": done.bytes, "changes": list(done.changes)}
        line = f"{done.path}: step {done.step}, {done.bytes:,} bytes"
        if not arguments.json:
            for change in done.changes:
                print(f"lastgood: {change}", file=sys.stderr)
    print(json.dumps(facts) if arguments.json else line)
    return 0
