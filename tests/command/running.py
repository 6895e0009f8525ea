"""Runs `lastgood` as a user does, and finds every process that descends from it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "LASTGOOD_TEST_MARK"


def lastgood(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lastgood", *words],
        capture_output=True,
        text=True,
        timeout=240,
        stdin=subprocess.DEVNULL,
        env=os.environ | (environment or {}),
    )


def one_line(errors: str) -> str:
    """The only line of a standard error stream, which is what a user should see."""
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    assert lines[0].startswith("lastgood: ")
    return lines[0]


@contextmanager
def started(*words: str, temporary: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running command whose temporary files lie in `temporary`, and the mark that its descendants inherit."""
    mark = f"{MARK}={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    with subprocess.Popen(
        [sys.executable, "-m", "lastgood", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=os.environ | {name: value, "TMPDIR": str(temporary)},
    ) as process:
        try:
            yield process, mark
        finally:
            process.kill()


def descendants(mark: str) -> list[str]:
    """The command lines of living processes that carry the mark."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                if mark.encode() in (directory / "environ").read_bytes():
                    found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it ended, or is not ours
    return found


def wait_until_gone(mark: str, seconds: float = 10.0) -> list[str]:
    end = time.monotonic() + seconds
    while (left := descendants(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    return left
