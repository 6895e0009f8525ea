"""CRC32C of memory, alone or in one pass with a copy. Checked against its twins and the published check value.

    digest(source, so_far=0)              -> CRC32C of what came before followed by `source`
    copy_digest(source, target, so_far=0) -> the same, and `target` holds a copy of `source`

Both take one-dimensional contiguous uint8 arrays, release the GIL, and read every byte once. The polynomial is
Castagnoli's (0x1EDC6F41), reflected, with the usual complement at both ends, so any CRC32C tool can verify a store.

Three implementations give the same number: the SSE4.2 instruction on four interleaved lanes (one lane waits three
cycles for its last result, four keep the unit busy; the lanes are joined by multiplying with x^(8·length) modulo the
polynomial), a table kernel for other processors, and a numpy twin when compilation is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .jit import JIT, kernel, rule

POLYNOMIAL = 0x82F63B78
ALL_ONES = 0xFFFFFFFF
DIGEST_BYTES = 4


@rule
def _multiply(left: int, right: int) -> int:
    """Product of two reflected polynomials modulo the CRC's."""
    product = 0
    bit = 1 << 31
    while bit != 0:
        if left & bit:
            product ^= right
        right = (right >> 1) ^ POLYNOMIAL if right & 1 else right >> 1
        bit >>= 1
    return product


def _powers() -> list[int]:
    """x^(2^k) for k = 0 .. 63."""
    power = 1 << 30
    powers = []
    for _ in range(64):
        powers.append(power)
        power = _multiply(power, power)
    return powers


POWERS = np.array(_powers(), np.int64)


@rule
def _shift(crc: int, length: int) -> int:
    """The raw CRC of some bytes followed by `length` zero bytes, from the raw CRC of the bytes."""
    exponent = 3  # bits in a byte: x^8 = x^(2^3)
    while length != 0:
        if length & 1:
            crc = _multiply(crc, POWERS[exponent])
        length >>= 1
        exponent += 1
    return crc


def _byte_table() -> NDArray[np.int64]:
    table = np.arange(256, dtype=np.int64)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ POLYNOMIAL, table >> 1)
    return table


BYTE_TABLE = _byte_table()
_NO_TARGET = np.empty(0, np.uint8)


@kernel
def _table_digest(source: Any, target: Any, copying: bool, so_far: int) -> int:
    """One byte at a time through a table, for processors without the instruction."""
    crc = so_far ^ ALL_ONES
    for index in range(source.size):
        byte = np.int64(source[index])
        if copying:
            target[index] = byte
        crc = BYTE_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ ALL_ONES


def _lane_digest(source: NDArray[np.uint8], so_far: int) -> int:
    """The numpy twin: a thousand lanes at once, joined pairwise by shifts."""
    crc = so_far ^ ALL_ONES
    lanes = 1024
    lane_bytes = source.size // lanes
    if lane_bytes > 0:
        grid = source[: lanes * lane_bytes].reshape(lanes, lane_bytes).T.astype(np.int64)
        raw = np.zeros(lanes, np.int64)
        raw[0] = crc
        for column in grid:
            raw = BYTE_TABLE[(raw ^ column) & 255] ^ (raw >> 8)
        length = lane_bytes
        while raw.size > 1:
            raw = _shift_all(raw[0::2], length) ^ raw[1::2]
            length *= 2
        crc = int(raw[0])
    for byte in source[lanes * lane_bytes :].tolist():
        crc = int(BYTE_TABLE[(crc ^ byte) & 255]) ^ (crc >> 8)
    return crc ^ ALL_ONES


def _shift_all(raw: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """`_shift` of many CRCs by one length: it is linear, so shift each of the 32 basis bits once."""
    shifted = np.zeros_like(raw)
    for bit in range(32):
        shifted ^= np.where(raw >> bit & 1, _shift(1 << bit, length), 0)
    return shifted


if JIT:
    from .instructions import HAS_CRC32C, LINE_BYTES, address_of, copy_line, crc_step, fence, put_word, word_at
else:
    HAS_CRC32C = False


if HAS_CRC32C:

    @kernel
    def _joined(lanes: Any, lane: int, source: Any, target: Any, copying: bool) -> int:
        """Join four raw lane CRCs, then take in the bytes that are left over."""
        crc: Any = np.int64(lanes[0])
        if lane > 0:
            for index in range(1, 4):
                crc = _shift(crc, lane) ^ np.int64(lanes[index])
        for index in range(4 * lane, source.size):
            byte = np.int64(source[index])
            if copying:
                target[index] = byte
            crc = BYTE_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
        joined: int = crc ^ ALL_ONES
        return joined

    @kernel
    def _line_digest(source: Any, target: Any, so_far: int) -> int:
        """Four lanes of whole lines, copied past the cache: the target is written once and read by the device only,
        and a store that goes through the cache would first read the line it is about to overwrite."""
        lane = source.size // (4 * LINE_BYTES) * LINE_BYTES
        first = np.uint64(so_far ^ ALL_ONES)
        second = third = fourth = np.uint64(0)
        for line in range(0, lane, LINE_BYTES):
            copy_line(source, target, line)
            copy_line(source, target, line + lane)
            copy_line(source, target, line + 2 * lane)
            copy_line(source, target, line + 3 * lane)
            for offset in range(line, line + LINE_BYTES, 8):
                first = crc_step(first, word_at(source, offset))
                second = crc_step(second, word_at(source, offset + lane))
                third = crc_step(third, word_at(source, offset + 2 * lane))
                fourth = crc_step(fourth, word_at(source, offset + 3 * lane))
        fence()  # before the buffer is handed to a writer thread
        return _joined((first, second, third, fourth), lane, source, target, True)

    @kernel
    def _instruction_digest(source: Any, target: Any, copying: bool, so_far: int) -> int:
        """Four lanes of whole words."""
        if copying and address_of(target) % np.uint64(LINE_BYTES) == 0 and source.size >= 4 * LINE_BYTES:
            return _line_digest(source, target, so_far)
        lane = source.size // 32 * 8
        first = np.uint64(so_far ^ ALL_ONES)
        second = third = fourth = np.uint64(0)
        for offset in range(0, lane, 8):
            word0 = word_at(source, offset)
            word1 = word_at(source, offset + lane)
            word2 = word_at(source, offset + 2 * lane)
            word3 = word_at(source, offset + 3 * lane)
            if copying:
                put_word(target, offset, word0)
                put_word(target, offset + lane, word1)
                put_word(target, offset + 2 * lane, word2)
                put_word(target, offset + 3 * lane, word3)
            first = crc_step(first, word0)
            second = crc_step(second, word1)
            third = crc_step(third, word2)
            fourth = crc_step(fourth, word3)
        return _joined((first, second, third, fourth), lane, source, target, copying)

    _run_digest = _instruction_digest
    IMPLEMENTATION = "SSE4.2 crc32 instruction, four lanes"
elif JIT:
    _run_digest = _table_digest
    IMPLEMENTATION = "table kernel"
else:

    def _run_digest(source: Any, target: Any, copying: bool, so_far: int) -> int:
        if copying:
            target[:] = source
        return _lane_digest(source, so_far)

    IMPLEMENTATION = "numpy twin"


def digest(source: NDArray[np.uint8], so_far: int = 0) -> int:
    """CRC32C of whatever `so_far` is the CRC32C of, followed by `source`."""
    return int(_run_digest(source, _NO_TARGET, False, so_far))


def copy_digest(source: NDArray[np.uint8], target: NDArray[np.uint8], so_far: int = 0) -> int:
    """Copy `source` to `target` (same size) and return the CRC32C as `digest` does, in one pass."""
    assert source.size == target.size
    return int(_run_digest(source, target, True, so_far))
