"""Tags and slots of the core, for people; and whether a store's shared words account for every slot. Trusted."""

from __future__ import annotations

from collections.abc import Sequence

from .core_target import cells, rules
from .store_layout import Layout


def tag_text(tag: int) -> str:
    """A tag for people."""
    if tag == rules.NO_TAG:
        return "nothing"
    return f"checkpoint {rules.sequence_of(tag)} (slot {rules.slot_of(tag)})"


def slots_unaccounted(words: Sequence[int], slots: int, keep: int) -> str:
    """What is wrong when not every slot is in exactly one of free, quarantined and kept; empty when all is well."""
    held = [words[cells.ROOT], *words[cells.KEPT : cells.KEPT + keep - 1]]
    kept = [rules.slot_of(tag) for tag in held if tag != rules.NO_TAG]
    for slot in range(slots):
        word, bit = rules.word_of_slot(slot), rules.mask_of_slot(slot)
        places = kept.count(slot)
        places += words[cells.FREE + word] // bit % 2 + words[cells.QUARANTINED + word] // bit % 2
        if places != 1:
            return f"slot {slot} in {'none' if places == 0 else 'more than one'} of free, quarantined and kept"
    if words[cells.FREE] >= 2**slots or words[cells.QUARANTINED] >= 2**slots:
        return "a slot free or quarantined that does not exist"
    return ""


def kind_of(layout: Layout, place: int) -> str:
    """What lies at a place: a "record", a "payload" or the "mark"."""
    if place == layout.mark:
        return "mark"
    return "record" if place in layout.record_places(place // layout.places_per_slot) else "payload"
