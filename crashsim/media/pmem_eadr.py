"""Persistent memory whose power-fail domain takes in the caches (eADR). Trusted.

    store             durable as soon as it leaves its thread's store buffer, which it does in the order of the program;
                      a fence of that thread waits for it. clwb is never needed
    non-temporal      as without eADR: it may wait in a buffer of its own until the next sfence of its thread
    crash             of each thread's ordinary stores a prefix, of its non-temporal ones any set

Everything else is as in `pmem`, which allows every image that this allows.
"""

from __future__ import annotations

from ..medium import Operation, Persist, State, settled_places
from .memory import NON_TEMPORAL
from .pmem import Pmem


class PmemEadr(Pmem):
    """See the rules above."""

    name = "pmem-eadr"

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Within one thread too, for stores through the cache."""
        if super().ordered(earlier, later):
            return True
        through_cache = NON_TEMPORAL not in (earlier.note, later.note)
        return through_cache and earlier.thread == later.thread

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """Everything that the fencing thread stored; and what it has seen and written back of others."""
        return operation.thread == persist.thread or super().forces(persist, operation)

    def canonical(self, state: State) -> State:
        """Thread by thread, without stores of what the stores before them leave there anyway."""
        past_cache = tuple(each for each in state.outstanding if each.note == NON_TEMPORAL)
        through_cache = [each for each in state.outstanding if each.note != NON_TEMPORAL]
        thread_of = {each.place: each.thread for each in through_cache}
        shared = any(thread_of[each.place] != each.thread for each in through_cache)
        if shared or not thread_of.keys().isdisjoint(each.place for each in past_cache):
            return state
        content = list(state.base)
        kept = []
        for operation in sorted(through_cache, key=lambda each: each.thread):
            if content[operation.place] != operation.content:
                content[operation.place] = operation.content
                kept.append(operation._replace(note=0))
        settled = settled_places(State(state.base, past_cache), lambda each: (each.thread, each.note))
        return State(state.base, (*settled.outstanding, *kept))
