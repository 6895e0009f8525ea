"""`lastgood tune`: what to set for an overhead budget, written as a file that `Checkpointer(cadence=…)` reads.

    lastgood tune --overhead 0.03 --state-mb 256 --step-ms 100        an emulated accelerator step
    lastgood tune --overhead 0.03 --job mymodule:make                 your own training, see below
    lastgood tune … --check                                           afterwards, measure it at that setting

`make()` returns (model, optimizer, function for forward and backward). Exit status 1: `--check` measured more than the
budget, or less than a third of it where saves could be more frequent.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from typing import TYPE_CHECKING, Any

from lastgood.output_path import why_not_writable

from ..stopping import check, limit, postponed, scratch, stoppable
from .choose import LEAST_USE
from .deadline import Deadline

if TYPE_CHECKING:
    from .choose import Profile, Setting

DONE, FAILED_CHECK, BAD_USAGE = 0, 1, 2
SECONDS, MARGIN_SECONDS = 58.0, 6.0
"""From the start of the command until what has not ended is ended; no measurement but `--check` goes on in the margin."""
VERSION = 1
FILE = "lastgood-tuned.json"
MOST_MB, LEAST_OVERHEAD = 10**9, 0.0001
JOB = {"state_mb": 256, "step_ms": 100.0, "step_kind": "emulated"}
"""In the place of somebody's own."""
LEAST_SECONDS = 2.0
"""Of each measurement of the loop."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `lastgood tune`."""
    parser.add_argument(
        "--overhead", type=float, default=0.03, help="the budget, a fraction of the time (default 0.03)"
    )
    parser.add_argument("--state-mb", type=int, help=f"size of the state (default {JOB['state_mb']})")
    parser.add_argument("--step-ms", type=float, help=f"length of the emulated step (default {JOB['step_ms']:g})")
    parser.add_argument("--step-kind", choices=["emulated", "torch"], help=f"default {JOB['step_kind']}")
    parser.add_argument("--job", metavar="MODULE:FUNCTION", help="your own training instead of an emulated one")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"for all but --check; more for long steps (default {SECONDS:g})"
    )
    parser.add_argument("--check", action="store_true", help="measure the overhead at the recommended setting")
    parser.add_argument("--output", metavar="FILE", default=FILE, help=f"where to write the setting (default {FILE})")
    parser.add_argument("--directory", help="where to measure: the disk that the checkpoints will be on")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Profile, recommend, write; check if asked to."""
    given = [name for name in JOB if getattr(arguments, name) is not None]
    for name in JOB.keys() - given:
        setattr(arguments, name, JOB[name])
    problem = what_is_wrong(arguments)
    if arguments.job is not None and given:
        problem = f"--{given[0].replace('_', '-')}: a --job has its own: give one of them"
    if problem:
        print(f"lastgood: {problem}", file=sys.stderr)
        return BAD_USAGE
    deadline = Deadline(arguments.seconds - MARGIN_SECONDS)
    return stoppable(lambda: measure(arguments, deadline), arguments.seconds)


def measure(arguments: argparse.Namespace, deadline: Deadline) -> int:
    """All of it."""
    from .profile import CannotProfile

    try:
        tuned = tune(arguments, deadline)
    except CannotProfile as failure:
        print(f"lastgood: {failure}", file=sys.stderr)
        return BAD_USAGE
    with postponed():
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(tuned, file, indent=2)
            file.write("\n")
        print(json.dumps(tuned) if arguments.json else as_text(tuned, arguments.output))
    return FAILED_CHECK if tuned.get("measured", {}).get("verdict", "within") != "within" else DONE


def what_is_wrong(arguments: argparse.Namespace) -> str:
    """One line, or nothing."""
    if not LEAST_OVERHEAD <= arguments.overhead <= 1:
        return f"--overhead {arguments.overhead:g}: give a fraction of the time, {LEAST_OVERHEAD:g} to 1, like 0.03 for 3 %"
    if not 1 <= arguments.state_mb <= MOST_MB:
        return f"--state-mb {arguments.state_mb}: give 1 to {MOST_MB:,}"
    if not (math.isfinite(arguments.step_ms) and arguments.step_ms > 0):
        return f"--step-ms {arguments.step_ms:g}: give more than 0"
    if not 2 * MARGIN_SECONDS <= arguments.seconds <= 86400:
        return f"--seconds {arguments.seconds:g}: give {2 * MARGIN_SECONDS:g} to 86400"
    if not arguments.job and arguments.step_ms / 1000 > arguments.seconds:
        return f"--step-ms {arguments.step_ms:g}: one step takes longer than the {arguments.seconds:g} s: give more --seconds"
    if arguments.job is not None and not all(arguments.job.partition(":")):
        return f"--job {arguments.job}: give MODULE:FUNCTION"
    if reason := why_not_writable(arguments.output):
        return f"--output {arguments.output}: {reason}"
    return ""


def tune(arguments: argparse.Namespace, deadline: Deadline) -> dict[str, Any]:
    """Everything that is written and shown. Raises CannotProfile, and WrongGeometry when disk or memory are too small."""
    from ..train.loop import Cell
    from ..train.sweep import Plan, prepare
    from .choose import verdict, why_not_more
    from .profile import Profiler

    cell = Cell(
        "",
        arguments.state_mb,
        1,
        arguments.step_kind,
        arguments.step_ms / 1000,
        least_seconds=LEAST_SECONDS,
        job=arguments.job or "",
        is_read_back=False,
    )
    with scratch("lastgood-tune-", arguments.directory) as directory:
        Plan((), (arguments.state_mb,), (1,), (arguments.step_kind,)).refuse_too_little_room(directory)
        prepare(directory)
        profiler = Profiler(cell, directory, deadline, show_progress)
        profile = profiler.profile()
        setting = profiler.setting(profile, arguments.overhead)
        tuned = as_object(profile, setting, arguments.overhead)
        tuned["seconds"] = deadline.spent
        limit(0.0)
        if arguments.check:
            longer = profiler.check_seconds(setting, profile)
            print(f"measured in {deadline.spent:.0f} s; checking takes about {longer:.0f} s more", file=sys.stderr)
            overheads = profiler.overheads(setting, profile)
            overhead = statistics.median(overheads)
            tuned["measured"] = {
                "overhead": overhead,
                "overhead_range": [min(overheads), max(overheads)],
                "rounds": len(overheads),
                "verdict": verdict(setting, overhead, arguments.overhead),
                "cannot_be_more_frequent": why_not_more(setting, arguments.overhead),
            }
        return tuned


def as_object(profile: Profile, setting: Setting, budget: float) -> dict[str, Any]:
    """The file: what a checkpointer reads, what is expected, and what both were decided from."""
    from .profile import CAPTURE

    alone, chosen = profile.contention[1], profile.contention[setting.in_flight]
    return {
        "lastgood_tuned": VERSION,
        "overhead": budget,
        "interval_steps": setting.interval_steps,
        "in_flight": setting.in_flight,
        "staging_bytes": setting.staging_bytes,
        "capture": CAPTURE,
        "state_bytes": profile.state_bytes,
        "is_limited_by_device": setting.is_limited_by_device,
        "expected": setting.expected(profile),
        "profile": {
            "iteration_seconds": profile.iteration_seconds,
            "held_seconds": setting.held_seconds,
            "raw_gb_per_s": profile.raw_bytes_per_second / 1e9,
            "load_seconds": profile.load_seconds,
            "contention": {
                str(count): {"save_seconds": each.save_seconds, "gb_per_s": each.bytes_per_second / 1e9}
                for count, each in profile.contention.items()
            },
        },
        "costs": {
            "common": {
                "iteration_seconds": profile.iteration_seconds,
                "capture_seconds": profile.state_bytes / chosen.bytes_per_second,
                "update_seconds": profile.iteration_seconds / 20,
                "write_seconds": profile.state_bytes / chosen.bytes_per_second,
                "single_write_seconds": alone.save_seconds,
                "load_seconds": profile.load_seconds,
                "in_flight": setting.in_flight,
            }
        },
    }


def as_text(tuned: dict[str, Any], path: str) -> str:
    """For people."""
    profile, expected = tuned["profile"], tuned["expected"]
    lines = [
        f"iteration {profile['iteration_seconds'] * 1e3:.1f} ms, state {tuned['state_bytes'] / 2**20:.0f} MB,"
        f" device {profile['raw_gb_per_s']:.2f} GB/s by plain writes, restore {profile['load_seconds']:.2f} s",
        *(
            f"{count} in flight: a save is durable after {each['save_seconds'] * 1e3:.0f} ms, {each['gb_per_s']:.2f} GB/s"
            for count, each in profile["contention"].items()
        ),
        "",
        f"every {tuned['interval_steps']} steps, {tuned['in_flight']} in flight, {tuned['capture']} capture,"
        f" {tuned['staging_bytes'] / 2**20:.0f} MB of staging memory"
        + (" (the device allows no more)" if tuned["is_limited_by_device"] else ""),
        f"expected: {expected['overhead']:.2%} of the time (budget {tuned['overhead']:.2%}),"
        f" {expected['staleness_steps']:.1f} steps behind on average,"
        f" {expected['lost_seconds_per_failure']:.2f} s of work lost by a failure",
    ]
    if "measured" in tuned:
        lines += measured_text(tuned["measured"], tuned["overhead"])
    home = os.path.join(".", path) if os.path.dirname(path) == "" else path
    return "\n".join([*lines, "", f"written to {path}: Checkpointer(…, cadence={home!r})"])


def measured_text(measured: dict[str, Any], budget: float) -> list[str]:
    """What `--check` found; where that is next to nothing and cannot be more, why."""
    low, high = measured["overhead_range"]
    of_rounds = f"{low:.2%} to {high:.2%} in {measured['rounds']} rounds"
    lines = [f"measured: {measured['overhead']:.2%} of the time ({of_rounds}): {SAID[measured['verdict']]}"]
    if measured["verdict"] == "within" and measured["overhead"] < LEAST_USE * budget:
        lines.append(
            f"less than a third of it, but saves cannot be more frequent: {measured['cannot_be_more_frequent']}"
        )
    return lines


SAID = {
    "within": "within the budget",
    "over": "more than the budget",
    "unused": "less than a third of the budget, though saves could be more frequent",
}


def show_progress(what: str) -> None:
    """One line for each measurement, on a terminal only."""
    check()
    if sys.stderr.isatty():
        print(f"measuring {what} …", file=sys.stderr)
