"""Two decorators that say what a function is to the compiler. Trusted.

`@rule`    a decision over plain ints. Stays an ordinary Python function (CrossHair reads it, the explorer calls it) and
           can be called from compiled code.
`@kernel`  array work, compiled without the GIL and cached on disk. With `NUMBA_DISABLE_JIT=1` it stays Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

JIT: bool = not numba.config.DISABLE_JIT


def rule(function: Function) -> Function:
    """Mark a decision: pure, over plain ints, callable interpreted and compiled."""
    register_jitable(function)
    return function


def kernel(function: Function) -> Function:
    """Compile array work: no GIL while it runs, machine code cached beside the source."""
    compiled: Any = numba.njit(nogil=True, cache=True)(function)
    if JIT:
        _distrust_foreign_code(compiled._cache)
    result: Function = compiled
    return result


def _distrust_foreign_code(cache: Any) -> None:
    """Compile again where cached code belongs to this folder under another name.

    The cache lies beside the source and its code imports the package it was compiled in, so a copy of the folder that
    took its `__pycache__` along would fail on its first call.
    """
    load_overload = cache.load_overload

    def load_own(signature: Any, target: Any) -> Any:
        try:
            return load_overload(signature, target)
        except ImportError:
            return None

    cache.load_overload = load_own
