"""The ledger: every claim, what they all trust, and what is not proved. One table, read by the gate, the README and tests.

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
from .claims_of_words import WORDS

CLAIMS: tuple[Claim, ...] = DECISIONS + KEEPING + GEOMETRY + PROGRAMS + WORDS + PROTOCOL

ASSUMPTIONS: dict[str, str] = {
    "solvers": (
        "CrossHair and z3 are right when they say that there is no counterexample. Their versions are fixed, and each "
        "claim's twin shows that they do find one where there is one."
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
        "`protocol*.py` describe what `core/save.py` and `core/recover.py` do. They were written beside each other, step "
        "for step; that they agree is tested (`programs-follow-the-protocol`), not proved. More is allowed in the model: "
        "any number of kept cells, in any order, and any page may be written back at any time."
    ),
    "medium": (
        "A persist that returns made the bytes durable. A record written back in part is recognised by its own digest. "
        "The medium damages nothing by itself. One process at a time writes to a store."
    ),
    "compiler": (
        "numba and LLVM compile the rules to what Python means, as long as no word overflows. Tests compare the two."
    ),
}
"""What is believed, and why."""

NOT_PROVED: tuple[tuple[str, str], ...] = (
    (
        "that the code is the protocol",
        "The protocol is proved for any number of concurrent saves; the programs in `core` are not. Contracts run them one "
        "save alone, or one beside another; random runs follow them step by step; the explorer in `crashsim` searches every "
        "schedule of a few saves, within bounds.",
    ),
    (
        "that the newest `keep` checkpoints are kept",
        "The protocol is proved for the newest one. Kept cells are there, in any number, but only that nobody uses their "
        "slots is proved of them; which tags they hold under races is left to contracts on one save and to the explorer.",
    ),
    (
        "one persist instead of two, and reading beside a writer",
        "The model has two persists a save, ignores digests, and has no readers. Stores made with one persist rely on "
        "digests, and readers do.",
    ),
    (
        "what a medium does beyond the model",
        "Bit rot, a disk that says durable and is not, blocks that move: see what the claims trust. Damage is tested.",
    ),
    (
        "atomics",
        "That `load`, `compare_swap` and `fetch_add` are sequentially consistent rests on LLVM and the processor. "
        "Contracts run their interpreted twins, one thread at a time.",
    ),
    (
        "the compiled code",
        "CrossHair reads the Python source of the rules and programs, not the machine code that numba makes of it.",
    ),
    (
        "devices, files and the torch layer",
        "Opening, locking, preallocating, writing and persisting files, encoding records and state, and everything in "
        "`models` is tested and not proved.",
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
