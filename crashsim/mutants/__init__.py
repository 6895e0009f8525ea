"""Deliberately broken protocols, each one small change to the real program. The explorer must find every one of them.

A mutant is text replaced in the source of `save`, `survey` or `make_ready` (each old text must occur exactly once, so a
mutant cannot quietly stop fitting), or another compare-and-swap. With it stands the promise it breaks, with payload
digests trusted and with them ignored; EQUIVALENT says that within the bounds none can break, which an exhaustive search
shows, and `why` says why. `bounds` are the ones it takes to see it.

They are data: this module imports nothing of the core.
"""

from __future__ import annotations

from .failing import FAILING
from .mutant import EQUIVALENT, SLOT_ONLY, Edits, Mutant
from .order import ORDER
from .recovering import RECOVERING
from .sharing import SHARING

MUTANTS: dict[str, Mutant] = {each.name: each for each in (*ORDER, *SHARING, *FAILING, *RECOVERING)}
"""Every mutant by its name."""

__all__ = ["EQUIVALENT", "MUTANTS", "SLOT_ONLY", "Edits", "Mutant"]
