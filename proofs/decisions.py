"""Contracts on tags, publishing and keeping: each function calls the rules of the core and states what must follow.

CrossHair executes these symbolically and must answer "Confirmed over all paths." for every `post:` line. The functions
under test are the core's own (`rules.…`, looked up at each call, so that a weakened twin can take a rule's place);
what stands here is only how a save uses them, in the order in which it does.

A shared word is modelled at the one moment when a save touches it: `swap` is a compare-and-swap that finds `root`.
What other saves do between two such moments is any change at all, so a single step says it for every schedule.
"""

from __future__ import annotations

from lastgood.core import rules

# --- tags ------------------------------------------------------------------------------------------------------------


def tag_round_trip(sequence: int, slot: int) -> tuple[int, int]:
    """A tag gives back the sequence and the slot that were packed.

    pre: 0 <= sequence
    pre: 0 <= slot < rules.SLOT_LIMIT
    post: __return__ == (sequence, slot)
    """
    tag = rules.tag_of(sequence, slot)
    return rules.sequence_of(tag), rules.slot_of(tag)


def tag_covers_words(tag: int) -> int:
    """Every non-negative word is the tag of its own sequence and slot: nothing is lost in unpacking.

    pre: 0 <= tag
    post: __return__ == tag
    post: 0 <= rules.slot_of(tag) < rules.SLOT_LIMIT
    """
    return rules.tag_of(rules.sequence_of(tag), rules.slot_of(tag))


def tag_order(older: int, older_slot: int, newer: int, newer_slot: int) -> tuple[int, int]:
    """Tags order as their sequences do; the slot never decides.

    pre: 0 <= older < newer
    pre: 0 <= older_slot < rules.SLOT_LIMIT
    pre: 0 <= newer_slot < rules.SLOT_LIMIT
    post: __return__[0] < __return__[1]
    """
    return rules.tag_of(older, older_slot), rules.tag_of(newer, newer_slot)


def tag_is_not_no_tag(sequence: int, slot: int) -> int:
    """A save's tag is never the word that means "no tag", which is older than every one of them.

    pre: rules.sequence_fits(sequence)
    pre: 0 <= slot < rules.SLOT_LIMIT
    post: __return__ > rules.NO_TAG
    """
    return rules.tag_of(sequence, slot)


def accepted_sequence_fits(sequence: int, slot: int) -> int:
    """The tag of every accepted sequence is below 2^60, so signed 64-bit order is its order.

    pre: rules.sequence_fits(sequence)
    pre: 0 <= slot < rules.SLOT_LIMIT
    post: 0 < __return__ < 2**60
    """
    return rules.tag_of(sequence, slot)


def sequences_run_out_late(sequence: int) -> bool:
    """Every sequence from 1 up to the limit is accepted, and none beyond it.

    post: __return__ == (1 <= sequence < 2**48)
    """
    return rules.sequence_fits(sequence)


# --- publishing ------------------------------------------------------------------------------------------------------


def swap(root: int, seen: int, mine: int) -> tuple[int, int]:
    """One try to publish: the outcome, and what the root holds after the compare-and-swap found `root` in it."""
    outcome = rules.publish_outcome(seen, root, mine)
    return outcome, mine if root == seen else root


def publish_tells_the_truth(root: int, seen: int, mine: int) -> tuple[int, int]:
    """PUBLISHED is answered exactly when the root was swapped; otherwise the root is as it was.

    pre: 0 <= root and 0 <= seen and 0 < mine
    pre: rules.may_publish(seen, mine)
    post: (__return__[0] == rules.PUBLISHED) == (root == seen)
    post: __return__[1] == (mine if __return__[0] == rules.PUBLISHED else root)
    post: __return__[0] in (rules.PUBLISHED, rules.LOOK_AGAIN, rules.SUPERSEDED)
    """
    return swap(root, seen, mine)


def publish_over_older_only(seen: int, mine: int) -> bool:
    """The swap is tried over an older tag only: not over a newer one, and not over its own.

    pre: 0 <= seen and 0 < mine
    post: __return__ == (seen < mine)
    """
    return rules.may_publish(seen, mine)


def publish_never_goes_back(root: int, seen: int, mine: int) -> int:
    """No try to publish, whatever it finds, puts an older tag into the root.

    pre: 0 <= root and 0 <= seen and 0 < mine
    post: __return__ >= root
    """
    if not rules.may_publish(seen, mine):
        return root
    return swap(root, seen, mine)[1]


def publish_ends_at_least_as_new(root: int, seen: int, mine: int) -> tuple[int, int]:
    """A save that stops trying leaves in the root a tag at least as new as its own.

    pre: 0 <= root and 0 <= seen and 0 < mine
    pre: root >= seen
    post: __return__[0] == rules.LOOK_AGAIN or __return__[1] >= mine
    """
    if not rules.may_publish(seen, mine):
        return rules.SUPERSEDED, root
    return swap(root, seen, mine)


def publish_looks_again_when_newer(root: int, seen: int, mine: int) -> tuple[int, bool]:
    """The loser of a race looks again exactly when it is newer than what it found, and may then publish over that.

    pre: 0 <= root and 0 <= seen and 0 < mine
    pre: rules.may_publish(seen, mine)
    post: (__return__[0] == rules.LOOK_AGAIN) == (root != seen and root < mine)
    post: __return__[0] != rules.LOOK_AGAIN or __return__[1]
    """
    return swap(root, seen, mine)[0], rules.may_publish(root, mine)


def publish_to_the_end(seen: int, mine: int, found: list[int]) -> tuple[int, int, int]:
    """Against up to four rivals the loop ends, its root never goes back, and the loser is never the newer one.

    `found` is what each try finds in the root, oldest first, as rivals move it forward; the last try finds what the
    save saw last. Answers the outcome, the tag left over and the root.

    pre: 0 <= seen < mine
    pre: 1 <= len(found) <= 4
    pre: found[0] >= seen and all(found[i] < found[i + 1] for i in range(len(found) - 1))
    pre: mine not in found
    post: __return__[0] in (rules.PUBLISHED, rules.SUPERSEDED)
    post: __return__[2] >= mine
    post: __return__[1] < __return__[2]
    post: (__return__[0] == rules.PUBLISHED) == (__return__[2] == mine)
    """
    outcome = rules.LOOK_AGAIN
    for root in [*found, found[-1]]:
        outcome, after = swap(root, seen, mine)
        if outcome != rules.LOOK_AGAIN:
            return outcome, rules.tag_displaced(outcome, seen, mine), after
        seen = root
    return outcome, mine, seen


def one_tag_is_left_over(root: int, seen: int, mine: int) -> tuple[int, int, int]:
    """A finished publish leaves exactly one of the two tags over, and never the one that the root now holds.

    pre: 0 <= root and 0 <= seen and 0 < mine
    pre: root != mine
    pre: rules.may_publish(seen, mine)
    post: __return__[0] != rules.PUBLISHED or __return__[1:] == (root, mine)
    post: __return__[0] != rules.SUPERSEDED or __return__[1:] == (mine, root)
    post: __return__[0] == rules.LOOK_AGAIN or __return__[1] < __return__[2]
    """
    outcome, after = swap(root, seen, mine)
    return outcome, rules.tag_displaced(outcome, seen, mine), after


def released_slot_is_the_displaced_one(sequence: int, slot: int, older: int, older_slot: int) -> tuple[int, int]:
    """A save that published releases the slot of the tag it displaced; a superseded one releases its own.

    pre: 0 <= older < sequence
    pre: 0 <= slot < rules.SLOT_LIMIT and 0 <= older_slot < rules.SLOT_LIMIT
    post: __return__ == (older_slot, slot)
    """
    mine = rules.tag_of(sequence, slot)
    seen = rules.tag_of(older, older_slot)
    return (
        rules.slot_of(rules.tag_displaced(rules.PUBLISHED, seen, mine)),
        rules.slot_of(rules.tag_displaced(rules.SUPERSEDED, seen, mine)),
    )


def unfinished_save_is_not_published(status: int) -> int:
    """A save whose payload was not written to the end is superseded, skipped or failed; a broken one failed.

    post: __return__ in (rules.SUPERSEDED, rules.SKIPPED, rules.FAILED)
    post: status != rules.BROKEN or __return__ == rules.FAILED
    post: (__return__ == rules.SUPERSEDED) == (status == rules.OVERTAKEN)
    post: (__return__ == rules.SKIPPED) == (status == rules.REFUSED)
    """
    return rules.outcome_of(status)


# --- keeping ---------------------------------------------------------------------------------------------------------


def cell_keeps_the_larger(held: int, offered: int) -> tuple[int, int]:
    """A cell of kept tags keeps the newer of two and passes on the older; it is left alone when both are the same.

    post: __return__ == (max(held, offered), min(held, offered))
    post: held != offered or not rules.keeps_offered(held, offered)
    """
    if rules.keeps_offered(held, offered):
        return offered, held
    return held, offered


def row_keeps_the_newest(kept: list[int], offered: int) -> tuple[list[int], int]:
    """A row of up to four kept tags, newest first, stays in order, and what falls out is the oldest of all.

    pre: len(kept) <= 4
    pre: all(kept[i] >= kept[i + 1] for i in range(len(kept) - 1))
    post: all(__return__[0][i] >= __return__[0][i + 1] for i in range(len(__return__[0]) - 1))
    post: all(tag >= __return__[1] for tag in __return__[0])
    post: sum(__return__[0]) + __return__[1] == sum(kept) + offered
    """
    row = []
    passed = offered
    for held in kept:
        if rules.keeps_offered(held, passed):
            held, passed = passed, held
        row.append(held)
    return row, passed


def overtaken_falls_out(kept: list[int], mine: int) -> int:
    """A save told that it is overtaken would have fallen out at once: nothing worth keeping is given up early.

    pre: 1 <= len(kept) <= 3
    pre: all(kept[i] > kept[i + 1] for i in range(len(kept) - 1))
    pre: rules.is_overtaken(kept[-1], mine)
    post: __return__ == mine
    """
    return row_keeps_the_newest(kept, mine)[1]


def newest_is_not_overtaken(oldest_kept: int, mine: int) -> bool:
    """A save newer than the oldest kept checkpoint is never told that it is overtaken.

    pre: mine >= oldest_kept
    post: not __return__
    """
    return rules.is_overtaken(oldest_kept, mine)


# --- slot sets -------------------------------------------------------------------------------------------------------


def slot_has_one_bit(slot: int) -> tuple[int, int]:
    """A slot's word and bit give the slot back, and the bit keeps the word a non-negative signed one.

    pre: 0 <= slot < rules.SLOT_LIMIT
    post: __return__[0] * rules.SLOTS_PER_WORD + rules.lowest_bit(__return__[1]) == slot
    post: 0 < __return__[1] < 2**62
    """
    return rules.word_of_slot(slot), rules.mask_of_slot(slot)


def slot_set_has_room(slot_count: int, slot: int) -> int:
    """A set made for so many slots has the word of each of them, and not a word more.

    pre: 0 <= slot < slot_count
    post: rules.word_of_slot(slot) < __return__
    post: (__return__ - 1) * rules.SLOTS_PER_WORD < slot_count
    """
    return rules.words_for(slot_count)


def lowest_bit_is_set(mask: int) -> int:
    """The lowest bit of a mask is set, and none below it is.

    pre: 0 < mask < 2**24
    post: mask // 2**__return__ % 2 == 1
    post: mask % 2**__return__ == 0
    """
    return rules.lowest_bit(mask)
