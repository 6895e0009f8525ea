"""A disk that says a persist was done, and lies: no later persist brings what it covered. Trusted.

    persist           honest, or a lie: it returns as if all were well, and what it should have forced may be on the medium
                      or not, each page for itself, and for ever: a drained cache that was not, a write lost on its way
    budget            so many lies in all: whoever allows any number can keep nothing
    crash, the rest   as in `page-cache`

Claimed here, with payload digests trusted and one lie: `never-wrong` (what is returned is one save's own bytes: the digests
of a payload that was lost do not fit; an older checkpoint is verified when it is read), `no-reuse`, `no-leak`, `no-harm`,
`bounded`. Not claimed: `newest-survives`, `monotone` and `loud`, since the only record of the newest checkpoint, or the
mark that there ever was one, may be what was lost. With digests ignored nothing about contents is claimed. Lies told to
recovery are followed to the next crash.
"""

from __future__ import annotations

from ..promises import BOUNDED, NEVER_WRONG, NO_HARM, NO_LEAK, NO_REUSE
from .calls import LIE, Program
from .page_cache import PageCache

PERSISTS = ("fsync", "fdatasync")


class LyingDisk(PageCache):
    """See the rules above."""

    name = "lying-disk"
    reports_failure = False
    faults = 1
    promises = (NEVER_WRONG, NO_REUSE, NO_LEAK, NO_HARM, BOUNDED)
    digests = ("trusted",)


def with_lies(program: Program, budget: int) -> list[Program]:
    """The program with every choice of at most so many lies among its persists."""
    told = [program]
    for index, call in enumerate(program):
        if call.name in PERSISTS and not call.outcome:
            lied = call._replace(outcome=LIE)
            told += [
                (*each[:index], lied, *each[index + 1 :])
                for each in told
                if sum(before.outcome == LIE for before in each) < budget
            ]
    return told
