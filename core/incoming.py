"""What callers hand in, checked and turned into one-dimensional byte arrays without copying.

`save` takes one or many bytes-like objects or C-contiguous numpy arrays. A list or tuple has a known total, which is checked
before anything is written; an iterator is consumed as it comes. Everything else is refused here, in one line, before the
save begins.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_bytes(piece: Any) -> NDArray[np.uint8]:
    """A flat uint8 view of one buffer. Raises TypeError, in one line, for what has no bytes or is not contiguous."""
    if isinstance(piece, np.ma.MaskedArray):
        raise TypeError("cannot save a masked array: save its data and its mask")
    if isinstance(piece, np.ndarray):
        array = np.asarray(piece)
        if array.dtype.hasobject:
            raise TypeError(f"cannot save an array of dtype {array.dtype}: it holds Python objects, not bytes")
        if not array.flags.c_contiguous:
            raise TypeError("cannot save an array that is not C-contiguous: pass numpy.ascontiguousarray(array)")
        return array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
    try:
        view = memoryview(piece)
    except TypeError:
        raise TypeError(f"cannot save a {type(piece).__name__}: give bytes-like objects or numpy arrays") from None
    if not view.c_contiguous:
        raise TypeError("cannot save a buffer that is not contiguous: pass a copy")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


def as_pieces(buffers: Any) -> tuple[Iterator[NDArray[np.uint8]], int | None]:
    """The buffers as byte arrays in order, and their total size where it is known beforehand."""
    if isinstance(buffers, (list, tuple)):
        pieces = [as_bytes(piece) for piece in buffers]
        return iter(pieces), sum(piece.size for piece in pieces)
    if _is_stream(buffers):
        return map(as_bytes, buffers), None
    piece = as_bytes(buffers)
    return iter([piece]), piece.size


def _is_stream(buffers: Any) -> bool:
    """Whether this is many buffers that come one by one, rather than one buffer that can also be iterated over."""
    if isinstance(buffers, (str, Mapping, Set, np.ndarray)) or hasattr(buffers, "dtype"):
        return False
    try:
        memoryview(buffers)
    except TypeError:
        return isinstance(buffers, Iterable)
    return False


def as_target(into: Any, length: int, step: int) -> NDArray[np.uint8]:
    """The front of a caller's memory, as `length` writable bytes. Raises TypeError or ValueError, in one line."""
    try:
        view = memoryview(into)
        if view.readonly or not view.c_contiguous:
            raise TypeError
    except TypeError:
        raise TypeError(
            f"into={type(into).__name__}: give writable, contiguous memory, such as a uint8 array"
        ) from None
    if view.nbytes < length:
        raise ValueError(f"into has {view.nbytes:,} bytes, step {step} needs {length:,}")
    return np.frombuffer(view, np.uint8)[:length] if length else np.empty(0, np.uint8)


def whole_number(name: str, value: Any) -> int:
    """The value as an int. Raises TypeError naming the argument for floats, text, truth values and the like."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: give a whole number") from None


def as_meta(meta: Any, room: int) -> bytes:
    """The bytes of `meta`. Raises TypeError or ValueError, in one line."""
    try:
        content = memoryview(meta).tobytes()
    except TypeError:
        raise TypeError(f"meta={type(meta).__name__}: give bytes") from None
    if len(content) > room:
        raise ValueError(
            f"meta of {len(content)} bytes: this store has room for {room}; larger things go into the payload"
        )
    return content
