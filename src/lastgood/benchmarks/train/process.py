"""Work in a process of its own: its memory, its CPU time and its files are nobody else's, and all of it can be ended.

The process is forked, so that what is imported and compiled once serves every cell, and leads a session of its own:
whatever a peer starts belongs to the session, is counted with it, and ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

from ..stopping import check, end_as_usual, postponed
from .usage import members, proportional_bytes

LONGEST_SECONDS = 240.0
LOOK_SECONDS = 0.2


def run_alone(
    work: Callable[[], dict[str, Any]], directory: str, longest_seconds: float = LONGEST_SECONDS
) -> dict[str, Any]:
    """What `work` returns when run in `directory`, and the most memory that descendants took; or `error`, one line."""
    with postponed():
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _work(work, directory, writing)
        try:
            os.close(writing)
            return _result(reading, child, longest_seconds)
        finally:
            os.close(reading)
            _end(child)


def _work(work: Callable[[], dict[str, Any]], directory: str, writing: int) -> None:
    """The child: never returns."""
    try:
        os.setsid()
        end_as_usual()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.environ["TMPDIR"] = directory
        os.chdir(directory)
        try:
            told = work()
        except Exception as problem:
            where = traceback.extract_tb(problem.__traceback__)[-1]
            told = {"error": f"{type(problem).__name__}: {problem} ({os.path.basename(where.filename)}:{where.lineno})"}
        with os.fdopen(writing, "w") as file:
            json.dump(told, file)
    finally:
        os._exit(0)


def _result(reading: int, child: int, longest_seconds: float) -> dict[str, Any]:
    end, most, content = time.monotonic() + longest_seconds, 0, b""
    while time.monotonic() < end:
        check()
        if select.select([reading], [], [], LOOK_SECONDS)[0]:
            piece = os.read(reading, 2**16)
            if not piece:
                break
            content += piece
        else:
            most = max(most, sum(proportional_bytes(each) for each, _ in members(child) if each != child))
    else:
        return {"error": f"not done after {longest_seconds:.0f} s"}
    try:
        told: dict[str, Any] = json.loads(content)
    except ValueError:
        told = {"error": "its process died"}
    return told | {"descendant_bytes": most}


def _end(child: int) -> None:
    """End the session and everybody in it."""
    for process, _ in list(members(child)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
