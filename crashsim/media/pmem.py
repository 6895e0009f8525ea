"""Persistent memory of an x86 machine, mapped with DAX (Px86; Raad et al., POPL'20). Trusted.

    store             8 bytes, aligned, are never torn; wider ones are several. A dirty line may be written back at any
                      moment. Stores to one cache line become durable in the order in which they were made; different
                      lines in any order
    clwb(line)        begins to write back what was stored to the line so far, by any thread. Nothing is known yet
    sfence            of the *same thread*: what its clwb covered is durable. Another thread's fence says nothing
    non-temporal      a store past the cache: ordered with nothing but its own 8 bytes, durable after the next sfence of
                      the thread that made it; clwb does not reach it
    persist(file)     clwb of every line of the file, then sfence, by one thread
    crash             any set of outstanding stores in which every line has a prefix of its stores
    failed persist    fences do not fail: one that is made to fail has done nothing, and can be done again

In a store the writers copy payload by non-temporal stores, and each fences what it stored itself before it is joined
(`persist_per_thread`); records and the mark are ordinary stores, persisted by the saver.
"""

from __future__ import annotations

from collections.abc import Callable

from ..medium import Operation, Persist, Rules, State, settled_places
from .memory import NON_TEMPORAL, ordered_in_lines

_FIRST_THREAD = 1
"""The bit of `note` that says that thread 0 has written back the line; thread 1 has the next one, and so on."""


class Pmem(Rules):
    """See the rules above."""

    name = "pmem"
    persist_per_thread = True
    payload_note = NON_TEMPORAL

    def __init__(self, line_of: Callable[[int], int] = lambda place: place) -> None:
        """`line_of(place)` is the cache line of 8 bytes; in a store, no two places share a line."""
        self.line_of = line_of

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Within one line, for stores through the cache."""
        return ordered_in_lines(self.line_of, earlier, later)

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """What the persisting thread stored past the cache, and what it has written back or now writes back."""
        if operation.note == NON_TEMPORAL:
            return operation.thread == persist.thread
        return persist.file in operation.scope or bool(operation.note >> _FIRST_THREAD + persist.thread & 1)

    def forgets(self, persist: Persist, operation: Operation) -> bool:
        """Never."""
        return False

    def write_back(self, state: State, line: int, thread: int) -> State:
        """The state after this thread's clwb of a line."""
        bit = 1 << _FIRST_THREAD + thread
        return State(
            state.base,
            tuple(
                each._replace(note=each.note | bit)
                if each.note != NON_TEMPORAL and self.line_of(each.place) == line
                else each
                for each in state.outstanding
            ),
        )

    def canonical(self, state: State) -> State:
        """Place by place; who stored something matters only past the cache."""
        return settled_places(state, _owner)


def _owner(operation: Operation) -> tuple[int, int]:
    return (operation.thread if operation.note == NON_TEMPORAL else 0), operation.note
