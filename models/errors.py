"""What can go wrong with training state, one exception class each. All are `StoreError`s, all messages are one line.

StoreError (core)
├── NotPlainData       the state holds something that cannot be written as data; raised before anything is written
├── NotAState          the checkpoint's bytes are not a state that this package wrote
│   └── NotRegistered  … are one, with a value of a type that this program has not registered
├── StateMismatch      the store's state does not fit the objects here; raised before anything is changed
├── NotKept            a checkpoint that was to stay could not be copied out of its slot
└── NotExportable      the form that was asked for has no place for a value
"""

from __future__ import annotations

from lastgood.core import StoreError, Ticket


class NotPlainData(StoreError, TypeError):
    """Part of the state cannot be written as data: the message names the key path, the type and what to do."""


class NotAState(StoreError):
    """The checkpoint is whole, and was not written by `lastgood.models` (or is of a kind it cannot read)."""

    path = ""
    """Where in the state, once that is known; `decode` puts it in front of the message."""


class NotRegistered(NotAState):
    """The state holds a value of the user's own type, and that type is not registered in this program."""


class StateMismatch(StoreError):
    """What the store holds does not fit the objects to restore. The message has the first five keys concerned."""

    problems: tuple[str, ...] = ()
    """All of them, a line each."""


class NotExportable(StoreError):
    """A file of the form that was asked for cannot hold this state, or exists already."""


class NotKept(StoreError):
    """A checkpoint that a retention rule wants could not be copied out of its slot. Training may go on.

    `ticket` is that of the save which the same call has started, if any.
    """

    ticket: Ticket | None = None
