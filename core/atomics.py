"""Sequentially consistent operations on cells of an int64 array. Trusted: numba, LLVM and the processor.

All shared words of the core (root, sequence, slot sets, kept tags) are touched through the three at the end and nothing else
once a second thread exists. They are LLVM `load atomic`, `cmpxchg` and `atomicrmw add`, all seq_cst: on x86-64 a plain
load, `lock cmpxchg`, `lock xadd`. They can be called from interpreted and from compiled code.

With `NUMBA_DISABLE_JIT=1` each has a twin that holds one lock per process; that run is for coverage and for reading
traces, not for speed.
"""

from __future__ import annotations

import threading
from typing import Any

from .jit import JIT, kernel

if JIT:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def _cell_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
        view = context.make_array(array_type)(context, builder, array)
        return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)

    @intrinsic  # type: ignore[untyped-decorator]
    def _load(typing_context: Any, cells: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _cell_pointer(context, builder, signature.args[0], *arguments)
            return builder.load_atomic(pointer, "seq_cst", 8)

        return types.int64(cells, types.intp), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _compare_swap(typing_context: Any, cells: Any, index: Any, seen: Any, wanted: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, index_value, seen_value, wanted_value = arguments
            pointer = _cell_pointer(context, builder, signature.args[0], array, index_value)
            result = builder.cmpxchg(pointer, seen_value, wanted_value, "seq_cst", "seq_cst")
            return builder.extract_value(result, 0)

        return types.int64(cells, types.intp, types.int64, types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _fetch_add(typing_context: Any, cells: Any, index: Any, amount: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array, index_value, amount_value = arguments
            pointer = _cell_pointer(context, builder, signature.args[0], array, index_value)
            assert amount_value.type == ir.IntType(64)
            return builder.atomic_rmw("add", pointer, amount_value, "seq_cst")

        return types.int64(cells, types.intp, types.int64), generate

else:
    _one_at_a_time = threading.Lock()

    def _load(cells: Any, index: int) -> int:
        with _one_at_a_time:
            return int(cells[index])

    def _compare_swap(cells: Any, index: int, seen: int, wanted: int) -> int:
        with _one_at_a_time:
            found = int(cells[index])
            if found == seen:
                cells[index] = wanted
            return found

    def _fetch_add(cells: Any, index: int, amount: int) -> int:
        with _one_at_a_time:
            before = int(cells[index])
            cells[index] = before + amount
            return before


@kernel
def load(cells: Any, index: int) -> int:
    """Read one cell."""
    value: int = _load(cells, index)
    return value


@kernel
def compare_swap(cells: Any, index: int, seen: int, wanted: int) -> int:
    """Put `wanted` into a cell exactly when it holds `seen`; returns what was found."""
    value: int = _compare_swap(cells, index, seen, wanted)
    return value


@kernel
def fetch_add(cells: Any, index: int, amount: int) -> int:
    """Add to one cell; returns what was there before."""
    value: int = _fetch_add(cells, index, amount)
    return value
