"""What the demo shows: a bar or lines while it runs, a table or one JSON object at the end.

on a terminal          a progress bar on the standard error stream, the table on standard output
elsewhere              plain lines on standard output, as they happen
with --json            one JSON object on standard output; the bar only where the error stream is a terminal
"""

from __future__ import annotations

import io
import json
import statistics
import sys
from dataclasses import dataclass
from typing import Any

from .demo_ledger import Ledger
from .demo_process import Job


class Silent:
    """Shows nothing."""

    def begins(self, what: str) -> None:
        """Ignore that a run begins."""

    def step(self, step: int, loss: float) -> None:
        """Ignore a step."""

    def killed(self, number: int, step: int, where: str, acknowledged: int) -> None:
        """Ignore a kill."""

    def resumed(self, step: int) -> None:
        """Ignore a resume."""

    def close(self) -> None:
        """Leave the screen as it is."""


class Lines(Silent):
    """One line for each thing that happens, when it happens."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)

    def begins(self, what: str) -> None:
        """Print the name of the run."""
        print(what)

    def killed(self, number: int, step: int, where: str, acknowledged: int) -> None:
        """Print where the training was killed."""
        print(f"  kill {number}: after step {step}, {where}; step {acknowledged} was acknowledged")

    def resumed(self, step: int) -> None:
        """Print where it goes on."""
        print(f"          resumed from step {step}")


class Bar(Silent):
    """A bar with steps, kills, the step last resumed from, and the loss."""

    def __init__(self, steps: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._steps = steps
        self._facts: dict[str, str] = {}
        self._bar = Progress(
            TextColumn("{task.description:<15}"),
            BarColumn(bar_width=14),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[facts]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._bar.start()
        self._task = self._bar.add_task("starting", total=steps, facts="")

    def begins(self, what: str) -> None:
        """Finish the bar of the run before and begin another."""
        if self._bar.tasks[0].description == "starting":
            self._bar.remove_task(self._task)
        self._facts = {}
        self._task = self._bar.add_task(what, total=self._steps, facts="")

    def step(self, step: int, loss: float) -> None:
        """Move the bar."""
        self._change(step, loss=f"loss {loss:.3f}")

    def killed(self, number: int, step: int, where: str, acknowledged: int) -> None:
        """Count the kill."""
        self._change(step, kills=f"[red]{number} kill{'s' * (number > 1)}[/red]")

    def resumed(self, step: int) -> None:
        """Move the bar back to where the training goes on."""
        self._change(step, resumed=f"from {step}")

    def close(self) -> None:
        """Leave the bars as they are."""
        self._bar.stop()

    def _change(self, step: int, **facts: str) -> None:
        self._facts |= facts
        shown = " · ".join(self._facts[name] for name in ("loss", "kills", "resumed") if name in self._facts)
        self._bar.update(self._task, completed=step, facts=shown)


@dataclass
class Result:
    """What the demo found."""

    job: Job
    kills_asked: int
    oracle: Ledger
    run: Ledger
    seconds: float
    start_seconds: float = 0.0
    problem: str = ""
    kept_directory: str = ""

    @property
    def identical(self) -> bool:
        """Tell whether the killed run ended, as the undisturbed one did, to the last bit."""
        return self.run.finished and not self.run.differences and not self.problem

    def facts(self) -> dict[str, Any]:
        """Return everything as plain values, for `--json`."""
        run, oracle = self.run, self.oracle
        return {
            "identical": self.identical,
            "kills": sum(run.kills.values()),
            "resumes": len(run.resumed_from),
            "saves": run.saves,
            "steps_redone": run.steps_redone,
            "staleness_median": statistics.median(run.staleness) if run.staleness else 0,
            "stalled_seconds": round(run.stalled_seconds, 4),
            "seconds": round(self.seconds, 3),
            "steps": self.job.steps,
            "every": self.job.every,
            "in_flight": self.job.in_flight,
            "seed": self.job.seed,
            "kills_asked": self.kills_asked,
            "kills_while": run.kills,
            "resumed_from": run.resumed_from,
            "most_in_flight": run.most_in_flight,
            "state_bytes": oracle.state_bytes,
            "step_seconds": round(usual(oracle.step_seconds), 5),
            "start_seconds": round(self.start_seconds, 4),
            "slowed_seconds": round(self.slowed_seconds(), 3),
            "synchronous_save_seconds": round(oracle.synchronous_save_seconds, 5),
            "saved_seconds": round(self.saved_seconds(), 3),
            "final_loss": float.fromhex(oracle.steps[self.job.steps][0]) if oracle.finished else None,
            "digests": run.digests,
            "undisturbed_digests": oracle.digests,
            "differences": run.differences[:20],
            "problem": self.problem,
            "directory": self.kept_directory,
        }

    def slowed_seconds(self) -> float:
        """Time by which steps with a save in flight took longer than the others, since both share the machine.

        The others are steps of the same run, which saw the same machine; of the undisturbed run if those are too few.
        """
        beside, alone = self.run.step_seconds_beside_saves, self.run.step_seconds
        if len(alone) < len(beside) / 10:
            alone = self.oracle.step_seconds
        difference = usual(beside) - usual(alone)
        return len(beside) * max(0.0, difference)  # where the machine became faster meanwhile, that is not our gain

    def saved_seconds(self) -> float:
        """Estimate the time saved: had every save been waited for, less what saving did cost, stalls and slower steps.

        Extrapolated from a few synchronous saves timed after the undisturbed run, not from a whole synchronous run.
        """
        waited = self.run.saves * self.oracle.synchronous_save_seconds
        return waited - self.run.stalled_seconds - self.slowed_seconds()

    def rows(self) -> list[tuple[str, str]]:
        """Return the table: names and values."""
        run = self.run
        where = ", ".join(f"{count} while {name}" for name, count in run.kills.items() if count)
        return [
            ("kills", f"{sum(run.kills.values())}" + (f" ({where})" if where else "")),
            ("steps redone", f"{run.steps_redone} of {self.job.steps}"),
            ("saves", f"{run.saves} of {self.oracle.state_bytes / 1e6:.1f} MB, up to {run.most_in_flight} in flight"),
            ("staleness, median", f"{statistics.median(run.staleness) if run.staleness else 0:g} steps"),
            ("time stalled", f"{run.stalled_seconds:.2f} s, and {self.slowed_seconds():.2f} s in slower steps"),
            ("time saved", f"{self.saved_seconds():.2f} s against saving synchronously (an estimate)"),
            ("synchronous save", f"{self.oracle.synchronous_save_seconds * 1000:.0f} ms, median of a few"),
            ("identical", "yes, bit for bit" if self.identical else "NO"),
        ]


def usual(values: list[float]) -> float:
    """Return the mean without the largest and the smallest tenth, which are the machine's and not ours."""
    tenth = len(values) // 10
    middle = sorted(values)[tenth : len(values) - tenth]
    return statistics.fmean(middle) if middle else 0.0


def choose_screen(steps: int, as_json: bool) -> Silent:
    """Choose what to show while the demo runs."""
    if sys.stderr.isatty():
        try:
            return Bar(steps)
        except ModuleNotFoundError:  # without the extra `cli` there are lines
            pass
    return Silent() if as_json else Lines()


def show_result(result: Result, as_json: bool) -> None:
    """Print the table, or the one JSON object."""
    if as_json:
        print(json.dumps(result.facts()))
        return
    try:
        from rich.console import Console
        from rich.table import Table
    except ModuleNotFoundError:
        on_terminal = False
    else:
        on_terminal = sys.stdout.isatty()
    if on_terminal:
        table = Table(show_header=False)
        for name, value in result.rows():
            colour = {"yes": "green", "NO": "bold red"}.get(value.split(",")[0], "") if name == "identical" else ""
            table.add_row(name, f"[{colour}]{value}[/{colour}]" if colour else value)
        Console().print(table)
    else:
        for name, value in result.rows():
            print(f"{name:<18} {value}")
    for difference in result.run.differences[:3]:
        print(f"  {difference}")
    if result.kept_directory:
        print(f"the store is kept: {result.kept_directory}")
