"""`lastgood demo`: a training job is killed again and again, and ends where the undisturbed one does, bit for bit.

A small transformer learns English letter by letter, and saves its whole state every few steps, several saves in flight.
A supervisor kills it with SIGKILL: while it saves, between steps, while it starts. Each time it resumes from the newest
complete checkpoint. An undisturbed run of the same job is the oracle.

    demo            this file: options, directory, exit status
    demo_plan       when to kill                        demo_process    a process that forks training children
    demo_ledger     what was reported; the checks       demo_training   the job      demo_language   model and text
    demo_supervisor runs and kills                      demo_report     bar, lines, table, JSON

Exit status 1 if anything differs or a promise is broken. Loads no PyTorch itself: its children do.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from .demo_ledger import DemoFailed, Ledger
from .demo_plan import plan_kills
from .demo_process import SABOTAGES, SIZES, Job, Nursery
from .demo_report import Result, choose_screen, show_result
from .demo_supervisor import Supervisor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--kills", type=number(0, 1000), default=5, metavar="N", help="kill the training so often (5)")
    parser.add_argument("--steps", type=number(10, 10**6), default=300, metavar="N", help="train for so long (300)")
    parser.add_argument("--every", type=number(1, 10**6), default=1, metavar="N", help="steps from save to save (1)")
    parser.add_argument("--in-flight", type=number(1, 64), default=4, metavar="N", help="saves at the same time (4)")
    parser.add_argument("--seed", type=number(0, 2**32 - 1), default=0, metavar="N", help="of training and kills (0)")
    parser.add_argument("--directory", type=Path, metavar="PATH", help="put the store here (a temporary directory)")
    parser.add_argument("--keep-directory", action="store_true", help="leave the store to be inspected, print its path")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, nothing else")
    # For the tests: a small model, and resumes that are wrong on purpose, which the comparison must notice.
    parser.add_argument("--size", choices=SIZES, default="standard", help=argparse.SUPPRESS)
    parser.add_argument("--sabotage", choices=SABOTAGES, default="", help=argparse.SUPPRESS)


def number(lowest: int, highest: int) -> Callable[[str], int]:
    """Return a converter that accepts whole numbers in this range."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"{value} is not between {lowest} and {highest}")
        return value

    return convert


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; return 0 if the killed run and the undisturbed one end alike, bit for bit."""
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("the demo trains with PyTorch", name="torch")
    if arguments.every > arguments.steps:
        return complain("--every is larger than --steps: nothing would be saved", 2)
    refusal = why_not(arguments.directory)
    if refusal:
        return complain(refusal, 2)
    with contextlib.ExitStack() as stack:
        stack.enter_context(terminated_like_interrupted())
        directory = stack.enter_context(store_directory(arguments.directory, arguments.keep_directory))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lastgood-demo-")))
        result = rehearse(arguments, directory, scratch)
    if arguments.keep_directory:
        result.kept_directory = str(directory)
    if result.oracle.finished or arguments.json:
        show_result(result, arguments.json)
    if result.problem:
        return complain(result.problem, 1)
    return 0 if result.identical else complain("the killed run differs from the undisturbed one", 1)


def rehearse(arguments: argparse.Namespace, directory: Path, scratch: Path) -> Result:
    """Make both runs, with a progress display that is gone before anything else is printed."""
    job = Job(
        steps=arguments.steps,
        seed=arguments.seed,
        size=arguments.size,
        directory=str(directory),
        every=arguments.every,
        in_flight=arguments.in_flight,
        sabotage=arguments.sabotage,
    )
    began = time.monotonic()
    oracle = killed = Ledger(job.steps, job.every)
    problem = ""
    with contextlib.ExitStack() as stack:
        screen = choose_screen(job.steps, arguments.json)
        stack.callback(screen.close)
        nursery = Nursery(scratch / "log")
        stack.callback(nursery.close)
        supervisor = Supervisor(nursery, job, screen)
        try:
            oracle = supervisor.run_undisturbed(str(directory))
            empty(directory)
            killed = Ledger(job.steps, job.every, oracle)
            supervisor.run_killed(killed, oracle, plan_kills(arguments.kills, job.steps, job.every, job.seed))
        except DemoFailed as failed:
            problem = str(failed)
    seconds = time.monotonic() - began
    start_seconds = statistics.median(supervisor.start_seconds or [0.0])
    return Result(job, arguments.kills, oracle, killed, seconds, start_seconds, problem)


def why_not(directory: Path | None) -> str:
    """Return why this path cannot become the demo's store, or nothing."""
    if directory is None or not directory.exists():
        return ""
    if not directory.is_dir():
        return f"{directory} is a file: --directory needs a new or empty directory"
    if any(directory.iterdir()):
        return f"{directory} is not empty: --directory needs a new or empty directory"
    return ""


@contextlib.contextmanager
def store_directory(wanted: Path | None, keep: bool) -> Iterator[Path]:
    """Make the directory for the store; afterwards remove what was made in it, and itself if it is ours."""
    ours = wanted is None or not wanted.exists()
    if wanted is None:
        directory = Path(tempfile.mkdtemp(prefix="lastgood-demo-"))
    else:
        directory = wanted.absolute()
        directory.mkdir(parents=True, exist_ok=True)
    try:
        yield directory
    finally:
        if not keep:
            empty(directory)
            if ours:
                directory.rmdir()


def empty(directory: Path) -> None:
    """Remove what a run left in the store's directory, which was empty before."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM and a closed terminal clean up like Ctrl-C, then end with their own exit status."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signal_number)

    before = {}
    with contextlib.suppress(ValueError):  # not in the main thread: the program that called us handles its signals
        for signal_number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signal_number) is not signal.SIG_IGN:  # nohup wants it ignored
                before[signal_number] = signal.signal(signal_number, stop)
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)


def complain(message: str, status: int) -> int:
    """Print the one line of an error and return its exit status."""
    print(f"lastgood: {message}", file=sys.stderr)
    return status
