"""The command `lastgood`: finds the subcommand, calls it, and turns what goes wrong into one line.

    lastgood NAME …   ->   COMMANDS[NAME] names a module in one of the rooms; only that one is imported
                           module.add_arguments(parser)      its options
                           module.run(arguments) -> int      its work; the result is the exit status

A module that serves several names reads `arguments.command`. Exit status: 0 done, 1 a check failed, 2 bad usage or bad
input, 130 interrupted. An error is one line on the standard error stream, `lastgood: …`, that says what to do. Neither
numba nor torch is loaded before a subcommand asks for it, so `--help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from lastgood import __version__

COMMANDS = {
    "demo": ("lastgood.models.demo", "train a small language model, kill it again and again, compare bit for bit"),
    "inspect": ("lastgood.models.inspect_command", "say what a store or an exported file holds, key by key"),
    "verify": ("lastgood.core.command", "read every kept checkpoint and check its digests"),
    "export": ("lastgood.models.transfer_command", "write a checkpoint as safetensors, .pt, or one file of its own"),
    "import": ("lastgood.models.transfer_command", "save a safetensors, .pt or exported file into a store"),
    "explore": ("lastgood.crashsim.command", "crash the save protocol at every point, in every way"),
    "goodput": ("lastgood.goodput.command", "replay a failure trace: how much work each strategy would have kept"),
    "tune": (
        "lastgood.benchmarks.tune.command",
        "find the setting for an overhead budget on this machine, and check it",
    ),
    "bench": ("lastgood.benchmarks.command", "measure the core against the raw limits of this machine"),
}
"""Name of the subcommand -> the module that does it, and one line of help."""

EXTRAS = {
    "torch": "torch", "rich": "cli", "matplotlib": "bench", "hypothesis": "proofs", "crosshair": "proofs", "z3": "proofs",
}  # fmt: skip
"""What is not installed by default -> the extra that brings it."""

DONE, FAILED_CHECK, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line, and comes from the command that was called."""

    def parse_known_args(
        self, args: Any = None, namespace: Any = None
    ) -> Any:  # also how argparse calls a subcommand's
        """Refuse what is left over here, where it is known whose help to name."""
        found, left_over = super().parse_known_args(args, namespace)
        if left_over:
            self.error(f"unrecognized arguments: {' '.join(left_over)}")
        return found, left_over

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit with status 2."""
        self.exit(BAD_USAGE, f"lastgood: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; never raises for what a user can cause."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show must not end a command
            stream.reconfigure(errors="replace")
    try:
        return run(words)
    except SystemExit as stop:  # argparse: help, the version, or a complaint that is already on the screen
        return stop.code if isinstance(stop.code, int) else DONE
    except KeyboardInterrupt:
        return complain("interrupted", INTERRUPTED)
    except ModuleNotFoundError as missing:
        return complain(what_to_install(missing), BAD_USAGE)
    except BrokenPipeError:  # the reader of our output has gone: nobody is left to complain to
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED_CHECK
    except OSError as problem:
        return complain(describe(problem), BAD_USAGE)
    except Exception as problem:
        if not is_store_error(problem):
            raise
        return complain(str(problem), FAILED_CHECK if is_store_error(problem, "NothingUsable") else BAD_USAGE)


def run(words: list[str]) -> int:
    """Parse `words` and call the subcommand they name; alone, `lastgood` prints its help."""
    parser = Parser(
        prog="lastgood",
        description="Frequent checkpoints, several saves in flight; after any crash the newest complete one, whole.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lastgood {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    chosen = next((word for word in words if not word.startswith("-")), None)
    module: ModuleType | None = None
    for name, (place, line) in COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".", allow_abbrev=False)
        if name == chosen:
            module = importlib.import_module(place)
            module.add_arguments(command)
    if chosen is not None and chosen not in COMMANDS:
        parser.error(f"there is no command {chosen!r}; choose one of {', '.join(COMMANDS)}")
    arguments = parser.parse_args(words)
    if module is None:
        parser.print_help()
        return DONE
    status: int = module.run(arguments)
    return status


def complain(message: str, status: int) -> int:
    """Print the one line of an error and return its exit status."""
    line = " ".join(message.split())
    print(f"lastgood: {line}", file=sys.stderr)
    return status


def describe(problem: OSError) -> str:
    """Name the path and the reason, without the number."""
    if problem.filename is not None and problem.strerror:
        return f"{os.fsdecode(problem.filename)}: {problem.strerror}"
    return problem.strerror or str(problem)


def what_to_install(missing: ModuleNotFoundError) -> str:
    """Say which extra brings a module that is not there; a module of ours that is absent is named."""
    name = (missing.name or "").partition(".")[0]
    if name in EXTRAS:
        return f"this command needs {name}: pip install 'lastgood[{EXTRAS[name]}]'"
    if name == "lastgood":
        return f"this installation lacks {missing.name}: install lastgood whole, pip install lastgood"
    return f"this command needs the module {missing.name}, which is not installed"


def is_store_error(problem: Exception, kind: str = "StoreError") -> bool:
    """Tell a store's complaint (or one kind of it) from a mistake of ours, without loading the core to do so."""
    errors = sys.modules.get("lastgood.core.errors")
    return errors is not None and isinstance(problem, getattr(errors, kind))


if __name__ == "__main__":
    sys.exit(main())
