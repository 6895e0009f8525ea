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

    `unless` names media on which the change is none. `published` marks those that a published system shipped. Without
    `writers_persist`, a writer thread leaves what it stored to the saver's persist.
    """

    name: str
    says: str
    trusted: str
    ignored: str
    save: Edits = ()
    survey: Edits = ()
    make_ready: Edits = ()
    compare_swap: str = ""
    writers_persist: bool = True
    bounds: Bounds = field(default=Bounds(saves=3))
    why: str = ""
    unless: tuple[str, ...] = ()
    published: bool = False

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways of recovering that it is judged by: with one persist a save, only the digests make recovery right."""
        return ("trusted",) if self.bounds.one_persist else ("trusted", "ignored")

    def breaks(self, way: str) -> str:
        """The promise that it breaks on an ordinary file system, recovering in this way."""
        return self.trusted if way == "trusted" else self.ignored
