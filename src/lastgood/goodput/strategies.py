"""The ten strategies as rows of one table: what a save holds up, where it goes, how many at once, what recovery costs.

    stores      "storage"    every save becomes durable
                "peers"      every save goes to another machine's memory; durable ones are rare (`backstop`)
                "survivors"  nothing is saved: whoever is left has the state; durable ones are rare
    spill       what a copy made behind forward and backward leaves for the update to wait for

A recovery bound is the most steps that one failure may cost a system that finds what it relies on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .costs import Costs


def spill(costs: Costs) -> float:
    """Lazy capture, one update later."""
    return max(0.0, costs.capture_seconds - costs.undisturbed)


def one(costs: Costs) -> int:
    """One save in flight."""
    return 1


def several(costs: Costs) -> int:
    """As many as the table says."""
    return costs.in_flight


def best_window(costs: Costs, interval: int) -> int:
    """GoCkpt's steps over which a state is spread: the number, up to 7, that holds the training least."""
    return min(range(1, min(7, interval) + 1), key=lambda steps: spread_hold(costs, steps))


def spread_hold(costs: Costs, steps: int) -> float:
    """Gradients of what was already copied, which nothing hides, and what of each block does not fit its step."""
    gradients = costs.gradient_fraction * costs.capture_seconds * (steps - 1) / 2
    return gradients + steps * max(0.0, costs.capture_seconds / steps - costs.undisturbed)


def window_steps(costs: Costs, interval: int) -> int:
    """Steps after its request at which GoCkpt's version is complete; in one step nothing needs repair."""
    steps = best_window(costs, interval)
    return steps if steps > 1 else 0


def no_window(costs: Costs, interval: int) -> int:
    """The version that is saved is the one of the request."""
    return 0


def whole(costs: Costs) -> float:
    """Each save moves the whole state."""
    return 1.0


def load_stored(costs: Costs, from_memory: bool, chain: int) -> float:
    """Read from storage."""
    return costs.load_seconds


def load_from_peer(costs: Costs, from_memory: bool, chain: int) -> float:
    """Over the network, from storage when the memory is gone."""
    return costs.peer if from_memory else costs.load_seconds


def load_from_survivor(costs: Costs, from_memory: bool, chain: int) -> float:
    """A survivor saves first, then everybody loads."""
    return costs.alone + costs.load_seconds if from_memory else costs.load_seconds


def load_chain(costs: Costs, from_memory: bool, chain: int) -> float:
    """A base and every difference since."""
    if not from_memory:
        return costs.load_seconds
    return costs.peer + chain * costs.difference_fraction * costs.load_seconds


@dataclass(frozen=True)
class Strategy:
    """One system. Functions take its costs and, where it matters, the interval in steps."""

    name: str
    summary: str
    hold: Callable[[Costs, int], float]
    """Seconds that a save holds the training, besides waiting for a place in flight."""
    stores: str = "storage"
    is_paused: bool = False
    """Durable when the training goes on."""
    oldest_first: bool = False
    places: Callable[[Costs], int] = one
    moves: Callable[[Costs], float] = whole
    window: Callable[[Costs, int], int] = no_window
    backstop: str = ""
    """Where durable ones come from when saves go to memory: "clock" or "base"."""
    load: Callable[[Costs, bool, int], float] = load_stored

    def bound_steps(self, costs: Costs, interval: int) -> int:
        """The recovery bound."""
        if self.stores == "survivors":
            return 0
        if self.is_paused:
            return interval
        alone = costs.alone if self.stores == "storage" else costs.peer * self.moves(costs)
        longest = (self.places(costs) * alone + costs.capture_seconds) / costs.iteration_seconds
        return interval + min(self.places(costs) * interval, math.ceil(longest) + self.window(costs, interval))


ROWS = (
    Strategy(
        "synchronous",
        "training waits for copy and write",
        lambda costs, interval: costs.capture_seconds + costs.alone,
        is_paused=True,
    ),
    Strategy("checkfreq", "copy behind the next step, one write in flight", lambda costs, interval: spill(costs)),
    Strategy(
        "gemini",
        "to a peer's memory in the network's idle time",
        lambda costs, interval: max(0.0, costs.peer - costs.idle_fraction * interval * costs.iteration_seconds),
        stores="peers",
        backstop="clock",
        load=load_from_peer,
    ),
    Strategy(
        "gpm",
        "training waits for stores straight into durable memory",
        lambda costs, interval: costs.direct,
        is_paused=True,
    ),
    Strategy(
        "just-in-time",
        "survivors save when somebody has failed",
        lambda costs, interval: 0.0,
        stores="survivors",
        backstop="clock",
        load=load_from_survivor,
    ),
    Strategy(
        "datastates",
        "lazy copy into a pool, written back as it fills",
        lambda costs, interval: spill(costs),
        places=lambda costs: max(1, int(costs.pool_states)),
    ),
    Strategy(
        "gockpt",
        "copy spread over steps, repaired from gradients",
        lambda costs, interval: spread_hold(costs, best_window(costs, interval)),
        window=window_steps,
    ),
    Strategy(
        "tiercheck",
        "differences to a peer's memory, bases to storage",
        lambda costs, interval: max(0.0, costs.difference_fraction * costs.capture_seconds - costs.undisturbed),
        stores="peers",
        moves=lambda costs: costs.difference_fraction,
        backstop="base",
        load=load_chain,
    ),
    Strategy(
        "pccheck",
        "several writes in flight, sharing the device fairly",
        lambda costs, interval: spill(costs),
        places=several,
    ),
    Strategy(
        "lastgood",
        "several writes in flight, the oldest first",
        lambda costs, interval: spill(costs),
        places=several,
        oldest_first=True,
    ),
)

STRATEGIES = {row.name: row for row in ROWS}
