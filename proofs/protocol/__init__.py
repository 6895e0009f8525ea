"""The protocol, as one transition system: the state, every step that changes it, and what must always be true.

Any number of slots, savers and saves; any length of the row that is kept; any number of crashes, each a *kill* (the
cache is left) or a *power loss* (only the medium is). The modules follow `core/save.py` and `core/recover.py` line by
line; read them in this order:

    state        what there is                                       VARIABLES
    saving       a save, up to the acknowledgement                   Next, part by part
    marking      the mark, once in a store's life
    publishing   the root, the row, the release
    recovering   what happens before a slot is handed out
    world        writing back, tearing, kill, power loss
    theorems     what a user is promised                             THEOREMS
    invariant    what is true at every moment, so that they hold     Inv
    kept, saves, store, words     its clauses

Slots hold payloads that are named by the save they are from. Digests are ignored, but for the variant `one-persist`.
"""

from __future__ import annotations

from . import marking, publishing, recovering, saving, world
from .state import ACTIONS, Action, Variant

STEPS: tuple[Action, ...] = tuple(
    action
    for module in (saving, marking, publishing, recovering, world)
    for action in ACTIONS
    if action.take.__module__ == module.__name__
)
"""Every step: a save's, recovery's, the world's."""


def steps_of(variant: Variant) -> tuple[Action, ...]:
    """The steps that a variant of the protocol has."""
    return tuple(
        action
        for action in STEPS
        if (not action.only or action.only in variant) and (not action.without or action.without not in variant)
    )
