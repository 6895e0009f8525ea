"""A page cache whose persists fail, and which then forgets what it was told. Trusted.

    failed persist    the error is reported once. The pages are marked clean: no later persist writes them, and whether
                      they reached the medium is open (Rebello et al., ATC'20)
    eviction          a clean page may be dropped at any moment, and is read from the medium again: so a process that
                      starts after a crash may read either what was written or what was there before, page by page
    crash, the rest   as in `page-cache`

A page that was evicted after it had reached the medium reads as before and can lose less: not a case of its own. In a
store every place is a page of its own here, and pages are evicted before recovery begins to read.

Claimed here is everything: a failed persist costs its own save, and nothing else. A search allows one fault.
"""

from __future__ import annotations

from itertools import product

from ..medium import State
from .files import DATA, NEW_DATA
from .page_cache import PageCache


class FailingFsync(PageCache):
    """See the rules above."""

    name = "failing-fsync"
    faults = 1

    def evictions(self, state: State) -> list[State]:
        """Every way in which clean pages that hold something else on the medium can have been dropped."""
        last = {each.place: each for each in state.outstanding}
        clean = [each for each in last.values() if each.forgotten and each.note in (DATA, NEW_DATA)]
        found = []
        for read_again in product(*([None, *_instead_of(state, each.place, each.content)] for each in clean)):
            base, dropped = list(state.base), set()
            for operation, content in zip(clean, read_again, strict=True):
                if content is not None:
                    base[operation.place] = content
                    dropped.add(operation.place)
            if dropped:
                left = tuple(each for each in state.outstanding if each.place not in dropped)
                found.append(State(tuple(base), left))
        return found


def _instead_of(state: State, place: int, written: int) -> list[int]:
    """What else than was written last the medium may hold at this place."""
    held = {state.base[place], *(each.content for each in state.outstanding if each.place == place)}
    return sorted(held - {written})
