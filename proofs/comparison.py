"""The core's rules as machine code and as Python, on the same random numbers: the link that CrossHair does not see.

Numbers are drawn within the core's limits, small ones and ones at the edges more often than others.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numba

from lastgood.core import rules

from .mutants import rule_names

INPUTS = 1_000_000
"""In all; every rule gets as many."""
TAG = (0, 2**60 - 1)
LIMITS: dict[str, tuple[int, int]] = {
    "sequence": (0, rules.SEQUENCE_LIMIT),
    "slot": (0, rules.SLOT_LIMIT - 1),
    **dict.fromkeys(("tag", "seen", "mine", "found", "held", "offered", "oldest_kept", "best", "candidate"), TAG),
    "highest": (0, rules.SEQUENCE_LIMIT),
    "outcome": (rules.PENDING, rules.LOOK_AGAIN),
    "status": (rules.DONE, rules.REFUSED),
    "mask": (1, 2**rules.SLOTS_PER_WORD - 1),
    "slot_count": (0, rules.SLOT_LIMIT),
    "count": (0, 2**62),
    "payload_bytes": (0, 2**50),
    "chunk_bytes": (1, 2**40),
    "slot_bytes": (0, 2**50),
    "index": (0, 2**10),
    "area_bytes": (0, 2**40),
    "fixed_bytes": (0, 2**20),
    "digest_bytes": (0, 2**10),
    "meta_bytes": (0, 2**20),
    "chunks": (0, 2**20),
}
"""What each argument of a rule may be. A rule with an argument that is not here fails the claim, loudly."""


class Difference(AssertionError):
    """Machine code and Python do not answer the same."""


def compile_rule(name: str) -> Callable[..., Any]:
    """A rule as machine code."""
    return numba.njit(getattr(rules, name))


def draw(chance: random.Random, least: int, most: int) -> int:
    """A number between these, near an end of the range more often than not."""
    reach = min(most - least, 2 ** chance.randrange(64))
    return least + chance.randrange(reach + 1) if chance.random() < 0.7 else most - chance.randrange(reach + 1)


def compiled_rules_are_the_python_ones() -> int:
    """Every rule of the core answers the same as machine code and as Python, on a million random inputs."""
    if numba.config.DISABLE_JIT:
        raise Difference("the JIT is off: there is no machine code to compare with")
    names = rule_names()
    chance = random.Random(1)
    each = -(-INPUTS // len(names))
    for name in names:
        plain, compiled = getattr(rules, name), compile_rule(name)
        limits = [LIMITS[parameter] for parameter in inspect.signature(plain).parameters]
        for _ in range(each):
            values = [draw(chance, *limit) for limit in limits]
            if compiled(*values) != plain(*values):
                raise Difference(
                    f"{name}{tuple(values)} is {compiled(*values)} as machine code, {plain(*values)} in Python"
                )
    return each * len(names)
