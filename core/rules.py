"""Every decision of the persistence core, as pure functions over plain ints. Checked by CrossHair (`proofs/`).

Nothing here reads a clock, a file or shared memory, so each function can be confirmed over all its paths and called
from interpreted and compiled code alike. The arithmetic is linear on purpose (`sequence * 4096 + slot`, never
shift-or): solvers confirm that, and for non-negative 64-bit numbers it is the same thing.

A tag is one 64-bit word:

     63 62    60 59                                  12 11            0
    +--+--------+--------------------------------------+---------------+
    | 0|   0    |            sequence (48 bits)        | slot (12 bits)|
    +--+--------+--------------------------------------+---------------+

T1 order      tags order as their sequences do; the slot never decides
T2 no tag     0 is no tag: sequences start at 1
T3 sign       every tag is below 2^60, so signed 64-bit comparison is right
"""

from __future__ import annotations

from .jit import rule

SLOT_LIMIT = 4096
"""Slot indices are below this (12 bits of a tag)."""

SEQUENCE_LIMIT = 2**48
"""Sequences are below this; at a thousand saves a second it lasts 8,900 years."""

NO_TAG = 0
NO_SLOT = -1

PAGE_BYTES = 4096
"""Alignment of everything on the medium and in staging: the largest logical block that O_DIRECT asks for."""

SLOTS_PER_WORD = 62
"""Slots tracked in one word of a slot set; a whole set stays a non-negative signed word."""

# How a save ends (glossary), and the two answers of a publish attempt that are not an end.
PENDING = 0
PUBLISHED = 1
SUPERSEDED = 2
SKIPPED = 3
FAILED = 4
LOOK_AGAIN = 5

# How far the mark "something was acknowledged" has come.
MARK_ABSENT = 0
MARK_DURABLE = 1
MARK_UNDER_WAY = 2

# What the driver reports back to a program about the step it was asked for.
DONE = 0
BROKEN = 1
OVERTAKEN = 2
REFUSED = 3


# --- tags ------------------------------------------------------------------------------------------------------------


@rule
def tag_of(sequence: int, slot: int) -> int:
    """Pack a sequence and a slot index into one word."""
    return sequence * SLOT_LIMIT + slot


@rule
def sequence_of(tag: int) -> int:
    """The sequence in a tag; 0 in no tag."""
    return tag // SLOT_LIMIT


@rule
def slot_of(tag: int) -> int:
    """The slot index in a tag."""
    return tag % SLOT_LIMIT


@rule
def sequence_fits(sequence: int) -> bool:
    """Whether a sequence may still be given out, refused long before anything could wrap."""
    return 1 <= sequence < SEQUENCE_LIMIT


# --- publishing ------------------------------------------------------------------------------------------------------


@rule
def may_publish(seen: int, mine: int) -> bool:
    """Whether the compare-and-swap may be tried: only over an older tag (promise `monotone`)."""
    return seen < mine


@rule
def publish_outcome(seen: int, found: int, mine: int) -> int:
    """What a compare-and-swap of the root from `seen` to `mine`, which found `found`, means.

    PUBLISHED: it was swapped. LOOK_AGAIN: somebody older moved it, try from there. SUPERSEDED: somebody newer did.
    The whole word is compared: an address or a slot alone comes back with another checkpoint in it (ABA), which is
    how the published algorithm's listing lets an old save replace a newer one (Strati et al., ASPLOS'25, listing 1).
    """
    if found == seen:
        return PUBLISHED
    if found < mine:
        return LOOK_AGAIN
    return SUPERSEDED


@rule
def tag_displaced(outcome: int, seen: int, mine: int) -> int:
    """The tag that a finished publish leaves over: the one it replaced, or its own when it was superseded."""
    if outcome == PUBLISHED:
        return seen
    return mine


@rule
def keeps_offered(held: int, offered: int) -> bool:
    """Whether a cell of kept tags takes the offered tag and passes on the one it held."""
    return held < offered


@rule
def is_overtaken(oldest_kept: int, mine: int) -> bool:
    """Whether enough newer checkpoints are published that this save would be released at once."""
    return oldest_kept > mine


@rule
def outcome_of(status: int) -> int:
    """How a save ends whose payload was not written to the end."""
    if status == OVERTAKEN:
        return SUPERSEDED
    if status == REFUSED:
        return SKIPPED
    return FAILED


# --- slot sets -------------------------------------------------------------------------------------------------------


@rule
def word_of_slot(slot: int) -> int:
    """Which word of a slot set holds this slot."""
    return slot // SLOTS_PER_WORD


@rule
def mask_of_slot(slot: int) -> int:
    """The bit of this slot within its word."""
    mask: int = 2 ** (slot % SLOTS_PER_WORD)
    return mask


@rule
def lowest_bit(mask: int) -> int:
    """Index of the lowest set bit of a non-zero mask."""
    index = 0
    while mask % 2 == 0:
        mask = mask // 2
        index += 1
    return index


@rule
def words_for(slot_count: int) -> int:
    """How many words a slot set of this many slots takes."""
    return (slot_count + SLOTS_PER_WORD - 1) // SLOTS_PER_WORD


# --- geometry (all bytes) --------------------------------------------------------------------------------------------


@rule
def align_up(count: int) -> int:
    """Round a byte count up to whole pages."""
    return (count + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES


@rule
def chunk_count(payload_bytes: int, chunk_bytes: int) -> int:
    """Chunks that a payload is written in; the last one may be short."""
    return (payload_bytes + chunk_bytes - 1) // chunk_bytes


@rule
def chunk_length(payload_bytes: int, chunk_bytes: int, index: int) -> int:
    """Bytes of payload in chunk `index`."""
    return min(chunk_bytes, payload_bytes - index * chunk_bytes)


@rule
def record_area_bytes(fixed_bytes: int, digest_bytes: int, meta_bytes: int, chunks: int) -> int:
    """Bytes in front of a slot's payload: the record's fixed part, its meta, one digest a chunk, in whole pages."""
    return align_up(fixed_bytes + meta_bytes + digest_bytes * chunks)


@rule
def chunk_offset(area_bytes: int, chunk_bytes: int, index: int) -> int:
    """Where chunk `index` begins in the slot file."""
    return area_bytes + index * chunk_bytes


@rule
def slot_file_bytes(area_bytes: int, slot_bytes: int) -> int:
    """Size of a slot file: record area, then the payload's room, both in whole pages."""
    return area_bytes + align_up(slot_bytes)


# --- recovery --------------------------------------------------------------------------------------------------------


@rule
def newer_candidate(best: int, candidate: int) -> int:
    """One step of the scan for the newest: the later of two tags."""
    return max(best, candidate)


@rule
def next_sequence(highest: int, seen: int) -> int:
    """The highest sequence known so far; counting goes on above every record seen."""
    return max(highest, seen)
