"""The twins: each takes the place of one rule, step or word of the core, and is wrong in one way worth fearing.

A claim is worth something if the very same contract, over the very same code with one of these in it, is refuted. Most
are the plausible version: what one writes first, what the published algorithm's listing does, or what the rule would be
without its guard. The ledger says which twin belongs to which claim and what it takes the place of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lastgood.core import cells, recover, rules, save, steps
from lastgood.core.jit import rule

# --- tags ------------------------------------------------------------------------------------------------------------


def half_the_slots(sequence: int, slot: int) -> int:
    """A slot field of eleven bits, with slots of twelve."""
    return sequence * 2048 + slot


def forgets_high_slots(tag: int) -> int:
    """A slot field of eleven bits, when unpacking only."""
    return tag % 2048


def slot_first(sequence: int, slot: int) -> int:
    """The slot in the high bits, where it decides the order."""
    return slot * rules.SEQUENCE_LIMIT + sequence


def from_zero(sequence: int) -> bool:
    """Counting from 0, where a tag can be the word that means no tag."""
    return 0 <= sequence < rules.SEQUENCE_LIMIT


def without_limit(sequence: int) -> bool:
    """No upper limit."""
    return sequence >= 1


def one_too_many(sequence: int) -> bool:
    """The limit itself is let through."""
    return 1 <= sequence <= rules.SEQUENCE_LIMIT


# --- publishing ------------------------------------------------------------------------------------------------------


def compares_slots(seen: int, found: int, mine: int) -> int:
    """The address alone is compared, as in the published listing: a recycled slot looks like the one that was seen."""
    if found % rules.SLOT_LIMIT == seen % rules.SLOT_LIMIT:
        return rules.PUBLISHED
    return rules.LOOK_AGAIN if found < mine else rules.SUPERSEDED


def without_guard(seen: int, mine: int) -> bool:
    """The swap may be tried over any tag."""
    return True


def gives_up(seen: int, found: int, mine: int) -> int:
    """Any loss is final, to an older save too."""
    return rules.PUBLISHED if found == seen else rules.SUPERSEDED


def never_gives_up(seen: int, found: int, mine: int) -> int:
    """Any loss is tried again, against a newer save too."""
    return rules.PUBLISHED if found == seen else rules.LOOK_AGAIN


def always_its_own(outcome: int, seen: int, mine: int) -> int:
    """The tag left over is the save's own, though it was just published."""
    return mine


def always_the_seen(outcome: int, seen: int, mine: int) -> int:
    """The tag left over is the one that was seen, though it is still the newest."""
    return seen


def broken_is_skipped(status: int) -> int:
    """A save that failed is counted as one that was refused."""
    return rules.SUPERSEDED if status == rules.OVERTAKEN else rules.SKIPPED


# --- keeping ---------------------------------------------------------------------------------------------------------


@rule
def takes_anything(held: int, offered: int) -> bool:
    """A cell takes what it is offered, older or newer."""
    return True


def keeps_older(held: int, offered: int) -> bool:
    """A cell keeps the older of the two."""
    return held > offered


def overtaken_by_any(oldest_kept: int, mine: int) -> bool:
    """Overtaken as soon as the save is newer than the oldest kept: exactly the wrong way round."""
    return oldest_kept < mine


def overtaken_by_equal(oldest_kept: int, mine: int) -> bool:
    """Overtaken by itself."""
    return oldest_kept >= mine


# --- slot sets -------------------------------------------------------------------------------------------------------


def bit_without_word(slot: int) -> int:
    """The bit of a slot as if there were one word only."""
    return int(2**slot)


def rounds_down(slot_count: int) -> int:
    """As many words as are full."""
    return slot_count // rules.SLOTS_PER_WORD


def highest_bit(mask: int) -> int:
    """The other end of the mask."""
    index = 0
    while mask > 1:
        mask = mask // 2
        index += 1
    return index


# --- geometry --------------------------------------------------------------------------------------------------------


def page_too_much(count: int) -> int:
    """Whole pages are rounded up as well."""
    return count // rules.PAGE_BYTES * rules.PAGE_BYTES + rules.PAGE_BYTES


def never_short(payload_bytes: int, chunk_bytes: int, index: int) -> int:
    """The last chunk as long as the others."""
    return chunk_bytes


def chunk_too_many(payload_bytes: int, chunk_bytes: int) -> int:
    """An empty chunk at the end."""
    return payload_bytes // chunk_bytes + 1


def unaligned_end(area_bytes: int, slot_bytes: int) -> int:
    """Room for the payload to the byte, though its last chunk is written in whole pages."""
    return area_bytes + slot_bytes


def forgets_meta(fixed_bytes: int, digest_bytes: int, meta_bytes: int, chunks: int) -> int:
    """A record area that was measured without the user's bytes."""
    return rules.align_up(fixed_bytes + digest_bytes * chunks)


# --- recovery --------------------------------------------------------------------------------------------------------


def last_one_wins(best: int, candidate: int) -> int:
    """The newest is the last record looked at."""
    return candidate


def first_one_wins(best: int, candidate: int) -> int:
    """The newest is the first record looked at."""
    return best if best != rules.NO_TAG else candidate


def counts_from_last(highest: int, seen: int) -> int:
    """Counting goes on from the last record seen."""
    return seen


def forgets_records(highest: int, seen: int) -> int:
    """Counting goes on from where this process was: nowhere."""
    return highest


def make_ready_unpersisted(*arguments: Any) -> Iterator[int]:
    """Recovery trusts the cache: it writes again what it keeps and does not wait until that is durable."""
    return (step for step in recover_make_ready(*arguments) if step != steps.PERSIST_RECORD)


recover_make_ready = recover.make_ready

# --- saving ----------------------------------------------------------------------------------------------------------


def save_record_unpersisted(*arguments: Any) -> Iterator[int]:
    """A save that acknowledges once its record is written."""
    return (step for step in save_save(*arguments) if step != steps.PERSIST_RECORD)


save_save = save.save


def save_releases_doubt(shared: Any, *arguments: Any) -> Iterator[int]:
    """A slot whose record is in doubt goes back among the free ones."""
    yield from save_save(shared, *arguments)
    shared[cells.FREE] += shared[cells.QUARANTINED]
    shared[cells.QUARANTINED] = 0


FAILED_IS_PUBLISHED = rules.PUBLISHED
"""A failed save ends as if it had been published."""

# --- machine words ---------------------------------------------------------------------------------------------------

PAST_THE_SIGN = 2**51 + 1
"""Sequences to 2^51, whose tag is the first that does not fit into a signed word; up to there all is well."""

SIXTY_FOUR_SLOTS = 64
"""A slot set that uses the sign bit."""

TO_THE_LAST_BYTE = 2**63 - 1
"""Sizes up to the end of the word."""
