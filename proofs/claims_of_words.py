"""The ledger's rows that z3 proves on 64-bit words, where sums wrap."""

from __future__ import annotations

from .claim import Claim

WORDS = tuple(
    Claim(
        name=name,
        statement=statement,
        promises=tuple(promises.split()),
        method="words",
        module="proofs.words",
        bound=bound,
        strength="confirmed",
        trusts=("solvers", "use", "compiler"),
        twin=twin,
        weakens=weakens,
        twin_name=by,
    )
    for name, statement, promises, bound, twin, weakens, by in (
        (
            "word-tag-round-trip",
            "In 64-bit words a tag is positive, and gives back the sequence and the slot that were packed.",
            "never-wrong no-reuse",
            "sequences below 2^48 (true below 2^51), any slot",
            "sequences to 2^51: the tag is negative",
            "lastgood.core.rules.SEQUENCE_LIMIT",
            "PAST_THE_SIGN",
        ),
        (
            "word-tag-order",
            "Signed comparison of two 64-bit tags is the order of their sequences, for the guard and for the scan as well.",
            "monotone newest-survives",
            "sequences below 2^48 (true below 2^51), any slots",
            "sequences to 2^51: the newest tag is the least",
            "lastgood.core.rules.SEQUENCE_LIMIT",
            "PAST_THE_SIGN",
        ),
        (
            "word-publish",
            "In 64-bit words no try to publish puts an older sequence into the root, or ends with an older one there.",
            "monotone newest-survives",
            "sequences below 2^48 (true below 2^51), any slots",
            "sequences to 2^51: an older save replaces the newest",
            "lastgood.core.rules.SEQUENCE_LIMIT",
            "PAST_THE_SIGN",
        ),
        (
            "word-lowest-bit",
            "In 64-bit words, acquiring the lowest slot of any set clears its bit and no other, and the set stays a set.",
            "no-reuse no-leak",
            "every set of 62 slots",
            "64 slots in a word: the last one makes it negative",
            "lastgood.core.rules.SLOTS_PER_WORD",
            "SIXTY_FOUR_SLOTS",
        ),
        (
            "word-slot-masks",
            "In 64-bit words, slots that share a word have bits of their own, and adding a bit that is clear sets it alone.",
            "no-reuse no-leak",
            "any two slots below 4096, any set",
            "64 slots in a word: the last one makes it negative",
            "lastgood.core.rules.SLOTS_PER_WORD",
            "SIXTY_FOUR_SLOTS",
        ),
        (
            "word-geometry",
            "In 64-bit words aligning and adding sizes agree with integers that have no end.",
            "bounded no-harm",
            "sizes below 2^62, record areas below 2^40, slots to 4096",
            "sizes to 2^63: aligning wraps",
            "proofs.words.BYTES_BELOW",
            "TO_THE_LAST_BYTE",
        ),
    )
)
