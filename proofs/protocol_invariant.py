"""What always holds in the protocol: one inductive invariant, clause by clause, from which the theorems follow.

It holds of a new store, and every step keeps it; z3 shows both for any number of slots and savers. A clause is there
because a theorem or another clause needs it, and in the end all rest on this:

    `acknowledged` is the floor. No record below it matters, and every record from there up is whole, on the medium too
"""

from __future__ import annotations

from . import protocol_invariant_saves as saves
from . import protocol_invariant_store as store
from .protocol_words import Clause

CLAUSES: dict[str, Clause] = {
    clause.__name__.replace("_", "-"): clause
    for clause in (
        store.words_are_in_range,
        store.medium_is_whole_from_the_floor_up,
        store.cache_is_whole_from_the_floor_up,
        store.witness_is_durable,
        store.medium_lags_the_cache,
        store.no_two_records_share_a_sequence,
        store.counter_is_above_all_records,
        store.no_saves_unless_running,
        store.surveyed_slots_are_written_again,
        store.root_is_the_root_slot,
        store.free_and_kept_are_below,
        saves.own_slot_is_owned,
        saves.leftover_is_carried,
        saves.sequences_differ,
        saves.own_slot_is_as_far_as_the_save,
        saves.seen_is_not_ahead,
        saves.witness_is_the_newest,
    )
}
