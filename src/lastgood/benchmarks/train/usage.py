"""What a process and its descendants use, read from /proc: CPU time, memory, bytes sent to storage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Use(NamedTuple):
    """So far, of all living members together."""

    cpu_seconds: float
    written_bytes: int


def use_of(session: int) -> Use:
    """Of every process of a session."""
    ticks, written = 0, 0
    for process, fields in members(session):
        ticks += int(fields[11]) + int(fields[12])
        try:
            with open(f"/proc/{process}/io", encoding="ascii") as file:
                counts = dict(line.split(": ") for line in file.read().splitlines())
            written += int(counts["write_bytes"]) - int(counts["cancelled_write_bytes"])
        except OSError:
            continue
    return Use(ticks / TICKS_PER_SECOND, written)


def members(session: int) -> Iterator[tuple[int, list[str]]]:
    """Every process of a session, with the fields of its stat line after the name."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if int(fields[3]) == session:
                yield int(name), fields


def proportional_bytes(process: int) -> int:
    """Memory of one process, each shared page divided by the number that share it; 0 when it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def resident_bytes(word: str) -> int:
    """VmRSS or VmHWM of this process."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(word))


def forget_peak() -> None:
    """Let the high-water mark of this process start over at what it has now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
