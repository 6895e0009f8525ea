"""Small traces and costs for the tests of the replay."""

from __future__ import annotations

import dataclasses

from lastgood.goodput.costs import Costs
from lastgood.goodput.replay import Outcome, replay
from lastgood.goodput.strategies import STRATEGIES
from lastgood.goodput.trace import Trace

COSTS = Costs(
    iteration_seconds=1.0,
    update_seconds=1.0,  # so that nothing of a capture is hidden
    capture_seconds=0.0,
    write_seconds=2.0,
    load_seconds=1.0,
    restart_seconds=3.0,
    peer_seconds=0.5,
)


def trace(*samples: tuple[float, int]) -> Trace:
    return Trace("hand", tuple(time for time, _ in samples), tuple(gpus for _, gpus in samples))


def play(name: str, failures: Trace, interval: int, costs: Costs = COSTS, seed: int = 0, **changed: float) -> Outcome:
    return replay(failures, STRATEGIES[name], dataclasses.replace(costs, **changed), interval, seed=seed)
