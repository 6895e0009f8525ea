"""What the demo's training has reported, through all its lives, and the checks on it. Checked by `tests/demo/`.

The supervisor believes what was reported before a kill, and nothing else. Each resume and each step is checked as it
is heard of:

    C1 newest-survives   the resumed step is at least the newest step whose save was reported durable, or that an
                         earlier resume found
    C2 never-wrong       the resumed step is one whose save was started, and each step from there on has the loss (to
                         the last bit) and the samples that it had in the undisturbed run
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from .demo_plan import is_due


class DemoFailed(Exception):
    """The training broke a promise, or could not be run to its end; one line says how."""


@dataclass
class Ledger:
    """The facts of one run. `oracle` is the undisturbed run's ledger; that one has none itself."""

    total_steps: int
    every: int
    oracle: Ledger | None = None
    steps: dict[int, tuple[str, list[int]]] = field(default_factory=dict)
    """Step -> loss and samples, of the last time that it was made."""
    step_seconds: list[float] = field(default_factory=list)
    """Of each step that began with no save in flight; the first of each life is left out, it is always slower."""
    step_seconds_beside_saves: list[float] = field(default_factory=list)
    """Of each step that began with a save in flight."""
    position: int = 0
    """Completed steps, as far as reported."""
    started: int = 0
    acknowledged: int = 0
    """The newest step whose save was reported durable, or that was resumed from."""
    in_flight: list[int] = field(default_factory=list)
    saves: int = 0
    stalled_seconds: float = 0.0
    staleness: list[int] = field(default_factory=list)
    """After each step: how many steps the newest durable save is behind the newest started one."""
    most_in_flight: int = 0
    kills: dict[str, int] = field(default_factory=lambda: {"starting": 0, "saving": 0, "computing": 0})
    """Where the training was when it was killed -> how often."""
    resumed_from: list[int] = field(default_factory=list)
    steps_redone: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    state_bytes: int = 0
    synchronous_save_seconds: float = 0.0
    finished: bool = False
    error: str = ""
    """What the training said when it ended by an error of its own."""
    differences: list[str] = field(default_factory=list)
    _restored: int | None = None

    def hear(self, report: dict[str, Any]) -> None:
        """Take in one report."""
        match report["report"]:
            case "restored":
                self._hear_restored(report["step"])
            case "step":
                self._hear_step(report)
            case "saved":
                self.stalled_seconds += report["stalled"]
                self.most_in_flight = max(self.most_in_flight, report["in_flight"])
                self._note_staleness()
            case "closed":
                self.stalled_seconds += report["stalled"]
            case "durable":
                self.acknowledged = max(self.acknowledged, report["step"])
                self.in_flight = [step for step in self.in_flight if step > report["step"]]
            case "finished":
                self.finished = True
                self.digests = report["digests"] | {"samples": self.samples_digest()}
                self.state_bytes = report["state_bytes"]
                self.synchronous_save_seconds = report["synchronous_save_seconds"] or 0.0
                self._compare_digests()
            case "failed":
                self.error = report["error"]
            case kind:
                raise AssertionError(f"unknown report {kind}")

    def note_kill(self) -> str:
        """Count a kill that ended the training; return where the training was."""
        where = "starting" if self._restored is None else "saving" if self.in_flight else "computing"
        self.kills[where] += 1
        self._restored = None
        self.in_flight = []
        return where

    def samples_digest(self) -> str:
        """Digest the ids of the samples that the completed steps used, in order."""
        return hashlib.sha256(json.dumps([self.steps[step][1] for step in sorted(self.steps)]).encode()).hexdigest()

    def _hear_restored(self, step: int) -> None:
        if step < self.acknowledged:
            raise DemoFailed(
                f"newest-survives is broken: the checkpoint of step {self.acknowledged} was known to be durable before "
                f"the kill, and the training resumed from step {step}"
            )
        if step > self.started or (step and not is_due(step, self.total_steps, self.every)):
            raise DemoFailed(f"never-wrong is broken: the training resumed from step {step}, which nobody saved")
        if sum(self.kills.values()):
            self.resumed_from.append(step)
        self.steps_redone += max(0, self.position - step)
        self.position = self.started = self._restored = step
        self.acknowledged = max(self.acknowledged, step)

    def _hear_step(self, report: dict[str, Any]) -> None:
        step, loss, samples = report["step"], report["loss"], report["samples"]
        if self._restored is not None and step > self._restored + 1:
            seconds = self.step_seconds_beside_saves if report["beside"] else self.step_seconds
            seconds.append(report["seconds"])
        self.steps[step] = (loss, samples)
        self.position = step
        if self.oracle is not None:
            self._compare_step(step, loss, samples)
            if is_due(step, self.total_steps, self.every):  # its save starts now
                self.started = step
                self.saves += 1
                self.in_flight.append(step)
            else:
                self._note_staleness()

    def _note_staleness(self) -> None:
        self.staleness.append(max(0, self.started - self.acknowledged))

    def _compare_step(self, step: int, loss: str, samples: list[int]) -> None:
        assert self.oracle is not None
        right_loss, right_samples = self.oracle.steps[step]
        where = f"step {step} after the resume from step {self._restored}"
        if samples != right_samples:
            self.differences.append(f"{where} used samples {samples} instead of {right_samples}")
        elif loss != right_loss:
            got, right = float.fromhex(loss), float.fromhex(right_loss)
            self.differences.append(f"{where} has the loss {got!r} instead of {right!r}")

    def _compare_digests(self) -> None:
        if self.oracle is None:
            return
        if sorted(self.steps) != sorted(self.oracle.steps):
            self.differences.append("not every step was made")
        for kind, right in self.oracle.digests.items():
            if self.digests.get(kind) != right:
                self.differences.append(f"at the end the {kind} differ from the undisturbed run's")
