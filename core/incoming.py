"""What `Store.save` accepts, turned into one-dimensional byte arrays without copying.

One or many bytes-like objects or C-contiguous numpy arrays; a list or tuple has a known total, which is checked before
anything is written; any other iterable is consumed as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_bytes(piece: Any) -> NDArray[np.uint8]:
    """A flat uint8 view of one buffer. Raises TypeError, in one line, for what has no bytes or is not contiguous."""
    if isinstance(piece, np.ndarray):
        if piece.dtype.hasobject:
            raise TypeError(f"cannot save an array of dtype {piece.dtype}: it holds Python objects, not bytes")
        if not piece.flags.c_contiguous:
            raise TypeError("cannot save an array that is not C-contiguous: pass numpy.ascontiguousarray(array)")
        return piece.reshape(-1).view(np.uint8) if piece.size else np.empty(0, np.uint8)
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
    if isinstance(buffers, Iterable) and not isinstance(buffers, (bytes, bytearray, memoryview, np.ndarray)):
        return (as_bytes(piece) for piece in buffers), None
    piece = as_bytes(buffers)
    return iter([piece]), piece.size
