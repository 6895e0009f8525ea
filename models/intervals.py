"""How often to save, as decisions over whole numbers: microseconds, steps, parts per million. No torch, no clock.

One save in flight, every k steps, costs the training `held` microseconds and is durable `durable` after it began:

    k ≥ (durable − held) / iteration            it is durable before the next one begins, or saves pile up
    k ≥ held / (budget · iteration)             what it costs stays within the budget
    k = the larger, rounded up                  rounded down, the budget is exceeded in a quarter of all cases

This is the rule that CheckFreq published, with the measured cost in place of the predicted one (`held_back`).

V1 within      overhead_ppm(held, interval_steps(…), iteration) ≤ budget
V2 drained     interval_steps(…) · iteration + held ≥ durable
V3 least       no smaller interval has both
"""

from __future__ import annotations

import math

MILLION = 1_000_000


def ceiling(dividend: int, divisor: int) -> int:
    """The quotient, rounded up; 0 for a dividend below 0."""
    return (dividend + divisor - 1) // divisor if dividend > 0 else 0


def held_back(capture_us: int, iteration_us: int, update_us: int) -> int:
    """What a copy that runs beside forward and backward leaves for the update to wait for."""
    rest = capture_us - (iteration_us - update_us)
    return rest if rest > 0 else 0


def steps_to_drain(iteration_us: int, durable_us: int, held_us: int) -> int:
    """Steps after which a save is durable."""
    return ceiling(durable_us - held_us, iteration_us)


def steps_to_afford(iteration_us: int, held_us: int, budget_ppm: int) -> int:
    """Steps over which the cost of a save is within the budget."""
    return ceiling(held_us * MILLION, budget_ppm * iteration_us)


def interval_steps(iteration_us: int, durable_us: int, held_us: int, budget_ppm: int) -> int:
    """The smallest number of steps between saves that drains and that the budget affords (V1, V2, V3)."""
    drain = steps_to_drain(iteration_us, durable_us, held_us)
    afford = steps_to_afford(iteration_us, held_us, budget_ppm)
    larger = drain if drain > afford else afford
    return larger if larger > 1 else 1


def overhead_ppm(held_us: int, interval: int, iteration_us: int) -> int:
    """What a save every `interval` steps costs, in millionths of the time without saving, rounded up."""
    return ceiling(held_us * MILLION, interval * iteration_us)


def lost_work_us(interval: int, iteration_us: int, durable_us: int) -> int:
    """Work lost by a failure at a random moment, on average: half an interval, and the time a save takes to count."""
    return interval * iteration_us // 2 + durable_us


def young_daly_us(held_us: int, failure_us: int) -> int:
    """The interval that is the best for saves which do nothing but hold the training, by Young and Daly."""
    return math.isqrt(2 * held_us * failure_us)


def is_due(step: int, last_step: int, interval: int) -> bool:
    """Whether `interval` steps have passed since the last save."""
    return step - last_step >= interval
