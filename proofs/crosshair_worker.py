"""The child process that runs CrossHair: one job per line on stdin, one answer per line on stdout, both JSON.

CrossHair is entered as its command line is, by the same arguments, once per function: so what is read is its documented
output, while the seconds for starting up and importing are paid once. A *job* names a function with a contract, and what
is to take the place of what first (a twin, or a mutant of a rule). An *answer* holds what CrossHair printed, how many
`post:` lines the function has, and, for a refuted one, whether its example breaks the contract in plain Python too.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from .twins import find, in_place_of

START_SECONDS, CONDITIONS = 10.0, 5
"""Processor time for a job: to start up, and for so many slow conditions. The system ends a process that takes more,
wherever it is, a solver's innermost loop included; a machine that is merely busy takes nothing away."""

POST = re.compile(r"^\s*post(?:\[[^\]]*\])?:\s*(.*)$", re.MULTILINE)
REFUTED = re.compile(r"error: false when calling (\w+\(.*?\))(?: \(which returns .*\))?$")


def contract_of(target: str) -> list[str]:
    """The conditions after `post:` in a function's docstring."""
    holder, name = find(target)
    return POST.findall(inspect.getdoc(getattr(holder, name)) or "")


def crosshair(target: str, seconds: float) -> tuple[int, list[str]]:
    """Run CrossHair on one function as its command line would; its exit status and the lines it printed."""
    from crosshair.main import unwalled_main

    printed, complained = io.StringIO(), io.StringIO()
    arguments = ["check", "--report_all", "--analysis_kind", "PEP316", "--per_condition_timeout", str(seconds), target]
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complained):
        try:
            status = unwalled_main(arguments)
        except SystemExit as exit_request:
            status = exit_request.code if isinstance(exit_request.code, int) else 2
    return status, [line for line in (printed.getvalue() + complained.getvalue()).splitlines() if line.strip()]


def breaks_contract(target: str, call: str) -> bool:
    """Whether this call, as CrossHair printed it, breaks a `post:` condition when plain Python evaluates it."""
    holder, name = find(target)
    function: Callable[..., Any] = getattr(holder, name)
    names = dict(vars(holder))
    taken: dict[str, Any] = {}

    def note(*positional: Any, **named: Any) -> None:
        bound = inspect.signature(function).bind(*positional, **named)
        taken.update(bound.arguments)

    eval(call, {**names, name: note})
    returned = function(**taken)
    scope = {**names, **taken, "__return__": returned, "_": returned}
    return not all(eval(condition, scope) for condition in POST.findall(inspect.getdoc(function) or ""))


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job: examine `target`, with the source `instead` run in its place for `weakens` when they are given."""
    target = job["target"]
    started = time.perf_counter()
    reply: dict[str, Any] = {"posts": 0, "status": 2, "lines": [], "example": "", "replayed": False}
    try:
        with contextlib.ExitStack() as stack:
            if job.get("twin"):
                holder, name = find(job["twin"])
                stack.enter_context(in_place_of(job["weakens"], getattr(holder, name)))
            if job.get("mutant"):
                holder, name = find(job["weakens"])
                names: dict[str, Any] = {}
                exec(job["mutant"], vars(holder), names)
                stack.enter_context(in_place_of(job["weakens"], names[name]))
            reply["posts"] = len(contract_of(target))
            reply["status"], reply["lines"] = crosshair(target, job["seconds"])
            for line in reply["lines"]:
                found = REFUTED.search(line)
                if found and not reply["example"]:
                    reply["example"] = found.group(1)
            if reply["example"]:
                reply["replayed"] = breaks_contract(target, reply["example"])
    except Exception as error:  # whatever went wrong is an answer, and not the expected one
        reply["lines"].append(f"{type(error).__name__}: {error}")
    reply["seconds"] = time.perf_counter() - started
    return reply


def main() -> None:
    """Answer every job on stdin. Answers go to a copy of stdout, so that nothing a module prints is taken for one."""
    sys.set_int_max_str_digits(0)
    sink = sys.stdout
    sink.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.stdout = sys.stderr
    for line in sys.stdin:
        job = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, START_SECONDS + CONDITIONS * job["seconds"])
        print(json.dumps(answer(job)), file=sink)


if __name__ == "__main__":
    main()
