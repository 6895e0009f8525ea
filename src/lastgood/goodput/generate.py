"""Traces made by rule: bulk preemption, single failures, a Poisson process, and a spot market that mixes them.

    bulk      at every turn half of the GPUs go at once; after `away` they are all back
    single    at every turn one GPU goes; after `away` it is back
    poisson   one GPU goes at random moments, independent of each other; each is back after `away`
    spot      mostly a few GPUs at a time, now and then many at once; they come back one by one

The same arguments give the same trace, whatever was generated before.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from .trace import MOST_GPUS, BadInput, Trace

HOUR = 3600.0
SAMPLE_SECONDS = 60.0
MOST_HOURS = 100_000.0
"""Eleven years."""
MOST_LOSSES = 100_000


def bulk(gpus: int, hours: float, every: float, away: float, seed: int) -> Trace:
    """Half of the GPUs, at least one, together."""
    return regular("bulk", gpus, hours, every, away, max(1, gpus // 2))


def single(gpus: int, hours: float, every: float, away: float, seed: int) -> Trace:
    """One GPU at a time."""
    return regular("single", gpus, hours, every, away, 1)


def regular(name: str, gpus: int, hours: float, every: float, away: float, lost: int) -> Trace:
    """`lost` GPUs go after every `every` seconds, the first time half a turn in, and come back after `away`."""
    changes, turn = [], every / 2
    while turn < hours * HOUR:
        changes += [(turn, -lost), (turn + min(away, every / 2), lost)]
        turn += every
    return from_changes(name, gpus, hours, changes)


def poisson(gpus: int, hours: float, every: float, away: float, seed: int) -> Trace:
    """One GPU, on average every `every` seconds."""
    chance = random.Random(seed)
    changes, moment = [], chance.expovariate(1 / every)
    while moment < hours * HOUR:
        changes += [(moment, -1), (moment + away, 1)]
        moment += chance.expovariate(1 / every)
    return from_changes("poisson", gpus, hours, changes)


def spot(gpus: int = 64, hours: float = 4.0, every: float = 900.0, away: float = 600.0, seed: int = 1) -> Trace:
    """Sampled every minute; one loss in six takes up to half of the job, the others up to three GPUs."""
    chance = random.Random(seed)
    seconds, counts, present = [0.0], [gpus], gpus
    while seconds[-1] + SAMPLE_SECONDS <= hours * HOUR:
        if chance.random() < SAMPLE_SECONDS / every:
            most = present // 2 if chance.random() < 1 / 6 else min(3, present)
            present -= chance.randint(1, max(1, most)) if present else 0
        elif present < gpus and chance.random() < SAMPLE_SECONDS / away * 2:
            present += chance.randint(1, min(4, gpus - present))
        seconds.append(seconds[-1] + SAMPLE_SECONDS)
        counts.append(present)
    return Trace("spot", tuple(seconds), tuple(counts))


def from_changes(name: str, gpus: int, hours: float, changes: list[tuple[float, int]]) -> Trace:
    """The trace with these changes applied in order of time; never below 0 nor above `gpus`."""
    samples, owed, present = {0.0: gpus}, 0, gpus
    for moment, change in sorted(changes):
        if moment < hours * HOUR:
            owed += change
            present = min(gpus, max(0, gpus + owed))
            samples[moment] = present
    samples[hours * HOUR] = present
    return Trace(name, tuple(samples), tuple(samples.values()))


KINDS: dict[str, Callable[[int, float, float, float, int], Trace]] = {
    "bulk": bulk,
    "single": single,
    "poisson": poisson,
    "spot": spot,
}


def generate(kind: str, *, gpus: int, hours: float, every: float, away: float, seed: int) -> Trace:
    """The trace of this kind. Raises BadInput for numbers that make none, or one without end."""
    if not 1 <= gpus <= MOST_GPUS:
        raise BadInput(f"--gpus {gpus}: give 1 to {MOST_GPUS:,}")
    for option, value in (("--hours", hours), ("--every", every), ("--away", away)):
        if not (math.isfinite(value) and value > 0):
            raise BadInput(f"{option} {value:g}: give more than 0")
    if hours > MOST_HOURS:
        raise BadInput(f"--hours {hours:g}: give {MOST_HOURS:,.0f} at most")
    if hours * HOUR > MOST_LOSSES * every:
        raise BadInput(f"--every {every:g}: more than {MOST_LOSSES:,} losses in {hours:g} hours: give more seconds")
    return KINDS[kind](gpus, hours, every, away, seed)
