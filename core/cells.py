"""The shared words of one open store, and where each lies in the int64 array `cells`.

     0        1          2        3 .. 4     5 .. 6        7 .. 21
    +------+----------+--------+----------+-------------+------------------+
    | root | sequence | marked | free     | quarantined | kept (keep − 1)  |
    +------+----------+--------+----------+-------------+------------------+

root         newest published tag, NO_TAG before the first
sequence     the last one given out
marked       how far the mark "something was acknowledged" has come: absent, under way by one saver, durable
free         slot set: bit set = slot may be acquired
quarantined  slot set: the slot's record failed to persist, so it may or may not be on the medium
kept         the next newest published tags, newest first

Invariant (promise `no-leak`): at rest every slot is in exactly one of free, quarantined, root + kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROOT = 0
SEQUENCE = 1
MARKED = 2
FREE = 3
QUARANTINED = 5
KEPT = 7
CELL_COUNT = 22

IN_FLIGHT_LIMIT = 64
KEEP_LIMIT = 16

# A save's own words, in its array `mine`.
STATUS = 0
MY_SEQUENCE = 1
MY_SLOT = 2
MY_TAG = 3
OUTCOME = 4
MINE_COUNT = 5


def new_cells() -> NDArray[np.int64]:
    """The shared words, all zero: no tag, nothing free."""
    return np.zeros(CELL_COUNT, np.int64)


def new_mine() -> NDArray[np.int64]:
    """One save's own words."""
    return np.zeros(MINE_COUNT, np.int64)
