"""What can be replayed in minutes and in ordinary memory; everything larger is refused before it is begun.

The longest run without a loss is computed save by save, each loss GPU by GPU, and durable checkpoints of a system that
relies on memory one by one: these three numbers are what a replay takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .costs import Costs
from .trace import BadInput, Trace

MOST_SAVES = 10**7
"""In the longest run, at the smallest interval; and durable checkpoints over the whole trace."""
MOST_MOVES = 10**8
"""Changes times GPUs."""
MOST_STEPS = 10**9
"""Of an interval."""


def refuse_what_is_too_large(trace: Trace, costs: Sequence[Costs], intervals: Sequence[int]) -> None:
    """Raise BadInput, with what to give instead."""
    assert costs
    if intervals[0] < 1:
        raise BadInput(f"an interval of {intervals[0]} steps: give 1 or more")
    if intervals[-1] > MOST_STEPS:
        raise BadInput(f"an interval of more than {MOST_STEPS:,} steps: give fewer")
    moves = sum(1 for _ in trace.changes()) * trace.most_gpus
    if moves > MOST_MOVES:
        raise BadInput(
            f"{trace.name}: {moves:,} changes times GPUs are too many to be replayed (at most {MOST_MOVES:,}):"
            " give fewer GPUs, or fewer changes"
        )
    moments = [0.0, *(loss.seconds for loss in trace.losses()), trace.duration_seconds]
    longest = max(after - before for before, after in pairwise(moments))
    for each in costs:
        saves = longest / each.iteration_seconds / intervals[0]
        if saves > MOST_SAVES:
            raise BadInput(
                f"{trace.name}: {saves:.3g} saves between two losses are too many to be replayed (at most {MOST_SAVES:,}):"
                f" give larger --intervals than {intervals[0]}, or a shorter trace"
            )
        if trace.duration_seconds / each.backstop_seconds > MOST_SAVES:
            raise BadInput(
                f"{trace.name}: a durable checkpoint every {each.backstop_seconds:g} s (backstop_seconds) is too often"
                " to be replayed: give more"
            )
