"""How a writer runs: what may differ from one opening of a store to the next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .arena import Arena
from .errors import StoreError, WrongGeometry
from .incoming import whole_number
from .layout import Layout
from .rules import chunk_count

OVERLOAD_POLICIES = ("block", "skip", "replace")
WRITERS_LIMIT = 64
FEWEST_BUFFERS = 2  # one fills while another is written


@dataclass(frozen=True)
class Options:
    """Staging memory (None: one checkpoint), writer threads, overload policy, whether a new run is meant, and how the
    slots are shared between saves in flight and checkpoints kept (None: as before)."""

    staging_bytes: int | None
    writers: int
    overload: str
    new_run: bool
    in_flight: int | None = None
    keep: int | None = None

    def __post_init__(self) -> None:
        """Raise StoreError, in one line, for what makes no sense."""
        if not 1 <= whole_number("writers", self.writers) <= WRITERS_LIMIT:
            raise StoreError(f"writers={self.writers}: give 1 to {WRITERS_LIMIT} threads")
        if self.overload not in OVERLOAD_POLICIES:
            raise StoreError(f"overload={self.overload!r}: choose one of {', '.join(OVERLOAD_POLICIES)}")
        if self.staging_bytes is not None and whole_number("staging_bytes", self.staging_bytes) < 1:
            raise StoreError(f"staging_bytes={self.staging_bytes}: give a size, at least two chunks are used")

    def shares(self, layout: Layout) -> Layout:
        """The layout with its slots shared as asked for. Raises WrongGeometry, in one line, when they do not add up."""
        slots = layout.slot_count
        in_flight, keep = self.in_flight, self.keep
        if in_flight is None and keep is None:
            return layout
        if in_flight is None:
            in_flight = slots - whole_number("keep", keep)
        if keep is None:
            keep = slots - whole_number("in_flight", in_flight)
        if in_flight + keep != slots:
            raise WrongGeometry(
                f"in_flight={in_flight} and keep={keep} in a store of {slots} slots: give one of them, or a sum of {slots}"
            )
        return replace(layout, in_flight=in_flight, keep=keep).checked()

    def buffer_count(self, layout: Layout) -> int:
        """Staging buffers, of one chunk each."""
        wanted = layout.slot_bytes if self.staging_bytes is None else self.staging_bytes
        return max(FEWEST_BUFFERS, chunk_count(wanted, layout.chunk_bytes))

    def arena(self, layout: Layout) -> Arena:
        """Fresh staging memory. Where a save waits for what it needs, a younger one fills a quarter ahead of an older."""
        count = self.buffer_count(layout)
        ahead = max(layout.in_flight, count // 4) if self.overload == "block" else count
        return Arena(layout.chunk_bytes, count, ahead)
