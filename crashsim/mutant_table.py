"""The table of mutants × media as data, as rows for a machine and as a page for people. Computed by `core_table`.

killed       some promise is broken; the cell keeps which, how, and how few lost writes that takes
equivalent   every state within the mutant's bounds was judged, and every promise holds
survived     neither: the search was stopped before its end
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .mutants import MUTANTS

KILLED, EQUIVALENT, SURVIVED = "killed", "equivalent", "survived"


class Cell(NamedTuple):
    """One mutant on one medium, recovering in one way ("both" for cuts made by a machine: in either)."""

    mutant: str
    medium: str
    way: str
    outcome: str
    promise: str
    lost_writes: int
    moves: int
    states: int
    sentence: str
    edge: str
    replay: str


def rows(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """One object a mutant and medium: killed when it is killed in any way of recovering."""
    return [_row(mutant, medium, group) for (mutant, medium), group in _grouped(cells).items()]


def page(cells: Sequence[Cell], says: dict[str, str]) -> str:
    """The whole table in Markdown; `says` tells what each mutant is."""
    media = list(dict.fromkeys(cell.medium for cell in cells))
    grouped = _grouped(cells)
    named = [name for name in says if name in MUTANTS]
    cuts = [name for name in says if name not in MUTANTS]
    parts = [
        _HEAD.format(named=len(named), cuts=len(cuts), media=len(media)),
        *_published(grouped, media),
        "## Named mutants\n",
        *_grid(named, media, grouped, says),
        "\n## Cuts made by a machine\n",
        "Each persist of `core/save.py` left out, each two neighbouring steps of a block swapped, each two yields that "
        "follow\neach other exchanged. What could not run at all is left out.\n",
        *_grid(cuts, media, grouped, says),
        "\n## Why some change nothing\n",
        *(f"- `{name}`: {MUTANTS[name].why}." for name in named if MUTANTS[name].why),
        _BY_MEDIUM,
    ]
    return "\n".join(parts) + "\n"


def _grouped(cells: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.mutant, cell.medium), []).append(cell)
    return groups


def _row(mutant: str, medium: str, group: list[Cell]) -> dict[str, Any]:
    smallest = _smallest(group)
    outcome = outcome_of(group)
    return {
        "mutant": mutant,
        "medium": medium,
        "outcome": outcome,
        "ways": {cell.way: cell.outcome for cell in group},
        "promise": smallest.promise if smallest else None,
        "lost_writes": smallest.lost_writes if smallest else None,
        "moves": smallest.moves if smallest else None,
        "states": sum(cell.states for cell in group),
        "exhaustive": outcome == EQUIVALENT,
        "missing_edge": (smallest.edge or None) if smallest else None,
        "replay": smallest.replay if smallest else None,
    }


def outcome_of(group: Sequence[Cell]) -> str:
    """Killed in any way of recovering; else equivalent, if that was shown for each."""
    outcomes = {cell.outcome for cell in group}
    return next(each for each in (KILLED, SURVIVED, EQUIVALENT) if each in outcomes)


def _smallest(group: Iterable[Cell]) -> Cell | None:
    """The counterexample that loses least."""
    killed = [cell for cell in group if cell.outcome == KILLED]
    return min(killed, key=lambda cell: (cell.lost_writes, cell.moves), default=None)


def _grid(
    names: Sequence[str], media: Sequence[str], grouped: dict[tuple[str, str], list[Cell]], says: dict[str, str]
) -> list[str]:
    lines = [
        f"| mutant | breaks | {' | '.join(media)} |",
        f"|---|---|{'--:|' * len(media)}",
    ]
    for name in names:
        groups = [grouped.get((name, medium), []) for medium in media]
        promises = dict.fromkeys(cell.promise for group in groups for cell in group if cell.promise)
        shown = ", ".join(f"`{each}`" for each in promises) or "nothing"
        lines.append(f"| `{name}`: {says[name]} | {shown} | {' | '.join(_shown(group) for group in groups)} |")
    return lines


def _shown(group: Sequence[Cell]) -> str:
    """One cell of the page."""
    if not group:
        return "–"
    smallest = _smallest(group)
    if smallest is None:
        states = max(cell.states for cell in group)
        return f"= {states:,}" if outcome_of(group) == EQUIVALENT else "?"
    only = [cell.way for cell in group if cell.outcome == KILLED]
    return f"✕{smallest.lost_writes}" + ("" if len(only) == len(group) else f" {only[0]}")


def _published(grouped: dict[tuple[str, str], list[Cell]], media: Sequence[str]) -> list[str]:
    """The defects that a published system shipped, each with its smallest counterexample on an ordinary file system."""
    lines = [
        "## As published\n",
        "Four mistakes that a published checkpointing system shipped, as changes of this protocol; on an ordinary file "
        "system.\n",
    ]
    for name, mutant in MUTANTS.items():
        smallest = _smallest(grouped.get((name, "page-cache"), []))
        if mutant.published and smallest is not None:
            lost = "no write" if smallest.lost_writes == 0 else f"{smallest.lost_writes} write"
            lost += "s" if smallest.lost_writes > 1 else ""
            lines += [
                f"**`{name}`**: {mutant.says}.\n{smallest.sentence}; {lost} lost.",
                f"Missing: {smallest.edge}. [The drawing](counterexamples/{name}.html), or again:\n",
                f"    lastgood explore --replay {smallest.replay}\n",
            ]
    return lines


_BY_MEDIUM = """
And where a medium forgives a mistake that others punish:

- on `block` one persist covers the whole device, so what recovery forgets to persist is persisted by whatever it persists
  next; and nothing is claimed there about steps that fail, since a persist that fails may lose what other saves wrote;
- on `pmem` and `pmem-eadr` each writer has made its own chunk durable before the save goes on, and what failed to be
  written back can be written back again;
- on `lying-disk` fewer promises are claimed: what is returned is right, and no slot is lost or mixed up."""

_HEAD = """# Mutants

Which mistakes in the save and recovery programs the explorer finds, on which simulated medium: {named} named mutants and
{cuts} cuts made by a machine, on {media} media. Generated by `python -m tests.crash.mutants.write`. A test compares this
page with the counterexamples that are kept, and replays those on the programs as they are.

| in a cell | means |
|---|---|
| ✕n | killed: a promise is broken, and the smallest counterexample loses n writes (0: a process crash, or no crash at all) |
| ✕n ignored | killed only when recovery ignores the payload digests; with them trusted it is equivalent |
| = n | equivalent: all n states within the bounds were judged, with the digests trusted and ignored, and none is bad |
| – | nothing is claimed there, for the protocol as it is either |

What an equivalent one shows is bounded: 1 or 2 savers, 2 to 4 saves, at most 2 steps that fail.
"""
