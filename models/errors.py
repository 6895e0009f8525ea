"""What can go wrong with training state, one exception class each. All are `StoreError`s, all messages are one line.

StoreError (core)
├── NotPlainData      the state holds something that cannot be written as data; raised before anything is written
├── NotAState         the checkpoint's bytes are not a state that this package wrote
├── StateMismatch     the store's state does not fit the objects here; raised before anything is changed
└── StateTooLarge     the state has outgrown the slots of its store
"""

from __future__ import annotations

from lastgood.core import StoreError


class NotPlainData(StoreError, TypeError):
    """Part of the state cannot be written as data: the message names the key path, the type and what to do."""


class NotAState(StoreError):
    """The checkpoint is whole, and was not written by `lastgood.models` (or is of a kind it cannot read)."""


class StateMismatch(StoreError):
    """What the store holds does not fit the objects to restore; every key concerned is in the one message."""


class StateTooLarge(StoreError):
    """The encoded state is larger than a slot of the store."""
