"""`lastgood explore`: crash the core's save protocol, or a broken one, at every point and in every way.

    lastgood explore                                  the real protocol; exit 0 when every promise holds
    lastgood explore --mutant pointer-only-compare    a broken one: the promise it breaks, and how; exit 1
    lastgood explore --replay x1.… --html FILE        one counterexample again, and drawn
    lastgood explore --random 2000 --depth 3         sampled schedules, by priority, where the whole is too large
    lastgood explore --mutants --medium block         every mutant: killed, or equivalent, and how that was seen
    lastgood explore --list                           mutants and media

A clean verdict comes with a control: the same search must catch a protocol that never persists anything. If it does
not, the explorer sees nothing, and says that instead.

Nothing of the core is loaded until there is something to explore.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import importlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lastgood.output_path import why_not_writable

from .bounds import LIMITS, Bounds, Refused, estimate
from .media import MEDIA
from .mutant_table import KILLED, SURVIVED, rows
from .mutants import EQUIVALENT, MUTANTS
from .promises import PROMISES
from .replay import BadReplay, decode

CLEAN, VIOLATED, BAD_USAGE = 0, 1, 2
DIGESTS = {"trusted": ("trusted",), "ignored": ("ignored",), "both": ("trusted", "ignored")}
SECOND_LIMIT = 60.0
MOST_WALKED = {"random": 10**6, "depth": 100}
"""What would take hours, and more changes than a short walk has moves."""


class BadChoice(ValueError):
    """What was asked for does not exist. The message is one line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lastgood explore`."""
    default = Bounds()
    what = parser.add_argument_group("what to explore")
    what.add_argument("--mutant", metavar="NAME", help="a deliberately broken protocol (see --list)")
    what.add_argument("--medium", metavar="NAME", help=f"the simulated medium (default {default.medium}; see --list)")
    what.add_argument(
        "--digests", choices=DIGESTS, help="payload digests in recovery (default: whatever is claimed there)"
    )
    what.add_argument("--promise", metavar="NAME", help="judge this promise only; `all` for all of them")
    what.add_argument("--one-persist", action="store_true", help="payload and record share one persist")
    size = parser.add_argument_group("how much")
    size.add_argument("--savers", type=int, metavar="N", help=f"saves in flight at once (default {default.savers})")
    size.add_argument("--saves", type=int, metavar="N", help=f"saves in all (default {default.saves}; 0: any number)")
    size.add_argument("--writers", type=int, metavar="N", help=f"writers of each save (default {default.writers})")
    size.add_argument("--keep", type=int, metavar="N", help=f"checkpoints kept (default {default.keep})")
    size.add_argument("--faults", type=int, metavar="N", help="steps that may fail (default 0)")
    size.add_argument("--restarts", type=int, metavar="N", help="times a crashed process goes on saving (default 0)")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--exhaustive", action="store_true", help=f"never stop early (else after {SECOND_LIMIT:.0f} seconds)"
    )
    how.add_argument("--random", type=int, metavar="N", help="take N random walks instead of searching")
    how.add_argument("--seed", type=int, metavar="N", help="for --random (default 0)")
    how.add_argument(
        "--depth",
        type=int,
        metavar="D",
        help="for --random: run savers by priorities, which change D-1 times in a walk",
    )
    how.add_argument("--replay", metavar="STRING", help="run one counterexample again")
    how.add_argument(
        "--html", metavar="FILE", help="draw the counterexample into FILE, one page that needs nothing else"
    )
    parser.add_argument("--mutants", action="store_true", help="explore every mutant, on every medium or on --medium")
    parser.add_argument("--list", action="store_true", help="list the mutants and the media")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; returns the exit status."""
    try:
        if arguments.html is not None and (reason := why_not_writable(arguments.html)):  # else the verdict is lost
            raise BadChoice(f"--html {arguments.html}: {reason}")
        if arguments.list:
            return _list(arguments.json)
        if arguments.mutants:
            return _table(arguments)
        report = _replayed(arguments) if arguments.replay is not None else _explored(arguments)
    except (BadChoice, BadReplay, Refused) as problem:
        print(f"lastgood: {problem}", file=sys.stderr)
        return BAD_USAGE
    if (
        not report.sentence
        and not importlib.import_module("lastgood.crashsim.core_table").saboteur(report.bounds.medium).sentence
    ):
        print(
            "lastgood: the harness is broken: it calls a protocol clean that never persists anything", file=sys.stderr
        )
        return VIOLATED
    if arguments.html is not None:
        _draw(report, Path(arguments.html))
    if arguments.json:
        print(json.dumps(report.as_json()))
    else:
        _print(report, replayed=arguments.replay is not None)
    return VIOLATED if report.sentence else CLEAN


def _draw(report: Any, path: Path) -> None:
    """The counterexample as one page; without one there is nothing to draw, and no file is touched."""
    if report.scene is None:
        print("lastgood: nothing is broken, so there is nothing to draw", file=sys.stderr)
    else:
        path.write_text(importlib.import_module("lastgood.crashsim.picture_html").page(report.scene))


def _explored(arguments: argparse.Namespace) -> Any:
    program, bounds = _program(arguments.mutant), _bounds(arguments)
    for name, most in MOST_WALKED.items():
        value = getattr(arguments, name)
        if value is not None and not 1 <= value <= most:
            raise BadChoice(f"--{name} must be 1 to {most}, not {value}")
    if arguments.random is not None and arguments.exhaustive:
        raise BadChoice("--random takes samples and --exhaustive leaves nothing out: give one of them")
    for name in ("depth", "seed"):
        if getattr(arguments, name) is not None and not arguments.random:
            raise BadChoice(f"--{name} is of random walks: say how many with --random N")
    if arguments.promise not in (None, "all", *PROMISES):
        raise BadChoice(f"unknown promise {arguments.promise!r}; known: all, {', '.join(PROMISES)}")
    core = importlib.import_module("lastgood.crashsim.core_table")
    digests = DIGESTS[arguments.digests] if arguments.digests else core.claimed_ways(bounds.medium)
    how = {
        "walks": arguments.random or 0,
        "seed": arguments.seed or 0,
        "depth": arguments.depth or 0,
        "second_limit": None if arguments.exhaustive else SECOND_LIMIT,
    }
    if program == "real" and not arguments.random:
        _estimated(bounds, arguments.exhaustive)
    with _progress() as progress:
        if arguments.promise is None:
            return core.hunt(program, bounds, digests, progress=progress, **how)
        promises = tuple(PROMISES) if arguments.promise == "all" else (arguments.promise,)
        return core.explore(program, bounds, digests, promises, progress=progress, **how)


def _estimated(bounds: Bounds, exhaustive: bool) -> None:
    """Say beforehand what takes longer than somebody waits; what is too large is begun only for who insists."""
    expected = estimate(bounds)
    if expected.is_too_large and not exhaustive:
        raise BadChoice(f"{expected.sentence} (or --exhaustive, all the same)")
    if expected.seconds > SECOND_LIMIT:
        going = "" if exhaustive else f"; this stops after {SECOND_LIMIT:.0f} seconds, --exhaustive does not"
        print(f"lastgood: {expected.sentence}{going}", file=sys.stderr)


def _replayed(arguments: argparse.Namespace) -> Any:
    wanted = decode(arguments.replay)
    if wanted.bounds.medium not in MEDIA:
        raise BadReplay(f"this replay string is of a medium that is not known: {wanted.bounds.medium}")
    return importlib.import_module("lastgood.crashsim.core_explore").replay(wanted)


def _program(mutant: str | None) -> str:
    if mutant is None:
        return "real"
    if mutant not in MUTANTS and mutant not in _cuts():
        raise BadChoice(f"unknown mutant {mutant!r}; known: {', '.join((*MUTANTS, *_cuts()))}")
    return mutant


def _cuts() -> Any:
    return importlib.import_module("lastgood.crashsim.core_surgery").cuts()


def _table(arguments: argparse.Namespace) -> int:
    """Explore every mutant, or the one that was named, on as many cores as there are."""
    medium = _bounds(arguments).medium
    media = list(MEDIA) if arguments.medium is None else [medium]
    core = importlib.import_module("lastgood.crashsim.core_table")
    mutants = core.every_mutant() if arguments.mutant is None else [_program(arguments.mutant)]
    began = time.perf_counter()
    spawning = multiprocessing.get_context("spawn")
    with (
        _progress("{}") as progress,
        concurrent.futures.ProcessPoolExecutor(min(os.cpu_count() or 1, len(mutants)), spawning) as executor,
    ):
        found = rows(core.table(mutants, media, executor=executor, progress=progress))
    if arguments.json:
        print(json.dumps({"rows": found, "seconds": round(time.perf_counter() - began, 3)}))
    else:
        for row in found:
            seen = (
                f"{row['promise']}, {row['lost_writes']} lost"
                if row["outcome"] == KILLED
                else f"{row['states']:,} states"
            )
            print(f"{row['medium']:<14}{row['outcome']:<11} {row['mutant']:<60} {seen}")
    return VIOLATED if any(row["outcome"] == SURVIVED for row in found) else CLEAN


def _bounds(arguments: argparse.Namespace) -> Bounds:
    """What was asked for, over the mutant's own bounds."""
    bounds = MUTANTS[arguments.mutant].bounds if arguments.mutant in MUTANTS else Bounds()
    if arguments.medium is not None:
        if arguments.medium not in MEDIA:
            raise BadChoice(f"unknown medium {arguments.medium!r}; known: {', '.join(MEDIA)}")
        bounds = bounds._replace(medium=arguments.medium, faults=max(bounds.faults, MEDIA[arguments.medium].faults))
    for name, (least, most) in LIMITS.items():
        value = getattr(arguments, name)
        if value is not None:
            if not least <= value <= most:
                raise BadChoice(f"--{name} must be {least} to {most}, not {value}")
            bounds = bounds._replace(**{name: value})
    return bounds._replace(one_persist=1) if arguments.one_persist else bounds


def _list(as_json: bool) -> int:
    """Every mutant and medium."""
    if as_json:
        mutants = {
            name: {"says": each.says, "trusted": each.trusted or None, "ignored": each.ignored or None}
            for name, each in MUTANTS.items()
        }
        print(json.dumps({"mutants": mutants, "cuts": list(_cuts()), "media": list(MEDIA), "promises": PROMISES}))
        return CLEAN
    print("mutants (the promise each breaks: with payload digests trusted / ignored)")
    for name, each in MUTANTS.items():
        breaks = each.trusted if each.trusted == each.ignored else f"{each.trusted or '-'} / {each.ignored or '-'}"
        print(f"  {name}\n      {each.says}\n      {breaks if breaks != EQUIVALENT else 'equivalent: ' + each.why}")
    print("cuts made by a machine")
    for name, cut in _cuts().items():
        print(f"  {name}\n      {cut.says}")
    print("media")
    for name, rules in MEDIA.items():
        print(f"  {name:<14} {(sys.modules[rules.__module__].__doc__ or '').splitlines()[0].removesuffix(' Trusted.')}")
    return CLEAN


def _print(report: Any, *, replayed: bool) -> None:
    """The verdict first, then how it came to that."""
    digests = " and ".join(report.digests)
    if report.sentence:
        print(report.sentence + ".\n")
        _print_drawing(report)
        if report.scene.edge:
            print(f"\nMissing: {report.scene.edge.sentence}.")
        print(f"\nAgain:  lastgood explore --replay {report.replay}")
        return
    if replayed:
        print("clean: this schedule and crash break nothing any more")
        return
    result = report.result
    covered = "exhaustive within" if result.exhaustive else "NOT exhaustive, a sample of"
    print(f"clean: {', '.join(report.promises)} hold in {result.states:,} states.")
    print(f"  covered   {covered} {report.bounds.sentence()}; payload digests {digests}")
    print(f"  crashes   {report.images:,} crash images and every process crash; recovery crashed again at every step")
    others = [promise for promise in PROMISES if promise not in report.promises]
    print(f"  not       {', '.join([*others, 'bit rot, unreadable records, more of anything than the bounds say'])}")
    print(f"  took      {result.seconds:.1f} s, {result.states / max(result.seconds, 1e-9):,.0f} states a second")


def _print_drawing(report: Any) -> None:
    """In colours on a terminal that has them and where rich is there."""
    if sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            console, text = importlib.import_module("rich.console").Console(), importlib.import_module("rich.text").Text
            for line in importlib.import_module("lastgood.crashsim.picture_text").drawn(report.scene):
                console.print(text.assemble(*line), soft_wrap=True)
            return
    print("\n".join(report.lines))


@contextlib.contextmanager
def _progress(form: str = "{:,} states, {:,} waiting") -> Iterator[Any]:
    """A line on the terminal that says how far it is; nothing without a terminal, or without rich."""
    rich_console = None
    if sys.stderr.isatty():
        with contextlib.suppress(ImportError):
            rich_console = importlib.import_module("rich.console").Console(stderr=True)
    if rich_console is None:
        yield None
        return
    with rich_console.status("exploring …") as status:
        yield lambda *how_far: status.update(form.format(*how_far))
