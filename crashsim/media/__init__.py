"""Simulated media, each one small module with its exact rules. Trusted; pinned by litmus tests.

    strict        everything becomes durable in the order in which it was issued; an image is a prefix
    page-cache    ordinary files: any outstanding page may or may not be there, a persist covers its whole file
    block         a disk with a volatile cache: atoms in any order, a persist covers the whole device
    pmem          persistent memory: cache lines, write-backs and fences of each thread
    pmem-eadr     persistent memory whose caches survive

A medium is *weaker* than another when it allows every image the other allows, whatever the program:

    strict ⊑ block ⊑ page-cache          strict ⊑ pmem-eadr ⊑ pmem
"""

from __future__ import annotations

from ..medium import Rules
from .block import Block
from .page_cache import PageCache
from .pmem import Pmem
from .pmem_eadr import PmemEadr
from .strict import Strict

MEDIA: dict[str, type[Rules]] = {each.name: each for each in (PageCache, Strict, Block, Pmem, PmemEadr)}
"""Every medium by the name it has on the command line."""
