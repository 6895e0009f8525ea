"""A failure trace: how many GPUs a job had, sampled over time. Read from CSV, checked before anything is computed.

    ,Time,GPUs            a column before Time is allowed (an index, as pandas writes it), further columns too
    0,1652434464.4,56     Time in seconds from any origin, strictly increasing
    1,1652434527.4,36     20 GPUs were lost at this sample; GPUs that come are not failures

The number of GPUs holds from its sample until the next one; the last sample is the end.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources

SHIPPED = "spot.csv"
"""The trace that comes with the project: synthetic, made by `generate.spot` with its defaults."""


MOST_GPUS = 1_000_000
"""Of a job: ten times the largest there are."""
MOST_SECONDS = 1e12
"""Of a trace, and from its origin."""


class BadInput(ValueError):
    """What the user gave cannot be replayed. The message is one line that says where and what to give."""


@dataclass(frozen=True)
class Change:
    """A sample at which the number of GPUs is another than before."""

    seconds: float
    before: int
    after: int

    @property
    def lost(self) -> int:
        """GPUs taken away; 0 when some came."""
        return max(0, self.before - self.after)


@dataclass(frozen=True)
class Trace:
    """Samples, counted from the first; `BadInput` is raised for what is no trace."""

    name: str
    seconds: tuple[float, ...]
    gpus: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.seconds) < 2:
            raise BadInput(f"{self.name}: a trace needs two samples or more, this one has {len(self.seconds)}")
        for number, (before, after) in enumerate(zip(self.seconds, self.seconds[1:], strict=False), start=2):
            if not after > before:
                raise BadInput(f"{self.name}: sample {number} is not later than the one before: sort the trace by Time")
        if min(self.gpus) < 0:
            number = next(index for index, gpus in enumerate(self.gpus, start=1) if gpus < 0)
            raise BadInput(f"{self.name}: sample {number} has {min(self.gpus)} GPUs: give counts of 0 or more")
        if max(self.gpus) == 0:
            raise BadInput(f"{self.name}: there is never a GPU in this trace")
        if max(self.gpus) > MOST_GPUS:
            number = next(index for index, gpus in enumerate(self.gpus, start=1) if gpus > MOST_GPUS)
            raise BadInput(f"{self.name}: sample {number} has more than {MOST_GPUS:,} GPUs: give fewer")

    @property
    def duration_seconds(self) -> float:
        """From the first sample to the last."""
        return self.seconds[-1] - self.seconds[0]

    @property
    def most_gpus(self) -> int:
        """The size of the whole job."""
        return max(self.gpus)

    @property
    def available_gpu_seconds(self) -> float:
        """What a job that never stopped would have had."""
        gaps = zip(self.seconds, self.seconds[1:], strict=False)
        return math.fsum(gpus * (after - before) for gpus, (before, after) in zip(self.gpus, gaps, strict=False))

    def changes(self) -> Iterator[Change]:
        """Every change, in order, in seconds from the first sample."""
        for number in range(1, len(self.gpus)):
            if self.gpus[number] != self.gpus[number - 1]:
                yield Change(self.seconds[number] - self.seconds[0], self.gpus[number - 1], self.gpus[number])

    def losses(self) -> list[Change]:
        """The changes that are failures."""
        return [change for change in self.changes() if change.lost]


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """The trace in a CSV file. Raises BadInput, naming the line, and OSError."""
    with open(path, encoding="utf-8", newline="") as file:
        return parse_trace(os.path.basename(os.fspath(path)), file)


def shipped_trace() -> Trace:
    """The synthetic spot trace of this project."""
    text = resources.files(__package__).joinpath(SHIPPED).read_text(encoding="utf-8")
    return parse_trace(SHIPPED, text.splitlines())


def parse_trace(name: str, lines: Iterable[str]) -> Trace:
    """The trace in the lines of a CSV file."""
    rows = csv.reader(lines)
    try:
        header = next(rows, [])
        columns = [header.index("Time"), header.index("GPUs")]
    except (ValueError, csv.Error):
        raise BadInput(f"{name}: the first line must name the columns Time and GPUs") from None
    seconds, gpus = [], []
    try:
        for row in rows:
            time, count = (row[column] for column in columns)
            seconds.append(float(time))
            gpus.append(int(count))
            if not abs(seconds[-1]) <= MOST_SECONDS:  # nan neither
                raise ValueError
    except (ValueError, IndexError, csv.Error):
        raise BadInput(f"{name}: line {rows.line_num}: give a Time in seconds and a whole number of GPUs") from None
    return Trace(name, tuple(seconds), tuple(gpus))


def as_csv(trace: Trace) -> str:
    """The text of a file that `read_trace` reads."""
    rows = [f"{time:g},{gpus}" for time, gpus in zip(trace.seconds, trace.gpus, strict=True)]
    return "\n".join(["Time,GPUs", *rows, ""])
