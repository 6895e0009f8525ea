"""What can go wrong in the world, one exception class each.

Every message is one line that names the path or the save concerned and says what to do. Mistakes of this package's
own code are `AssertionError`s and never reach for these. Checked by the bad-input tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ticket import Ticket


class StoreError(Exception):
    """Any failure that a store reports."""


class NoStore(StoreError):
    """No store at this path: nothing was ever completed there."""


class StoreExists(StoreError):
    """A store is there already; creating one would destroy it."""


class NotAStore(StoreError):
    """The path exists and is something else than a store."""


class WrongGeometry(StoreError):
    """The store exists and was made with other sizes than those asked for."""


class FormatTooNew(StoreError):
    """The store was written by a later version of the format; it is left untouched."""


class StoreInUse(StoreError):
    """Another writer holds the store."""


class NothingUsable(StoreError):
    """The store once acknowledged a save and holds no whole checkpoint now."""


class Damaged(StoreError):
    """Strict reading met a checkpoint that is not whole."""


class OtherRun(StoreError):
    """A save into a store that holds another run's checkpoints, without restoring from it first."""


class StoreClosed(StoreError):
    """The store is closed, or this process is a fork of the one that opened it."""


class SaveFailed(StoreError):
    """A save did not become durable (promise `loud`).

    `ticket` is set when `Store.save` raises about an *earlier* failure: it belongs to the save just asked for,
    which was started all the same.
    """

    ticket: Ticket | None = None


class SaveSkipped(SaveFailed):
    """The overload policy refused this save; nothing was written for it."""
