"""`inspect` and `verify` on the command line, with the standard library alone so that a copied core has them too.

    inspect PATH   what a store is and holds, from its records only
    verify PATH    reads every byte; exit status 1 when anything kept is damaged

Both open read-only, so they may be used beside a running writer. `--json` prints one object and nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from .errors import NothingUsable, StoreError
from .store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that both commands take."""
    parser.add_argument("path", help="the store's directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def store_facts(store: Store) -> dict[str, Any]:
    """A store as plain values."""
    return {
        "path": store.path,
        "slot_bytes": store.slot_bytes,
        "in_flight": store.in_flight,
        "keep": store.keep,
        "total_bytes": store.total_bytes,
        "device": store.device,
        "acknowledged": store.marked,
        "writer": store.has_writer(),
        "checkpoints": [
            {
                "step": record.step,
                "sequence": record.sequence,
                "slot": record.slot,
                "bytes": record.payload_bytes,
                "saved_at": record.saved_at,
                "run": record.run.hex(),
                "meta": record.meta.hex(),
            }
            for record in store.records()
        ],
        "passed_over": list(store.passed_over),
    }


def run_inspect(arguments: argparse.Namespace) -> int:
    """Print what the store holds."""
    with Store.open(arguments.path, read_only=True) as store:
        facts = store_facts(store)
    if arguments.json:
        print(json.dumps(facts))
        return 0
    print(
        f"{facts['path']}: {facts['in_flight']} saves in flight, keeps {facts['keep']}, {facts['total_bytes']:,} bytes"
    )
    print(f"  slots of {facts['slot_bytes']:,} bytes; device {facts['device']}")
    print("  a writer is at work" if facts["writer"] else "  no writer is at work")
    for checkpoint in facts["checkpoints"]:
        age = time.time() - checkpoint["saved_at"]
        print(
            f"  step {checkpoint['step']:>8}  sequence {checkpoint['sequence']:>6}  slot {checkpoint['slot']:>3}"
            f"  {checkpoint['bytes']:>14,} bytes  {age:,.0f} s old  run {checkpoint['run'][:8]}"
        )
    if not facts["checkpoints"]:
        print("  no checkpoint" + (", though one was acknowledged once" if facts["acknowledged"] else " yet"))
    for line in facts["passed_over"]:
        print(f"  passed over: {line}")
    return 0


def run_verify(arguments: argparse.Namespace) -> int:
    """Read everything, print a line a file."""
    with Store.open(arguments.path, read_only=True) as store:
        reports = store.verify()
        marked = store.marked
    whole = sum(report.state == "whole" and report.record is not None for report in reports)
    damaged = sum(report.state == "damaged" for report in reports)
    good = damaged == 0 and (whole > 0 or not marked)
    if arguments.json:
        files: list[dict[str, Any]] = []
        for report in reports:
            step = {"step": report.record.step} if report.record is not None else {}
            files.append({"file": report.file, "state": report.state, "detail": report.detail, **step})
        print(json.dumps({"ok": good, "whole": whole, "damaged": damaged, "files": files}))
    else:
        for report in reports:
            name = f"step {report.record.step}" if report.record is not None else ""
            print(f"{report.file:<10} {report.state:<9} {name:<14} {report.detail}".rstrip())
        print(f"{whole} checkpoints whole, {damaged} files damaged" + ("" if good else ": not good"))
    return 0 if good else 1


COMMANDS = {
    "inspect": (run_inspect, "what a store is and holds, from its records only"),
    "verify": (run_verify, "read every byte of a store; exit status 1 when anything kept is damaged"),
}


def run(arguments: argparse.Namespace) -> int:
    """Run whichever of the two commands `arguments.command` names."""
    return COMMANDS[arguments.command][0](arguments)


def main(argv: list[str] | None = None, program: str = "python -m lastgood.core") -> int:
    """Run one command; errors are one line on standard error, exit status 2."""
    parser = argparse.ArgumentParser(prog=program, description="Look into a store of checkpoints.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (_, text) in COMMANDS.items():
        add_arguments(commands.add_parser(name, help=text, description=text))
    arguments = parser.parse_args(argv)
    try:
        return run(arguments)
    except (StoreError, OSError) as error:
        print(f"lastgood: {error}", file=sys.stderr)
        return 1 if isinstance(error, NothingUsable) else 2
