"""Claims that are tried, not proved: each is a function that answers how much was tried, and raises when it does not hold.

Its twin is the same function with one thing weakened, and must raise: an AssertionError, which is what these raise when
they see a violation. Any other exception is a mistake of the trial itself and refutes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from .claim import Claim, Verdict
from .twins import find, in_place_of, weakened_version


class Skipped(Exception):
    """This cannot be tried here, for the reason given; the gate shows it."""


def attempt(claim: Claim) -> tuple[int, str, str]:
    """How much was tried, what was violated, and what else went wrong."""
    module, name = find(f"{claim.module}.{claim.function}")
    try:
        return getattr(module, name)(), "", ""
    except AssertionError as error:
        return 0, f"{type(error).__name__}: {error}", ""
    except Skipped:
        raise
    except Exception as error:
        return 0, "", f"{type(error).__name__}: {error}"


def check(claims: Sequence[Claim]) -> Iterator[Verdict]:
    """Try each claim, as it is and weakened."""
    for claim in claims:
        started = time.perf_counter()
        try:
            tried, violated, wrong = attempt(claim)
            with in_place_of(claim.weakens, weakened_version(claim.twin_name)):
                _, refuted, failure = attempt(claim)
        except Skipped as reason:
            yield Verdict(claim.name, False, False, 0.0, f"skipped: {reason}", skipped=True)
            continue
        said = f"{tried} tried"
        if violated or wrong:
            said = "does not hold"
        elif not refuted:
            said = "the twin is not refuted"
        details = tuple(each for each in (violated, wrong, failure) if each)
        held = not violated and not wrong
        yield Verdict(claim.name, held, bool(refuted), time.perf_counter() - started, said, refuted, details)
