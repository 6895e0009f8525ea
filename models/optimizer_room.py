"""How much an optimizer's state will still grow: torch makes moments at a parameter's first update, not before.

A store made by a save before that update would be too small for every later one, so its slots get room for what is to
come. An estimate: exact for torch's SGD and Adam family, generous for the rest.
"""

from __future__ import annotations

import torch


def moments_to_come(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the moments that parameters without optimizer state will get."""
    total = 0
    for group in optimizer.param_groups:
        parameters = [each for each in group["params"] if not optimizer.state.get(each)]
        total += moments_per_parameter(group) * sum(each.nbytes for each in parameters if each.requires_grad)
    return total


def moments_per_parameter(group: dict[str, object]) -> int:
    """How many tensors of a parameter's size an optimizer with these settings keeps for it."""
    if "betas" in group:
        return 3 if group.get("amsgrad") else 2
    if "momentum" in group and "nesterov" in group:
        return 1 if group["momentum"] else 0
    return 2
