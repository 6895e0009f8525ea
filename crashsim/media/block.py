"""A disk written to past the page cache (O_DIRECT, raw devices), with a volatile cache of its own. Trusted.

    write             one micro-operation an atom: 512 or 4096 bytes, which the disk never tears. Unordered, also within
                      one request, so a large write tears into any set of its atoms
    in flight         a request is submitted and completes later; from its submission on its atoms may be durable
    persist (FLUSH)   on return, every write of the whole device that had *completed* before it is durable, whatever file
                      it belongs to; one still in flight is not
    FUA               a write that is durable itself when it completes, and says nothing of others
    crash             any set of outstanding atoms, except that of two writes to one atom the later implies the earlier
    failed persist    what it should have forced may be lost for good, whoever wrote it: the disk drops what it cannot
                      write, tells whoever happened to ask, and a later persist succeeds without it

A file system's metadata is not modelled here: slots are preallocated, and their sizes persisted when they are made.
"""

from __future__ import annotations

from ..medium import NO_FILE, Operation, Persist, Rules, State, settled_places

IN_FLIGHT = 1


class Block(Rules):
    """See the rules above."""

    name = "block"

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Only within one atom."""
        return earlier.overlaps(later)

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """Everything that had completed, on the whole device; a processor's fence drains no disk."""
        return persist.file != NO_FILE and operation.note != IN_FLIGHT and not operation.forgotten

    def forgets(self, persist: Persist, operation: Operation) -> bool:
        """Everything that it should have forced."""
        return operation.note != IN_FLIGHT

    def canonical(self, state: State) -> State:
        """Place by place."""
        return settled_places(state)
