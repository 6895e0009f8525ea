"""The setting for a budget, decided from what was measured. Plain numbers, no clock.

    in flight   the fewest saves that together reach the device's bandwidth: more only make each one older
    interval    f ≥ m / (B·t)                        the device keeps up, however many are in flight
                f ≥ held / (aim · budget · t)         what a save costs stays within the budget

The published rule is f ≥ Tw / (N·t), Tw the time of a save with N in flight; where N saves reach the bandwidth it is the
first line, where they do not it asks for more. `aim` leaves room for noise without leaving the budget unused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

ENOUGH = 0.95
"""Of the best bandwidth that any number in flight reaches."""
AIM = 0.7
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


def steps_to_afford(profile: Profile, held_seconds: float, budget: float) -> int:
    """The interval at which a save that costs so much uses `AIM` of the budget."""
    return max(1, math.ceil(held_seconds / (AIM * budget * profile.iteration_seconds) - 1e-9))


@dataclass(frozen=True)
class Setting:
    """What is recommended."""

    interval_steps: int
    in_flight: int
    staging_bytes: int
    held_seconds: float
    """What a save adds to the training's time at this interval."""
    is_limited_by_device: bool

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


def choose(profile: Profile, in_flight: int, held_seconds: float, budget: float, staging_bytes: int) -> Setting:
    """The most frequent saves that the device and the budget allow."""
    keep_up = steps_to_keep_up(profile, in_flight)
    afford = steps_to_afford(profile, held_seconds, budget)
    return Setting(max(keep_up, afford), in_flight, staging_bytes, held_seconds, keep_up > afford)


def verdict(setting: Setting, overhead: float, budget: float) -> str:
    """ "within", "over", or "unused": less than a third of the budget though saves could be more frequent."""
    if overhead > budget:
        return "over"
    could_be_more_frequent = setting.interval_steps > 1 and not setting.is_limited_by_device
    return "unused" if overhead < LEAST_USE * budget and could_be_more_frequent else "within"
