"""A file on a disk, mapped into memory, made durable by msync. Trusted.

    store             8 bytes, aligned; visible at once. Its page may be written back at any later moment, as it stands
                      then, and a page that is being written back may tear between sectors. So a sector on the medium
                      holds a prefix of the stores that were made to it, by whomever, and nothing orders two sectors
    msync(pages)      with MS_SYNC, on return: every store to these pages that was made before the call is durable
    fsync             the same for the whole file
    clwb, sfence      nothing at all: they empty a processor's cache into memory that a power loss empties too
    non-temporal      as a store, but ordered with nothing except its own 8 bytes
    munmap, close     nothing
    failed persist    the pages are marked clean, as in `page-cache`

A store keeps no two of its places in one sector, so that its images are those of `page-cache`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..medium import Operation
from .memory import ordered_in_lines
from .page_cache import PageCache


class Mmap(PageCache):
    """See the rules above: msync is a persist of the page cache."""

    name = "mmap"

    def __init__(self, line_of: Callable[[int], int] = lambda place: place) -> None:
        """`line_of(place)` is the sector of 8 bytes; in a store, no two places share a sector."""
        self.line_of = line_of

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        """Within one word; and within one sector, for stores through the cache."""
        return ordered_in_lines(self.line_of, earlier, later)
