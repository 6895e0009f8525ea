"""Claims on words that two solvers prove: each is a list of obligations, and neither may find anything that breaks one.

An *obligation* is what is given and what must then hold. z3 is asked for a case where it does not (`unsat` expected),
and for a case of what is given (`sat` expected: nothing is proved of nothing). `unknown`, which is also what a time-out
says, is a failure of both questions. The twin makes its obligations with one limit or formula of the claim weakened;
z3 must find a case that breaks one, and the case is shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import z3

from .claim import Claim, Verdict
from .second_solver import second_word
from .twins import find, in_place_of

MILLISECONDS = 20_000
"""For one question; the slowest takes a hundredth of it."""

Obligation = tuple[z3.BoolRef, z3.BoolRef]


def ask(*formulas: z3.BoolRef) -> tuple[str, str]:
    """z3's word on whether these can hold together, and the values when they can."""
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*formulas)
    word = str(solver.check())
    if word != "sat":
        return word, ""
    model = solver.model()
    return word, ", ".join(sorted(f"{name} = {model[name]}" for name in model.decls()))


def prove(obligations: Iterable[Obligation]) -> tuple[int, list[str], str]:
    """How many obligations there were, what was wrong with them, and the first case that breaks one. Stops there."""
    count = 0
    for given, wanted in obligations:
        count += 1
        word, case = ask(given, z3.Not(wanted))
        if word == "sat":
            return count, [f"obligation {count} is broken by {case}"], case
        if word != "unsat":
            return count, [f"obligation {count}: {word}"], ""
        word = second_word([given, z3.Not(wanted)])
        if word != "unsat":
            return count, [f"obligation {count}: {word} (cvc5)"], ""
        word, _ = ask(given)
        if word != "sat":
            return count, [f"obligation {count}: what is given is {word}"], ""
    return count, [] if count else ["no obligations"], ""


def check(claims: Sequence[Claim]) -> Iterator[Verdict]:
    """Prove each claim, and refute its twin."""
    for claim in claims:
        started = time.perf_counter()
        count, wrong, _ = attempt(claim)
        weakened, _ = find(f"proofs.weakened.{claim.twin_name}")
        with in_place_of(claim.weakens, getattr(weakened, claim.twin_name)):
            _, survived, example = attempt(claim)
        said = f"{count} obligations proved, by z3 and by cvc5"
        details: list[str] = []
        if wrong:
            said, details = "not proved", wrong
        elif not example:
            said, details = "the twin is not refuted", survived or ["its obligations are proved as well"]
        seconds = time.perf_counter() - started
        yield Verdict(claim.name, not wrong, bool(example), seconds, said, example, tuple(details))


def attempt(claim: Claim) -> tuple[int, list[str], str]:
    """Prove a claim's obligations as they are now; an error while they are made is something wrong, too."""
    try:
        module, name = find(f"{claim.module}.{claim.function}")
        return prove(getattr(module, name)())
    except Exception as error:
        return 0, [f"{type(error).__name__}: {error}"], ""
