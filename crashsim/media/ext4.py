"""ext4 as it is mounted by default: a journal, delayed allocation, no help for replacing files. Trusted.

    create, rename, …,   journaled in the order of the calls, whatever the directory: a crash keeps a prefix of them,
    truncate             each whole
    append               its pages are allocated when they are written back, up to half a minute later, and only then does
                         the size join the journal: it can be missing after everything that came later is there (a file
                         renamed into place, and empty), but what was journaled before the append is no later than it
    the size is early    it is journaled when the write-back of the page begins, and the page counts when that has ended:
                         in between a crash shows zeros, though never stale bytes (dioread_nolock, the default)
    write                over a page in place: ordered with nothing, as in `page-cache`
    fsync                of a file or a directory: its data, its size, its names; and with them all that the journal holds
                         before those, whomever it belongs to
    fdatasync            the same without the names it was given since it was created; writes in place need no journal
    failed persist       pages are marked clean as in `page-cache`, and the journal goes on without them

Not assumed: `auto_da_alloc` (a replaced file is written back early, but nobody waits for it), time stamps, which often
bring more of the journal. Not modelled: parts of a page. A store's slots are preallocated and written in place, so that
its images are those of `page-cache`. A nightly test holds this against a real ext4.
"""

from __future__ import annotations

from ..medium import Operation, Persist, Rules, State, settled_places
from .files import CREATED, CUT, DATA, NAME, NEW_DATA, SIZE

_JOURNALED = (CUT, NAME, CREATED)


class Ext4(Rules):
    """See the rules above."""

    name = "ext4"
    names_follow_files = True

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Within one place; and what is in the journal, before all that joins it later."""
        return earlier.overlaps(later) or (earlier.note in _JOURNALED and later.note in (*_JOURNALED, SIZE))

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """What is the file's own; what the journal has before it follows from the order."""
        if persist.file not in operation.scope or operation.forgotten:
            return False
        return not (persist.data_only and operation.note == NAME)

    def forgets(self, persist: Persist, operation: Operation) -> bool:
        """The pages."""
        return persist.file in operation.scope and operation.note in (DATA, NEW_DATA)

    def canonical(self, state: State) -> State:
        """Place by place."""
        return settled_places(state)
