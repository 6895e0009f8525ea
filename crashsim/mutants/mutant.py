"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..bounds import Bounds

EQUIVALENT = ""
SLOT_ONLY = "slot-only"

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Mutant:
    """One broken protocol: what was changed, what that breaks, and what it takes to see it.

    `unless` names media on which the change is none. `published` marks those that a published system shipped.
    """

    name: str
    says: str
    trusted: str
    ignored: str
    save: Edits = ()
    survey: Edits = ()
    make_ready: Edits = ()
    compare_swap: str = ""
    bounds: Bounds = field(default=Bounds(saves=3))
    why: str = ""
    unless: tuple[str, ...] = ()
    published: bool = False
