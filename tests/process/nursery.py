"""Children for the tests: started in milliseconds, killed without mercy, judged by what they left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lastgood

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")
PATIENCE_SECONDS = 120.0
"""Long after anything that ends has ended, on a machine that is shared."""


def environment(**more: str) -> dict[str, str]:
    """Where children find the package and these tests, installed or not."""
    package = Path(lastgood.__file__).parents[1]
    path = os.pathsep.join([str(package), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path} | more


@dataclass
class Child:
    """One process from the nursery."""

    nursery: Nursery
    pid: int
    out: Path
    _status: int | None = None

    def poll(self) -> int | None:
        """The exit status, minus the signal's number when killed; None while it runs."""
        if self._status is None:
            self._status = self.nursery.ask({"poll": self.pid})
        return self._status

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """The exit status. A child that does not end is killed and fails the test."""
        deadline = time.monotonic() + seconds
        pause = 0.001
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the child hangs\n{self.stderr}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return status

    def kill(self) -> None:
        """SIGKILL, and gone."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            while self.poll() is None:
                time.sleep(0.001)

    def result(self) -> Any:
        """What its role returned."""
        status = self.wait()
        assert status == 0, f"exit status {status}\n{self.stderr}"
        return json.loads(self.out.with_suffix(".result").read_text())

    @property
    def stdout(self) -> str:
        """What it wrote."""
        return self.out.with_suffix(".stdout").read_text()

    @property
    def stderr(self) -> str:
        """What it complained of."""
        return self.out.with_suffix(".stderr").read_text()


class Nursery:
    """One `nursery_main` and the children it has forked."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._numbers = itertools.count()
        self._children: list[Child] = []
        self._one_at_a_time = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.process.nursery_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(),
        )

    def ask(self, order: dict[str, Any]) -> Any:
        """One order, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def start(self, role: str, **arguments: Any) -> Child:
        """A child that plays a role of `tests.process.roles`."""
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
        return self._start({"role": role, "arguments": plain})

    def run(self, role: str, **arguments: Any) -> Any:
        """What a role returns, played by a child to its end."""
        return self.start(role, **arguments).result()

    def program(self, name: str, *words: object) -> Child:
        """A child that runs one of `programs/` from beginning to end, interpreter exit included."""
        return self._start({"program": str(PROGRAMS / f"{name}.py"), "words": [str(word) for word in words]})

    def _start(self, order: dict[str, Any]) -> Child:
        out = self._scratch / f"child-{next(self._numbers)}"
        child = Child(self, self.ask(order | {"out": str(out)}), out)
        self._children = [each for each in self._children if each._status is None]
        self._children.append(child)
        return child

    def close(self) -> None:
        """End everything that was started here."""
        for child in self._children:
            child.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
