"""The few processor instructions that Python and numba have no word for. Trusted: LLVM.

Only compiled code can call them; this module is imported where the JIT is on.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

IS_X86 = platform.machine() in ("x86_64", "AMD64")
HAS_CRC32C = IS_X86 and bool(llvmlite.binding.get_host_cpu_features().get("sse4.2", False))

LINE_BYTES = 64
_WORD = ir.IntType(64)
_LINE = ir.VectorType(_WORD, LINE_BYTES // 8)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, element: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    bytes_pointer = builder.bitcast(data, ir.IntType(8).as_pointer())
    return builder.bitcast(builder.gep(bytes_pointer, [offset]), element.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def word_at(typing_context: Any, array: Any, offset: Any) -> Any:
    """Eight bytes at any offset, aligned or not."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], arguments[0], arguments[1], _WORD), align=1)

    return types.uint64(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def put_word(typing_context: Any, array: Any, offset: Any, word: Any) -> Any:
    """Store eight bytes at any offset, aligned or not."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(
            arguments[2], _pointer(context, builder, signature.args[0], arguments[0], arguments[1], _WORD), align=1
        )
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def copy_line(typing_context: Any, source: Any, target: Any, offset: Any) -> Any:
    """Copy 64 bytes at one offset of both arrays, past the cache; in the target it must be a multiple of 64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        origin = _pointer(context, builder, signature.args[0], arguments[0], arguments[2], _LINE)
        goal = _pointer(context, builder, signature.args[1], arguments[1], arguments[2], _LINE)
        store = builder.store(builder.load(origin, align=1), goal, align=LINE_BYTES)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(source, target, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def fence(typing_context: Any) -> Any:
    """This thread's stores past the cache are visible, and out of its buffers, after it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if IS_X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence"), [])
        else:
            builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def crc_step(typing_context: Any, crc: Any, word: Any) -> Any:
    """CRC32C of eight more bytes (x86-64 with SSE4.2)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_WORD, [_WORD, _WORD])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.64.64")
        return builder.call(function, arguments)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def address_of(typing_context: Any, array: Any) -> Any:
    """Address of the first byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(context.make_array(signature.args[0])(context, builder, arguments[0]).data, _WORD)

    return types.uint64(array), generate
