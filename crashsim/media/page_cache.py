"""Ordinary files behind a page cache, with no more order than POSIX gives: the portable contract. Trusted.

    write             lands in the cache; each page may be written back at any later moment, or never
    append            the page and the file's new size are two changes: a size without its page shows zeros, a page
                      without its size is not seen
    truncate          the size, and zeros beyond it, at the call
    create, rename    … one change of directory entries each, in one instant
    persist(file)     on return, every page of that file, and its size, hold at least what was written before the call,
                      by whomever; its name is a change to a directory, and takes a persist of that
    crash             any set of outstanding writes may be on the medium, except that of two writes to one place the
                      later one implies the earlier: a page is overwritten in place, so only the last one there shows
    failed persist    the pages are marked clean: they stay readable, no later persist writes them, and whether they
                      reached the medium is open (ext4 and xfs; Rebello et al., ATC'20)

Nothing orders two different places, not even within one write call, and nothing orders two files. A persist of one file
says nothing about another. In a store the places are 4 KiB pages of payload and the sectors of a record's page, so a
torn record is an ordinary image: one of its places new, the other old.
"""

from __future__ import annotations

from ..medium import Operation, Persist, Rules, State, settled_places


class PageCache(Rules):
    """See the rules above."""

    name = "page-cache"

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Only within one place."""
        return earlier.overlaps(later)

    def forces(self, persist: Persist, operation: Operation) -> bool:
        """The whole file, whoever wrote it, except what an earlier failure marked clean."""
        return persist.file in operation.scope and not operation.forgotten

    def forgets(self, persist: Persist, operation: Operation) -> bool:
        """Everything it should have covered."""
        return persist.file in operation.scope

    def canonical(self, state: State) -> State:
        """Place by place."""
        return settled_places(state)
