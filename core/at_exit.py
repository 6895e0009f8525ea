"""Interpreter exit: saves in flight are waited for, and a failure is not lost with the process (promise `loud`).

A store left open at exit is closed here. When one of its saves failed, the reason goes to standard error and the exit
status is 1: Python offers no way to change the status from an exit handler but `os._exit`, so output is written out
first and handlers registered before this module was imported do not run. `os._exit` called by the user skips all this;
then the promises for a process crash hold.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import Protocol


class Closable(Protocol):
    """Something to close at exit."""

    def close(self) -> None:
        """Wait, report, give everything back."""


_open: set[Closable] = set()
"""Held strongly: a store that went out of scope may still have saves in flight and failures to tell of."""


def watch(store: Closable) -> None:
    """Close this at interpreter exit, if it is still open then."""
    _open.add(store)


def forget(store: Closable) -> None:
    """It was closed in good order."""
    _open.discard(store)


def tell(failure: BaseException) -> None:
    """One line on standard error, unless that is closed, full or absent, as in a daemon: the status must do then."""
    with suppress(Exception):
        sys.stderr.write(f"lastgood: {failure or type(failure).__name__}\n")
        sys.stderr.flush()


@atexit.register
def _close_what_is_open() -> None:
    failed = False
    for store in list(_open):
        try:
            store.close()
        except BaseException as error:  # whatever it is, the other stores are waited for too
            tell(error)
            failed = True
    if failed:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(1)
