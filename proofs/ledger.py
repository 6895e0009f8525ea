"""The ledger: every claim, what they all trust, and what is not proved. One table, read by the gate, the README and tests.

GUARANTEE     what may be said in one breath, and no more: the package's README quotes it
CLAIMS        what a tool checks, each with its twin; `python -m proofs.check` runs them all
ASSUMPTIONS   what is believed: a claim names those that it rests on, and each says why
NOT_PROVED    what a reader might think is proved, and is not; and what stands in its place
"""

from __future__ import annotations

from .claim import Claim
from .claims_of_decisions import DECISIONS, KEEPING
from .claims_of_geometry import GEOMETRY
from .claims_of_programs import PROGRAMS
from .claims_of_protocol import PROTOCOL
from .claims_of_trials import SEARCHES, TRIALS
from .claims_of_words import WORDS

GUARANTEE = (
    "The protocol, as a transition system, is proved by two solvers to keep its promises for any number of slots, saves in "
    "flight, crashes and restarts, on media that keep what a returned persist made durable; that the code does what the "
    "protocol does is tested, step by step, and not proved."
)
"""The strongest sentence that this folder supports."""

CLAIMS: tuple[Claim, ...] = DECISIONS + KEEPING + GEOMETRY + PROGRAMS + WORDS + PROTOCOL + SEARCHES + TRIALS

ASSUMPTIONS: dict[str, str] = {
    "solvers": (
        "CrossHair, z3 and cvc5 are right when they say that there is no counterexample. What z3 proves, cvc5 proves "
        "again from the same formulas; the two share no code. Their versions are fixed, and each claim's twin shows that "
        "a counterexample is found where there is one. CrossHair's word is its own."
    ),
    "use": (
        "The save and recovery programs use a rule as its contract does: the same arguments, in the same order. Some "
        "contracts run the programs themselves; for the rest, the explorer and the tests of the programs say so."
    ),
    "machine-words": (
        "Python's integers stand for 64-bit words. The word claims show it for tags, slot sets and sizes, within limits "
        "that the core checks."
    ),
    "model": (
        "`protocol/` describes what `core/save.py` and `core/recover.py` do. They were written beside each other, step "
        "for step; that they agree is tested (`programs-follow-the-protocol`, `machine-code-follows-the-protocol`, "
        "`real-runs-are-accepted`), not proved. Payloads are named by the save they are from: a mixture of two saves is "
        "never taken for one of them."
    ),
    "medium": (
        "A persist that returns made the bytes of its file durable. One that fails may have lost them for good, but "
        "nothing of another file. A record or a mark that was written in part is recognised, or counts as one. The medium "
        "damages nothing by itself. One process at a time writes to a store."
    ),
    "digests": (
        "With one persist: two different payloads never have the same digest. CRC32C makes that likely, one in four "
        "thousand million against it for each chunk, and not certain. With two persists nothing rests on digests."
    ),
    "compiler": (
        "numba and LLVM compile the rules to what Python means, as long as no word overflows. Tests compare the two."
    ),
    "atomics": (
        "`load`, `compare_swap` and `fetch_add` are sequentially consistent: numba passes LLVM's ordered load, `cmpxchg` "
        "and `atomicrmw`, all seq_cst, on aligned 64-bit cells, and LLVM and the processor do what these mean. Every "
        "shared word is touched through these three alone, and a slot's data by its owner alone (`slot-has-one-user`), so "
        "there is no data race, and what is true of one step after the other is true of threads. Litmus tests and a look "
        "at the instructions back this on x86-64; they prove nothing, and nothing was run on a processor with a weaker "
        "memory model."
    ),
}
"""What is believed, and why."""

NOT_PROVED: tuple[tuple[str, str], ...] = (
    (
        "that the code is the protocol",
        "The protocol is proved for any number of concurrent saves; the programs in `core` are not. Contracts run them one "
        "save alone, or one beside another; random runs follow them step by step, as Python, as machine code, and in the "
        "real Store with its threads; the explorer in `crashsim` searches every schedule of a few saves, within bounds.",
    ),
    (
        "reading beside a writer, growing, sharing slots anew",
        "The model has no readers, and slots and cells that do not change in number. These are tested.",
    ),
    (
        "what a medium does beyond the model",
        "Bit rot, a disk that says durable and is not, a failed persist that loses another file's bytes (a write cache "
        "shared by a whole block device may do that), blocks that move: see what the claims trust. Damage is tested.",
    ),
    (
        "that a marked store has a checkpoint",
        "A mark may become durable just before its save fails. A store in which nothing was ever acknowledged, and whose "
        "only record was then emptied, is refused as if it had lost something: loud, and not a fresh start.",
    ),
    (
        "the atomics and the processor",
        "See what the claims trust. Contracts run the interpreted twins of the three operations, one thread at a time.",
    ),
    (
        "the compiled code",
        "CrossHair reads the Python source of the rules and programs, not the machine code that numba makes of it. The two "
        "are compared on random inputs and in random runs.",
    ),
    (
        "devices, files and the torch layer",
        "Opening, locking, preallocating, writing and persisting files, encoding records and state, and everything in "
        "`models` is tested and not proved. The parts of a payload are one thing in the model: whole, or a mixture.",
    ),
    (
        "digests",
        "That CRC32C notices damage is a matter of odds. Claims about recovery take the answer of a digest as given.",
    ),
    (
        "lists of any length",
        'A contract on a list is checked up to the length in its row. Where a row says "by induction", the step is '
        "checked and the induction is done by hand.",
    ),
    (
        "progress and speed",
        "Nothing here says that a rule or a save ends, that no saver starves, or how long anything takes.",
    ),
)
"""What is not proved, and what there is instead."""


def claim_named(name: str) -> Claim | None:
    """The claim with this name, or None."""
    return next((claim for claim in CLAIMS if claim.name == name), None)
