"""Claims that CrossHair confirms: contracts on the core's own functions, executed symbolically over all their paths.

CrossHair's exit status is 0 for "Not confirmed" and "Unable to meet precondition" too, and it may print nothing at all
(an untyped function, a contract it did not find). So its lines are counted:

    confirmed   as many lines as the function has `post:` conditions, each "Confirmed over all paths."
    refuted     one line that names a call, and that call breaks the contract in plain Python as well

and anything else, silence and time-out included, is a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .claim import Claim, Verdict

REQUIRES = ("crosshair-tool", "z3-solver")
ROOT = Path(__file__).resolve().parent.parent
SECONDS_PER_CONDITION = 20.0
"""Processor time for one condition; the slowest takes a quarter of it."""
SILENCE_SECONDS = 900.0
"""A child that says nothing for so long is ended. Long before, it ends itself (see `crosshair_worker`)."""
CONFIRMED = "info: Confirmed over all paths."


@dataclass(frozen=True)
class Job:
    """One function to examine, perhaps with something weakened first."""

    target: str
    weakens: str = ""
    twin: str = ""
    mutant: str = ""
    seconds: float = SECONDS_PER_CONDITION


@dataclass(frozen=True)
class Finding:
    """What CrossHair printed about one function."""

    posts: int
    status: int
    lines: tuple[str, ...]
    example: str
    replayed: bool
    seconds: float

    @property
    def confirmed(self) -> bool:
        """Every condition confirmed over all paths, and at least one there."""
        said = [line for line in self.lines if line.endswith(CONFIRMED)]
        places = {line.partition(" ")[0] for line in said}
        return self.status == 0 and 1 <= self.posts == len(said) == len(self.lines) == len(places)

    @property
    def refuted(self) -> bool:
        """A call that breaks the contract was printed, and does break it."""
        return self.status == 1 and bool(self.example) and self.replayed


NO_ANSWER = Finding(0, 2, ("no answer: CrossHair ended or was out of time",), "", False, 0.0)


class Worker:
    """A child process that examines one job at a time. One that dies, or takes far too long, is replaced by the next."""

    def __init__(self, search_path: Iterable[Path] = ()) -> None:
        """Start nothing yet; `search_path` is where modules are looked up besides this tree."""
        paths = [str(path) for path in (*search_path, ROOT / "src", ROOT)]
        self._environment = dict(
            os.environ, NUMBA_DISABLE_JIT="1", PYTHONHASHSEED="0", PYTHONPATH=os.pathsep.join(paths)
        )
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def examine(self, job: Job) -> Finding:
        """Let CrossHair examine one function; silence is a finding as well."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        watch = threading.Timer(SILENCE_SECONDS, child.kill)
        watch.start()
        try:
            child.stdin.write(json.dumps(vars(job)) + "\n")
            line = child.stdout.readline()
        except OSError:
            line = ""
        finally:
            watch.cancel()
        if not line.endswith("\n"):
            self.close()
            return NO_ANSWER
        answer = json.loads(line)
        return Finding(**{**answer, "lines": tuple(answer["lines"])})

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _start(self) -> subprocess.Popen[str]:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "proofs.crosshair_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            bufsize=1,
            text=True,
        )
        return self._child


def check(claims: Sequence[Claim]) -> Iterator[Verdict]:
    """Examine each claim, then its twin."""
    with Worker() as worker:
        for claim in claims:
            target = f"{claim.module}.{claim.function}"
            yield verdict(
                claim,
                worker.examine(Job(target)),
                worker.examine(Job(target, weakens=claim.weakens, twin=f"proofs.weakened.{claim.twin_name}")),
            )


def verdict(claim: Claim, finding: Finding, twin: Finding) -> Verdict:
    """What the two findings say of the claim."""
    conditions = f"{finding.posts} condition" + ("s" if finding.posts != 1 else "")
    details: tuple[str, ...] = ()
    said = f"{conditions} confirmed over all paths"
    if not finding.confirmed:
        said = f"not confirmed ({conditions})"
        details = finding.lines or ("no output",)
    elif not twin.refuted:
        said = "the twin is not refuted"
        details = twin.lines or ("no output",)
    seconds = finding.seconds + twin.seconds
    return Verdict(claim.name, finding.confirmed, twin.refuted, seconds, said, twin.example, details)
