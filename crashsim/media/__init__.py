"""Simulated media, each one small module with its exact rules. Trusted; pinned by litmus tests.

    strict           everything becomes durable in the order in which it was issued
    page-cache       ordinary files, with no more order than POSIX gives
    ext4             ordinary files on ext4: a journal for names, sizes late, zeros for what is not there yet
    block            a disk with a volatile cache, written to past the page cache
    mmap             a file mapped into memory, and msync
    pmem             persistent memory: cache lines, write-backs, fences of each thread
    pmem-eadr        persistent memory whose caches survive
    failing-fsync    a page cache whose persists fail and which then forgets
    lying-disk       a page cache over a disk whose persists lie, within a budget

A medium is *weaker* than another, ⊒, when it allows every image the other allows, whatever the program:

    programs on files      strict ⊑ ext4 ⊑ page-cache ⊑ failing-fsync, lying-disk
    stores to memory       strict ⊑ pmem-eadr ⊑ pmem,   strict ⊑ mmap
    a store's own writes   strict ⊑ block ⊑ page-cache,   ext4 = mmap = page-cache,   strict ⊑ pmem-eadr ⊑ pmem

What programs do is written as `calls`, cut into micro-operations by `files`, `memory` and `sectors`, and goes wrong as
`errors` says.
"""

from __future__ import annotations

from ..medium import Rules
from .block import Block
from .ext4 import Ext4
from .failing_fsync import FailingFsync
from .lying_disk import LyingDisk
from .mmap import Mmap
from .page_cache import PageCache
from .pmem import Pmem
from .pmem_eadr import PmemEadr
from .strict import Strict

MEDIA: dict[str, type[Rules]] = {
    each.name: each for each in (PageCache, Strict, Ext4, Block, Mmap, Pmem, PmemEadr, FailingFsync, LyingDisk)
}
"""Every medium by the name it has on the command line."""
