"""ext4 as it is mounted by default: data=ordered, delayed allocation, no help for replacing files. Trusted.

    create, rename, …,   journaled in the order of the calls, whatever the directory: a crash keeps a prefix of them,
    truncate             each whole
    append               its pages are allocated when they are written back, up to half a minute later, and only then does
                         the size join the journal: it can be missing after everything that came later is there (a file
                         renamed into place, and empty), but what was journaled before the append is no later than it
    data=ordered         an appended page is on the medium before the size that shows it: never zeros, never stale
    write                over a page in place: ordered with nothing, as in `page-cache`
    fsync                of a file or a directory: its data, its size, its names; and with them all that the journal holds
                         before those, whomever it belongs to
    fdatasync            the same without the names it was given since it was created; writes in place need no journal
    failed persist       pages are marked clean as in `page-cache`, and the journal goes on without them: a size can
                         become durable over a page that never did, and shows zeros

Not assumed: `auto_da_alloc` (a replaced file is written back early, but nobody waits for it). Not modelled: parts of a
page, the automatic write-back's order in time. A store's slots are preallocated and written in place, so that its
images are those of `page-cache`.
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
        """One place; the journal; an appended page before its size."""
        if earlier.overlaps(later):
            return True
        if later.note not in (*_JOURNALED, SIZE):
            return False
        if earlier.note in _JOURNALED:
            return True
        appended = earlier.note == NEW_DATA and not earlier.forgotten
        return later.note == SIZE and appended and earlier.scope == later.scope

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
