"""Claims about the protocol: z3 proves them for any number of slots and savers, and each mistake is refuted by a trace.

A claim *holds* when z3 proves the induction (once for all claims) and that the theorem follows from it. Its twins, the
mistakes in its row, are *refuted* when z3 does not prove the induction with the mistake made, and the mistake's trace,
replayed step by step in plain Python, breaks the theorem. The row "every reachable state" is the search's own: the same
invariant and theorems, asked of every state that a small store can reach.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache

from .claim import Claim, Verdict
from .protocol_mutants import Mutant, mutants_named
from .protocol_proof import Proof, Symbolic, conclusion, induction, invariant_is_inductive, prove
from .protocol_search import Arena, every_reachable_state, replay

REACHABLE = Arena(slots=2, savers=1, sequences=2)
REACHABLE_STATES = 2090
"""How many states it has: another number is another protocol, or another search, and must be looked at."""


@cache
def proved_induction() -> Proof:
    """The induction, proved once in a process."""
    return invariant_is_inductive()


@cache
def inductive_with(mistake: str) -> bool:
    """Whether z3 proves the induction although this mistake is made."""
    return not prove(induction(Symbolic(frozenset(mistake.split()))), to_the_end=False).failures


def refuted(mutant: Mutant) -> str:
    """How the mistake is refuted: empty when it is not."""
    if inductive_with(mutant.name):
        return ""
    try:
        broken_at = replay(mutant.trace, mutant.theorem, mutant.arena())
    except ValueError:
        return ""
    if broken_at != len(mutant.trace):
        return ""
    return f"{mutant.name}: {'; '.join(mutant.trace)}"


def prove_claim(claim: Claim) -> tuple[int, tuple[str, ...]]:
    """The obligations of one claim, and what is wrong with them."""
    if claim.name == "every-reachable-state":
        count, wrong = every_reachable_state(REACHABLE, 10 * REACHABLE_STATES)
        if count != REACHABLE_STATES:
            wrong = [*wrong, f"{count} states were reached, not {REACHABLE_STATES}"]
        return count, tuple(wrong)
    whole = proved_induction()
    if claim.name == "invariant-is-inductive":
        return whole.obligations, whole.failures
    proof = prove(conclusion(Symbolic(), claim.name))
    return whole.obligations + proof.obligations, whole.failures + proof.failures


def check(claims: Sequence[Claim]) -> Iterator[Verdict]:
    """Prove each claim, and refute its twins: the mistakes that break this theorem."""
    for claim in claims:
        started = time.perf_counter()
        try:
            count, wrong = prove_claim(claim)
            examples = [refuted(mutant) for name in claim.twin_name.split(", ") for mutant in twins(claim, name)]
        except Exception as error:
            count, wrong, examples = 0, (f"{type(error).__name__}: {error}",), []
        what = "states reached" if claim.name == "every-reachable-state" else "obligations proved"
        said = f"{count} {what}"
        details: tuple[str, ...] = ()
        refutes = bool(examples) and all(examples)
        if wrong:
            said, details = "not proved", wrong
        elif not refutes:
            said = "a twin is not refuted"
        seconds = time.perf_counter() - started
        yield Verdict(claim.name, not wrong, refutes, seconds, said, " | ".join(examples), details)


def twins(claim: Claim, name: str) -> tuple[Mutant, ...]:
    """The rows of a mistake that break this claim; any of them, for a claim about all theorems."""
    rows = mutants_named(name)
    of_claim = tuple(row for row in rows if row.theorem == claim.name)
    if claim.name in ("invariant-is-inductive", "every-reachable-state"):
        of_claim = rows[:1]
    assert of_claim, f"no row of {name} breaks {claim.name}"
    return of_claim
