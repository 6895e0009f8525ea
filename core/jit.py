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
    compiled: Function = numba.njit(nogil=True, cache=True)(function)
    return compiled
