"""The options of `lastgood bench train`, and the plan that they make. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from lastgood.output_path import why_not_writable

if TYPE_CHECKING:
    from .sweep import Block, Plan

STATES, INTERVALS, KINDS = "64,256,1024", "1,2,5,10,25,50", "emulated,torch"
REPETITIONS, LEAST_SECONDS = 3, 4.0
QUICK_LEAST_SECONDS, QUICK_SECONDS = 1.5, 165.0
"""A cell of `--quick`, and all of it from the start of the command; what follows is printing."""
MOST_REPETITIONS, MOST_NUMBER = 1000, 10**9
FIGURES = (".png", ".svg", ".pdf")


class BadPlan(ValueError):
    """What was asked for cannot be measured. The message is one line."""


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that only `bench train` has."""
    group = parser.add_argument_group("the sweep")
    group.add_argument("--state-mb", metavar="N,…", help=f"sizes of the state (default {STATES})")
    group.add_argument("--intervals", metavar="N,…", help=f"steps between saves (default {INTERVALS})")
    group.add_argument("--step-kinds", metavar="NAME,…", help=f"kinds of step (default {KINDS})")
    group.add_argument("--step-ms", type=float, default=100.0, help="length of the emulated step (default 100)")
    group.add_argument("--repetitions", type=int, help=f"rounds (default {REPETITIONS})")
    group.add_argument("--seconds", type=float, help=f"measure each cell at least so long (default {LEAST_SECONDS:g})")
    group.add_argument("--contenders", metavar="NAME,…", help="only these, or all whose names begin so")
    group.add_argument("--wanted", action="store_true", help="measure what the figures on the page need, nothing more")
    group.add_argument("--figure", metavar="FILE", help="also draw it (.png, .svg or .pdf; needs matplotlib)")
    group.add_argument("--page", metavar="FILE", help="also put the figures between the marks of this Markdown page")


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan, with every number checked. Raises BadPlan."""
    from .field import BASELINE, FIELD, QUICK
    from .job import STEP_KINDS
    from .loop import FEWEST_SAVES
    from .process import LONGEST_SECONDS
    from .sweep import Plan

    quick = arguments.quick
    ignored = [
        name for name in ("state_mb", "intervals", "step_kinds") if arguments.wanted and getattr(arguments, name)
    ]
    if ignored:
        raise BadPlan(f"--{ignored[0].replace('_', '-')}: --wanted says it already: give one of them")
    kinds = tuple((arguments.step_kinds or ("emulated" if quick else KINDS)).split(","))
    for kind in kinds:
        if kind not in STEP_KINDS:
            raise BadPlan(f"--step-kinds {kind}: choose of {', '.join(STEP_KINDS)}")
    if not (math.isfinite(arguments.step_ms) and arguments.step_ms > 0):
        raise BadPlan(f"--step-ms {arguments.step_ms:g}: give more than 0")
    if arguments.seconds is not None and not 0 < arguments.seconds <= LONGEST_SECONDS / 2:
        raise BadPlan(f"--seconds {arguments.seconds:g}: give more than 0, and {LONGEST_SECONDS / 2:g} at most")
    if arguments.repetitions is not None and not 1 <= arguments.repetitions <= MOST_REPETITIONS:
        raise BadPlan(f"--repetitions {arguments.repetitions}: give 1 to {MOST_REPETITIONS}")
    if arguments.figure and not arguments.figure.endswith(FIGURES):
        raise BadPlan(f"--figure {arguments.figure}: give a name that ends in {', '.join(FIGURES)}")
    if arguments.figure and (reason := why_not_writable(arguments.figure)):
        raise BadPlan(f"--figure {arguments.figure}: {reason}")
    wanted = chosen(arguments.contenders, list(FIELD)) if arguments.contenders else list(QUICK if quick else FIELD)
    contenders = (BASELINE, *(name for name in wanted if name != BASELINE and FIELD[name].is_here))
    plan = Plan(
        contenders=contenders,
        states_mb=numbers("--state-mb", arguments.state_mb or ("256" if quick else STATES)),
        intervals=numbers("--intervals", arguments.intervals or ("2,10" if quick else INTERVALS)),
        step_kinds=kinds,
        step_seconds=arguments.step_ms / 1000,
        repetitions=arguments.repetitions or REPETITIONS,
        least_seconds=arguments.seconds or (QUICK_LEAST_SECONDS if quick else LEAST_SECONDS),
        limit_seconds=QUICK_SECONDS if quick else math.inf,
        only=wanted_blocks(contenders, is_chosen=bool(arguments.contenders)) if arguments.wanted else (),
    )
    longest = max(block.interval for block in plan.blocks())
    if "emulated" in kinds and (1 + FEWEST_SAVES) * longest * plan.step_seconds > LONGEST_SECONDS:
        raise BadPlan(
            f"--step-ms {arguments.step_ms:g}: {1 + FEWEST_SAVES} times {longest} steps take longer than the"
            f" {LONGEST_SECONDS:g} s that a cell may: give shorter steps or smaller --intervals"
        )
    return plan


def wanted_blocks(contenders: tuple[str, ...], *, is_chosen: bool) -> tuple[Block, ...]:
    """What `targets.py` has rows for: who is durable (or chosen) at 256 MB, lastgood where 1 GB saturates the device.

    Only these contenders, and the baseline; a block in which nobody else is wanted is left out.
    """
    from .field import BASELINE, FIELD, is_ours
    from .sweep import Block

    entries = [FIELD[name] for name in contenders if FIELD[name].is_durable or (is_chosen and name != BASELINE)]
    small = (BASELINE, *(entry.name for entry in entries if not entry.refuses))
    large = (BASELINE, *(entry.name for entry in entries if is_ours(entry.name) and "lazy" in entry.name))
    blocks = (
        *(Block(256, interval, "emulated", small) for interval in (1, 2, 5, 10, 25)),
        Block(256, 10, "torch", small),
        *(Block(1024, interval, "emulated", large) for interval in (1, 2)),
    )
    found = tuple(block for block in blocks if len(block.contenders) > 1)
    if not found:
        raise BadPlan("--wanted: nobody is left to be measured; give other --contenders")
    return found


def numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers from 1 to a billion, in the order given, each once."""
    try:
        found = tuple(dict.fromkeys(int(word) for word in text.split(",")))
    except ValueError:
        raise BadPlan(f"{option} {text}: give numbers with commas between them") from None
    if min(found) < 1 or max(found) > MOST_NUMBER:
        raise BadPlan(f"{option} {text}: give 1 to {MOST_NUMBER:,}")
    return found


def chosen(text: str, names: list[str]) -> list[str]:
    """The names that are given, or that begin so."""
    found = []
    for word in text.split(","):
        exact = [name for name in names if name == word] or [name for name in names if name.startswith(word)]
        if not word or not exact:
            raise BadPlan(f"--contenders {word}: there is none of this name; there are {', '.join(names)}")
        found += exact
    return list(dict.fromkeys(found))
