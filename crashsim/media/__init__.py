"""Simulated media, each one small module with its exact rules. Trusted; pinned by litmus tests.

    strict        writes become durable in the order they were issued; an image is a prefix
    page_cache    ordinary files: any outstanding page may or may not be there, a persist covers its whole file

A medium is *weaker* than another when it allows every image the other allows: page_cache is weaker than strict.
"""

from __future__ import annotations

from ..medium import Rules
from .page_cache import PageCache
from .strict import Strict

MEDIA: dict[str, type[Rules]] = {"page_cache": PageCache, "strict": Strict}
"""Every medium by the name it has on the command line."""
