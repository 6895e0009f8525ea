"""The claim that the programs follow the protocol: tested by random runs, its twin by the same runs with a rule weakened."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from .claim import Claim, Verdict
from .refinement import programs_follow_the_protocol
from .twins import find, in_place_of


def attempt() -> tuple[int, str]:
    """How many moves were followed, and the first that could not be."""
    try:
        return programs_follow_the_protocol(), ""
    except Exception as error:
        return 0, f"{type(error).__name__}: {error}"


def check(claims: Sequence[Claim]) -> Iterator[Verdict]:
    """Run the programs beside the protocol, as they are and weakened."""
    for claim in claims:
        started = time.perf_counter()
        followed, wrong = attempt()
        weakened, name = find(f"proofs.weakened.{claim.twin_name}")
        with in_place_of(claim.weakens, getattr(weakened, name)):
            _, departure = attempt()
        refuted = departure.startswith("Departure")
        said = f"{followed} moves followed"
        if wrong:
            said = "not followed"
        elif not refuted:
            said = "the twin is not refuted"
        details = tuple(each for each in (wrong, "" if refuted else departure) if each)
        seconds = time.perf_counter() - started
        yield Verdict(claim.name, not wrong, refuted, seconds, said, departure if refuted else "", details)
