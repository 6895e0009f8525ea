"""How results are shown to people: a table, the whole of what a tool said where it was not expected, and the progress."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .claim import Claim, Verdict

COLUMNS = ("claim", "promises", "method", "bound", "strength", "twin", "seconds", "")


def cells(claim: Claim, verdict: Verdict) -> tuple[str, ...]:
    """One line of the table."""
    return (
        claim.name,
        " ".join(claim.promises),
        claim.method,
        claim.bound,
        claim.strength,
        "refuted" if verdict.twin_refuted else "-" if verdict.skipped else "NOT REFUTED",
        f"{verdict.seconds:.1f}",
        "FAILED" if not verdict.ok else "skipped" if verdict.skipped else "ok",
    )


def summary(results: Sequence[tuple[Claim, Verdict]]) -> str:
    """One sentence about all of them."""
    failed = sum(not verdict.ok for _, verdict in results)
    seconds = sum(verdict.seconds for _, verdict in results)
    counts = ", ".join(
        f"{sum(claim.strength == strength for claim, _ in results)} {strength}"
        for strength in dict.fromkeys(claim.strength for claim, _ in results)
    )
    if failed:
        return f"{failed} of {len(results)} claims FAILED ({seconds:.0f} s)"
    skipped = [claim.name for claim, verdict in results if verdict.skipped]
    left_out = f"; SKIPPED here: {', '.join(skipped)}" if skipped else ""
    return (
        f"{len(results)} claims stand: {counts}; every twin refuted{left_out} ({seconds:.0f} s). "
        "Not proved: see proofs/README.md"
    )


def failures(results: Sequence[tuple[Claim, Verdict]]) -> Iterator[str]:
    """What the tools said where they did not say what was expected."""
    for claim, verdict in results:
        if not verdict.ok:
            yield f"{claim.name}: {verdict.said}"
            yield f"    {claim.statement}"
            yield from (f"    {line}" for line in verdict.details)


def print_table(results: Sequence[tuple[Claim, Verdict]]) -> None:
    """Print the table with rich when it is there, else in plain columns."""
    rows = [cells(claim, verdict) for claim, verdict in results]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(len(row[place]) for row in (COLUMNS, *rows)) for place in range(len(COLUMNS))]
        for row in (COLUMNS, *rows):
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    else:
        table = Table(*COLUMNS)
        for row in rows:
            table.add_row(*row, style="bold red" if row[-1] == "FAILED" else "")
        Console(width=None if sys.stdout.isatty() else 200).print(table)
    for line in failures(results):
        print(line)
    print(summary(results))


@contextlib.contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """On a terminal, a line on stderr that says how far it is; wiped at the end."""
    done = 0

    def step(name: str) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            print(f"\r\033[K{done} of {total}: {name}", end="", file=sys.stderr)

    yield step
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


def markdown(claims: Sequence[Claim]) -> str:
    """The ledger as the table in the README."""
    lines = [
        "| claim | says | promises | tool, bound | strength | trusts | twin: what is refuted |",
        "|---|---|---|---|---|---|---|",
    ]
    for claim in claims:
        promises = " ".join(f"`{promise}`" for promise in claim.promises)
        lines.append(
            f"| `{claim.name}` | {claim.statement} | {promises} | {claim.method}: {claim.bound} | {claim.strength} "
            f"| {', '.join(claim.trusts)} | {claim.twin} |"
        )
    return "\n".join(lines)


def sections(
    guarantee: str, claims: Sequence[Claim], assumptions: dict[str, str], not_proved: Sequence[tuple[str, Any]]
) -> dict[str, str]:
    """What the README takes from the ledger, by the name of the section's marks."""
    return {
        "guarantee": guarantee,
        "claims": markdown(claims),
        "assumptions": "\n".join(f"- **{name}**: {why}" for name, why in assumptions.items()),
        "not-proved": "\n".join(f"- **{what}**. {instead}" for what, instead in not_proved),
    }
