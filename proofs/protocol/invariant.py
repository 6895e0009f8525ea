"""What always holds in the protocol: one inductive invariant, clause by clause, from which the theorems follow.

It holds of a new store, and every step keeps it; z3 shows both for any number of slots, savers and cells. A clause is
there because a theorem or another clause needs it, and in the end all rest on this:

    The row is durable, and everything newer than its last checkpoint is whole. What is older may stand for anything.
"""

from __future__ import annotations

from . import kept, saves, store
from .words import Clause

CLAUSES: dict[str, Clause] = {
    clause.__name__.replace("_", "-"): clause
    for clause in (
        store.words_are_in_range,
        store.no_saves_unless_running,
        store.witness_is_durable,
        store.medium_lags_the_cache,
        store.no_two_records_share_a_sequence,
        store.counter_is_above_all_records,
        store.found_is_new_enough,
        store.mark_is_made_before_it_counts,
        kept.row_descends,
        kept.row_is_durable,
        kept.abandoned_is_below,
        kept.row_has_its_slots,
        kept.free_is_below,
        kept.whole_from_the_row_up,
        kept.leftover_is_carried,
        kept.taken_are_held,
        kept.rest_is_older,
        kept.rewritten_is_next,
        kept.emptied_is_empty,
        kept.recovery_is_over,
        saves.own_slot_is_owned,
        saves.sequences_differ,
        saves.sequence_is_in_no_record_yet,
        saves.record_is_as_far_as_the_save,
        saves.payload_is_as_far_as_the_save,
        saves.seen_is_not_ahead,
        saves.seen_is_older,
        saves.witness_is_the_newest,
        saves.one_makes_the_mark,
    )
}
