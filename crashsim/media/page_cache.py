"""Ordinary files behind a page cache: BufferedFile, mapped files with msync, and direct writes. Trusted.

    write(place)      lands in the cache; its page may be written back at any later moment, or never
    persist(file)     on return, every place of that file holds at least what was written before the call
    crash             any set of outstanding writes may be on the medium, except that of two writes to one place the
                      later one implies the earlier: a page is overwritten in place, so only the last one there shows
    failed persist    the pages are marked clean: they stay readable, no later persist writes them, and whether they
                      reached the medium is open (ext4 and xfs; Rebello et al., ATC'20)

Nothing orders two different places, not even within one write call, and nothing orders two files. A persist of one file
says nothing about another. The places here are 4 KiB pages of payload and the sectors of a record's page, so a torn
record is an ordinary image: one of its places new, the other old.

Direct writes behind a volatile disk cache have the same images: a persist drains the whole device there, which is more.
"""

from __future__ import annotations

from ..medium import Operation, Persist, State


class PageCache:
    """See the rules above."""

    name = "page_cache"

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Only within one place."""
        return earlier.place == later.place

    def forces(self, persist: Persist, operation: Operation, file: int) -> bool:
        """The whole file, whoever wrote it, except pages that an earlier failure marked clean."""
        return file == persist.file and not operation.forgotten

    def forgets(self, persist: Persist, operation: Operation, file: int) -> bool:
        """Every page it should have covered."""
        return file == persist.file

    def canonical(self, state: State) -> State:
        """All that matters of a place is which contents it may have, which one is read, and whether that one is dirty.

        So the writes before the last one are a set, without what is there anyway, and a write that leaves no doubt
        is none.
        """
        writes: dict[int, list[Operation]] = {}
        for operation in state.outstanding:
            writes.setdefault(operation.place, []).append(operation._replace(thread=0))
        kept: list[Operation] = []
        for place in sorted(writes):
            last = writes[place][-1]
            before = {each.content for each in writes[place]} - {state.base[place], last.content}
            if before or last.content != state.base[place]:
                kept += [Operation(place, content, 0, last.forgotten) for content in sorted(before)]
                kept.append(last)
        return State(state.base, tuple(kept))
