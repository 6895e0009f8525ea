"""The setting for a budget, decided from what was measured. Plain numbers, no clock.

    in flight   the fewest saves that together reach the device's bandwidth: more only make each one older
    interval    f ≥ m / (B·t)                        the device keeps up, however many are in flight
                held(f) / (f·t) ≤ aim · budget       the least such f, or a smaller one that is nearer to the aim, in ratio,
                                                     and not above the most

The published rule is f ≥ Tw / (N·t), Tw the time of a save with N in flight; where N saves reach the bandwidth it is the
first line, where they do not it asks for more. The aim is in the middle between the whole budget and a third of it. An
interval is a whole number of steps: where saves are cheap the smallest one may leave most of the budget unused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

ENOUGH = 0.95
"""Of the best bandwidth that any number in flight reaches."""
AIM, MOST = 0.6, 0.8
"""Of the budget: what a setting should use, and what it may use by what was measured, which is never exact."""
LEAST_USE = 1 / 3
"""Of the budget: below that saves could be more frequent."""


@dataclass(frozen=True)
class Contention:
    """Saves back to back, so many in flight: what each takes, and what the device does in all."""

    save_seconds: float
    bytes_per_second: float


@dataclass(frozen=True)
class Profile:
    """What was measured of this machine and job."""

    state_bytes: int
    iteration_seconds: float
    raw_bytes_per_second: float
    load_seconds: float
    contention: Mapping[int, Contention]
    """By saves in flight."""


def fewest_in_flight(profile: Profile) -> int:
    """The smallest number that reaches the device's bandwidth."""
    best = max(each.bytes_per_second for each in profile.contention.values())
    return min(count for count, each in profile.contention.items() if each.bytes_per_second >= ENOUGH * best)


def steps_to_keep_up(profile: Profile, in_flight: int) -> int:
    """The interval below which saves pile up."""
    rate = profile.contention[in_flight].bytes_per_second
    return max(1, math.ceil(profile.state_bytes / (rate * profile.iteration_seconds) - 1e-9))


@dataclass(frozen=True)
class Setting:
    """What is recommended."""

    interval_steps: int
    in_flight: int
    staging_bytes: int
    held_seconds: float
    """What a save adds to the training's time at this interval."""
    is_limited_by_device: bool
    more_often: float | None
    """What saves would take of the time at one step less between them; None where that cannot be."""

    def expected(self, profile: Profile) -> dict[str, float]:
        """Overhead, staleness and loss at this setting."""
        save = profile.contention[self.in_flight].save_seconds
        iteration = profile.iteration_seconds
        return {
            "overhead": self.held_seconds / (self.interval_steps * iteration),
            "staleness_steps": self.interval_steps / 2 + save / iteration,
            "worst_staleness_steps": self.interval_steps + math.ceil(save / iteration),
            "lost_seconds_per_failure": self.interval_steps * iteration / 2 + save,
            "memory_bytes": self.staging_bytes,
        }


def choose(profile: Profile, in_flight: int, held: Mapping[int, float], budget: float, staging_bytes: int) -> Setting:
    """Decide, from what a save was seen to cost at some intervals; in between it costs what it does at the nearest."""
    keep_up = steps_to_keep_up(profile, in_flight)

    def cost(interval: int) -> float:
        return held[min(held, key=lambda other: abs(math.log(other / interval)))]

    def overhead(interval: int) -> float:
        return cost(interval) / (interval * profile.iteration_seconds)

    # What saves cost jumps half-way between two intervals that were measured; the best one is at a jump, or at the aim.
    measured = sorted(held)
    jumps = [math.sqrt(one * other) for one, other in itertools.pairwise(measured)]
    aims = [each / (share * budget * profile.iteration_seconds) for each in held.values() for share in (AIM, MOST)]
    tried = {keep_up, *(round_to(x) for x in (*jumps, *aims) for round_to in (math.floor, math.ceil))}
    affordable = [each for each in sorted(tried) if each >= keep_up and overhead(each) <= MOST * budget]
    rarest = next(each for each in affordable if overhead(each) <= AIM * budget * (1 + 1e-9))
    chosen = min(
        affordable[: affordable.index(rarest) + 1], key=lambda each: abs(math.log(overhead(each) / (AIM * budget)))
    )
    return Setting(
        chosen,
        in_flight,
        staging_bytes,
        cost(chosen),
        chosen == keep_up > 1,
        overhead(chosen - 1) if chosen > keep_up else None,
    )


def verdict(setting: Setting, overhead: float, budget: float) -> str:
    """ "within", "over", or "unused": less than a third of the budget though saves could be more frequent."""
    if overhead > budget:
        return "over"
    return "unused" if overhead < LEAST_USE * budget and not why_not_more(setting, budget) else "within"


def why_not_more(setting: Setting, budget: float) -> str:
    """Why saves cannot be more frequent; empty when they can."""
    if setting.more_often is None:
        return "the device allows no more" if setting.is_limited_by_device else "there is one after every step"
    if setting.more_often > MOST * budget:
        return f"every {setting.interval_steps - 1} steps would be {setting.more_often:.2%} of the time"
    return ""
