"""`never-wrong` rests on one number per chunk: every implementation must give the same one, and the published one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood.core import digest as module
from lastgood.core.device import aligned_buffer
from lastgood.core.digest import BYTE_TABLE, copy_digest, digest

CHECK_INPUT = np.frombuffer(b"123456789", np.uint8)
CHECK_VALUE = 0xE3069283
SIZES = [0, 1, 7, 8, 31, 32, 33, 63, 255, 256, 257, 511, 512, 1023, 1024, 4096, 10_007, 70_001]


def by_the_book(data, so_far=0):
    """CRC32C as the textbook has it: one byte, one table look-up."""
    crc = so_far ^ 0xFFFFFFFF
    for byte in bytes(data):
        crc = int(BYTE_TABLE[(crc ^ byte) & 255]) ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def noise(size):
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)


def test_published_check_value():
    assert digest(CHECK_INPUT) == CHECK_VALUE
    assert by_the_book(CHECK_INPUT) == CHECK_VALUE


@pytest.mark.parametrize("size", SIZES)
def test_all_implementations_agree(size):
    data = noise(size)
    expected = by_the_book(data)
    assert digest(data) == expected
    assert module._lane_digest(data, 0) == expected
    assert module._table_digest(data, np.empty(0, np.uint8), False, 0) == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shift", [0, 1, 8, 64])
def test_copy_is_exact_whatever_the_alignment(size, shift):
    data = noise(size + 3)[3:]
    memory = aligned_buffer(size + 200)
    memory[:] = 0xAA
    target = memory[shift : shift + size]
    assert copy_digest(data, target) == digest(data)
    assert np.array_equal(target, data)
    assert (memory[:shift] == 0xAA).all(), "wrote in front of the target"
    assert (memory[shift + size :] == 0xAA).all(), "wrote past the target"


@given(st.lists(st.binary(max_size=700), max_size=5))
def test_pieces_digest_like_the_whole(pieces):
    so_far = 0
    for piece in pieces:
        so_far = digest(np.frombuffer(piece, np.uint8), so_far)
    assert so_far == by_the_book(b"".join(pieces))


@given(st.binary(min_size=1, max_size=3000), st.data())
def test_a_flipped_bit_is_noticed(content, data):
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    assert digest(np.frombuffer(content, np.uint8)) != digest(np.frombuffer(damaged, np.uint8))
