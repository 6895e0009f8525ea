"""The demo's supervisor: lets the training run once undisturbed, then kills it again and again.

Checked by `tests/demo/`.

    undisturbed:  start ── steps ── finished                                        (no saves: the oracle)
    killed:       start ── steps ─ ╳  start ─ restore ── steps ─ ╳  start ─ ╳ …  ── finished

Each line is one or more lives of a child of the nursery. A kill is planned at a step or at a start (`demo_plan`); the
moment is measured from that report. What was already in the pipe when the child died is heard before anything is
judged, so an acknowledgement counts even if it was read after the kill.
"""

from __future__ import annotations

import json
import os
import select
import statistics
import time
from dataclasses import replace
from typing import Any, Protocol

from .demo_ledger import DemoFailed, Ledger
from .demo_plan import Kill
from .demo_process import Job, Nursery

SILENCE_SECONDS = 120.0
"""A training that reports nothing for so long hangs."""
FIRST_STEPS = 2
"""A kill of the kind `starting` comes after so many steps at the latest."""
SAVE_SHARE = 0.75
"""A kill of the kind `saving` comes within this part of the duration of a synchronous save."""
KILLED = -9


class Show(Protocol):
    """What the supervisor tells the screen."""

    def begins(self, what: str) -> None:
        """Say that a run begins."""

    def step(self, step: int, loss: float) -> None:
        """Say that a step was made."""

    def killed(self, number: int, step: int, where: str, acknowledged: int) -> None:
        """Say that the training was killed after this step."""

    def resumed(self, step: int) -> None:
        """Say that the training goes on after this step."""


class Supervisor:
    """Runs a job in children of a nursery, and kills some of them."""

    def __init__(self, nursery: Nursery, job: Job, show: Show) -> None:
        self._nursery = nursery
        self._job = job
        self._show = show
        self.start_seconds: list[float] = []
        """How long each life took from its start to its first step, the model's making and the restore included."""

    def run_undisturbed(self, scratch: str) -> Ledger:
        """Run the job to its end without a save or a kill: the oracle. Then time synchronous saves in `scratch`."""
        ledger = Ledger(self._job.steps, self._job.every)
        self._show.begins("undisturbed run")
        self._live(replace(self._job, directory="", scratch=scratch, sabotage=""), ledger, None, 0.0)
        return ledger

    def run_killed(self, ledger: Ledger, oracle: Ledger, plan: list[Kill]) -> None:
        """Run the job to its end, killing it as planned and starting it again; `ledger` learns and checks."""
        self._show.begins("run with kills")
        for number in range(len(plan) + 1):
            kill = plan[number] if number < len(plan) else None
            durations = {
                "saving": SAVE_SHARE * oracle.synchronous_save_seconds,
                "computing": statistics.median(oracle.step_seconds),
                "starting": self.start_seconds[-1],
            }
            delay = kill.fraction * durations[kill.kind] if kill else 0.0
            # The first life resumes from nothing, so a sabotaged resume could get nothing wrong there.
            sabotage = self._job.sabotage if ledger.position else ""
            job = replace(self._job, sabotage=sabotage, acknowledged=ledger.acknowledged)
            self._live(job, ledger, kill, delay)
            if ledger.finished:
                break
            where = ledger.note_kill()
            self._show.killed(number + 1, ledger.position, where, ledger.acknowledged)
        landed = sum(ledger.kills.values())
        if landed < len(plan):
            raise DemoFailed(f"only {landed} of {len(plan)} kills came before the training ended: ask for more --steps")

    def _live(self, job: Job, ledger: Ledger, kill: Kill | None, delay: float) -> None:
        """Run one life of the training, until it finishes, or is killed `delay` seconds after what `kill` waits for."""
        began = time.monotonic()
        stream = Stream(self._nursery.start(job))
        made = 0
        kill_at = began + delay if kill and kill.kind == "starting" else None
        killed = False
        try:
            while not stream.ended:
                if kill_at is not None and time.monotonic() >= kill_at:
                    self._nursery.kill()
                    killed, kill, kill_at = True, None, None
                for report in stream.read(kill_at):
                    ledger.hear(report)
                    if report["report"] == "restored" and ledger.resumed_from:
                        self._show.resumed(report["step"])
                    if report["report"] == "step":
                        made += 1
                        if made == 1:
                            self.start_seconds.append(time.monotonic() - began)
                        self._show.step(report["step"], float.fromhex(report["loss"]))
                        if kill and kill_at is None and report["step"] >= kill.step:
                            kill_at = time.monotonic() + delay
                        late = report["step"] >= job.steps - 1 or (
                            kill and kill.kind == "starting" and made > FIRST_STEPS
                        )
                        if kill_at is not None and late:
                            kill_at = time.monotonic()
        finally:
            stream.close()
        status = self._nursery.reap()
        if ledger.error:
            raise DemoFailed(f"the training failed: {ledger.error}")
        if not (ledger.finished and status == 0) and not (killed and status == KILLED):
            raise DemoFailed(f"the training ended by itself with status {status} after step {ledger.position}")


class Stream:
    """The reading end of a child's reports."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self.ended = False
        """True once the child is dead and everything it reported was read."""

    def read(self, until: float | None) -> list[dict[str, Any]]:
        """Wait for reports, at most until a moment of the monotonic clock; return those that are there."""
        silence = time.monotonic() + SILENCE_SECONDS
        timeout = max(0.0, (silence if until is None else min(until, silence)) - time.monotonic())
        readable, _, _ = select.select([self._descriptor], [], [], timeout)
        if not readable:
            if time.monotonic() >= silence:
                raise DemoFailed(f"the training has reported nothing for {SILENCE_SECONDS:.0f} seconds")
            return []
        received = os.read(self._descriptor, 65536)
        self.ended = not received
        *lines, self._rest = (self._rest + received).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)
