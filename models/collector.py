"""Python's cycle collector, held off while very many small objects are made that all stay.

A state of a hundred thousand tensors makes a million objects in one go; the collector would look through all of them
again and again, and take three quarters of the time, to find no cycle.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_was_enabled = False


@contextmanager
def without_collecting() -> Iterator[None]:
    """Hold the collector off; may be nested, and used by several threads."""
    global _inside, _was_enabled
    with _lock:
        if _inside == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _was_enabled:
                gc.enable()
