"""When the demo kills its training: a plan, drawn from a seed, spread over the run. Checked by `tests/demo/`.

    saving      a save was started a moment ago and is not durable yet; as a rule several are
    computing   anywhere between the ends of two steps
    starting    right after the previous kill: while the process starts, restores, or makes its first steps

The kinds take turns, in an order drawn from the seed. The moment within a kind is `fraction`, which the supervisor
multiplies by what it has measured: how long a save takes, a step, a start.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

KINDS = ("saving", "computing", "starting", "saving")


@dataclass(frozen=True)
class Kill:
    """One kill: once `step` has been reported (not of a `starting` one), after a `fraction` of the kind's duration."""

    kind: str
    step: int
    fraction: float


def is_due(step: int, steps: int, every: int) -> bool:
    """Tell whether the training saves after this step: every so many, and after the last."""
    return step % every == 0 or step == steps


def plan_kills(kills: int, steps: int, every: int, seed: int) -> list[Kill]:
    """Plan `kills` kills in the order in which they happen.

    The run is cut into as many stretches as there are kills at a step, and each falls somewhere in its own. None is
    planned for the last steps, so that the training cannot end before it.
    """
    assert kills >= 0
    assert steps >= 4
    draw = random.Random(f"kills of {seed}")
    kinds = [KINDS[number % len(KINDS)] for number in range(kills)]
    draw.shuffle(kinds)
    stretches = sum(kind != "starting" for kind in kinds)
    last = max(1, min(steps - 3, round(steps * 0.95)))
    plan: list[Kill] = []
    stretch = 0
    for kind in kinds:
        fraction = draw.random()
        if kind == "starting":
            plan.append(Kill(kind, 0, fraction))
            continue
        step = 1 + int((stretch + draw.random()) * last / stretches)
        stretch += 1
        if kind == "saving":
            due = -(-step // every) * every
            kind, step = ("saving", due) if due <= last else ("computing", step)
        plan.append(Kill(kind, min(step, last), fraction))
    return plan
