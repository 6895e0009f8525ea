"""Claims about the protocol: two solvers prove them for any number of slots and savers, and each mistake is refuted.

A claim *holds* when z3 and cvc5 prove the induction (once for all claims), exactly as many obligations as are expected,
and that the theorem follows. Its twins, the mistakes in its row, are *refuted* when z3 shows a state from which the
induction breaks, and the mistake's trace, replayed step by step in plain Python, ends in a break of the theorem. The row
"every reachable state" is the search's own: the same invariant and theorems, asked of every state of a small store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache

from . import protocol_search
from .claim import Claim, Verdict
from .protocol.theorems import STATE_THEOREMS, STEP_THEOREMS
from .protocol_counterexample import counterexample
from .protocol_mutants import HARMLESS, Mutant, mutants_named
from .protocol_proof import Proof, Symbolic, conclusion, induction, prove
from .protocol_search import Arena, replay

OBLIGATIONS = {"": 1334, "one-persist": 1305, "acquire-first": 1305}
"""Clauses times (steps and the start), for the protocol and for what has other steps. Another number is another protocol:
read it again before changing this one."""
REACHED = {
    "": (Arena(slots=2, savers=1, sequences=2), 3185),
    "one-persist": (Arena(slots=2, savers=1, sequences=2, variant=frozenset({"one-persist"})), 7613),
}
"""How many states there are: another number is another protocol, or another search, and must be looked at."""
TAKEN_IN_RACES = frozenset({"overtaken", "look_again", "superseded", "pass_on", "exchange"})
"""Steps that one saver alone, and a row of one, never take; every other step must be taken somewhere."""
Found = tuple[int, tuple[str, ...]]
"""How many obligations, or states; and what is wrong."""


@cache
def proved_induction(variant: str = "") -> Proof:
    """The induction, proved once in a process."""
    proof = prove(induction(Symbolic(frozenset(variant.split()))))
    expected = OBLIGATIONS.get(variant, OBLIGATIONS[""])
    if proof.obligations == expected:
        return proof
    return Proof(proof.obligations, (*proof.failures, f"{proof.obligations} obligations, not {expected}"))


def prove_theorem(theorem: str, variant: str = "") -> Found:
    """The induction, and that a theorem follows."""
    whole = proved_induction(variant)
    proof = prove(conclusion(Symbolic(frozenset(variant.split())), theorem))
    return whole.obligations + proof.obligations, whole.failures + proof.failures


def invariant_is_inductive_for(variant: str = "") -> Found:
    """The induction alone."""
    proof = proved_induction(variant)
    return proof.obligations, proof.failures


def prove_everything(variant: str) -> Found:
    """The induction for a variant, and every theorem."""
    found = [prove_theorem(theorem, variant) for theorem in (*STATE_THEOREMS, *STEP_THEOREMS)]
    of_theorems = sum(count for count, _ in found) - (len(found) - 1) * proved_induction(variant).obligations
    return of_theorems, tuple(dict.fromkeys(each for _, wrong in found for each in wrong))


def one_persist_keeps_the_promises() -> Found:
    """With one persist a save, and recovery that believes a record only when its digest is right, all the same holds."""
    return prove_everything("one-persist")


def other_orders_are_as_good() -> Found:
    """The proof also holds without the guard, counting or acquiring first, and with the mark before the record."""
    found = [prove_everything(name) for name in HARMLESS]
    return sum(count for count, _ in found), tuple(each for _, wrong in found for each in wrong)


def every_reachable_state() -> Found:
    """Every state that a small store can reach satisfies each clause of the invariant and each theorem."""
    total, wrong = 0, []
    for name, (arena, states) in REACHED.items():
        reached = protocol_search.every_reachable_state(arena, 10 * states)
        total += reached.states
        wrong += reached.wrong
        if reached.never_taken != TAKEN_IN_RACES:
            wrong.append(f"{name or 'two persists'}: these steps were never taken: {sorted(reached.never_taken)}")
        if reached.states != states:
            wrong.append(f"{name or 'two persists'}: {reached.states} states were reached, not {states}")
    return total, tuple(wrong)


PROOFS = {
    "invariant-is-inductive": invariant_is_inductive_for,
    "one-persist-keeps-the-promises": one_persist_keeps_the_promises,
    "other-orders-are-as-good": other_orders_are_as_good,
    "every-reachable-state": every_reachable_state,
}
"""How the claims are proved that are not one theorem."""


def refuted(mutant: Mutant) -> str:
    """How the mistake is refuted: empty when it is not."""
    state = counterexample(frozenset(mutant.name.split()), mutant.theorem)
    if state is None:
        return ""
    try:
        broken_at = replay(mutant.trace, mutant.theorem, mutant.arena())
    except (OSError, ValueError):
        return ""
    if broken_at != len(mutant.trace):
        return ""
    return f"{mutant.name}: {'; '.join(mutant.trace)}. Induction: {state}"


def check(claims: Sequence[Claim]) -> Iterator[Verdict]:
    """Prove each claim, and refute its twins: the mistakes that break this theorem."""
    for claim in claims:
        started = time.perf_counter()
        try:
            prove_it = PROOFS.get(claim.name)
            count, wrong = prove_it() if prove_it else prove_theorem(claim.name)
            examples = [refuted(mutant) for name in claim.twin_name.split(", ") for mutant in twins(claim, name)]
        except Exception as error:
            count, wrong, examples = 0, (f"{type(error).__name__}: {error}",), []
        said = f"{count} {'states reached' if claim.method == 'search' else 'obligations proved, by z3 and by cvc5'}"
        details: tuple[str, ...] = ()
        refutes = bool(examples) and all(examples)
        if wrong:
            said, details = "not proved", wrong
        elif not refutes:
            said = "a twin is not refuted"
        seconds = time.perf_counter() - started
        yield Verdict(claim.name, not wrong, refutes, seconds, said, " | ".join(examples), details)


def twins(claim: Claim, name: str) -> tuple[Mutant, ...]:
    """The rows of a mistake that break this claim; one of them, for a claim about all theorems."""
    rows = mutants_named(name)
    of_claim = tuple(row for row in rows if row.theorem == claim.name) if claim.name not in PROOFS else rows[:1]
    assert of_claim, f"no row of {name} breaks {claim.name}"
    return of_claim
