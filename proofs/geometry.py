"""Contracts on geometry: where the bytes of a slot lie. Confirmed by CrossHair, like `decisions`, for any size at all.

      0              area                                          area + align_up(slot_bytes)
      +--------------+-----------+-----------+------+--------------+
      | record area  | chunk 0   | chunk 1   | ...  |     room     |
      +--------------+-----------+-----------+------+--------------+

Sizes that are whole pages are passed as counts of pages: that is a multiplication the solver needs not search for.
"""

from __future__ import annotations

from lastgood.core import rules


def align_up_is_least(count: int) -> int:
    """Aligning rounds up to whole pages, by less than one page.

    pre: 0 <= count
    post: __return__ % rules.PAGE_BYTES == 0
    post: count <= __return__ < count + rules.PAGE_BYTES
    """
    return rules.align_up(count)


def chunks_tile_the_payload(payload_bytes: int, chunk_bytes: int, index: int) -> tuple[int, int]:
    """Each chunk begins where the one before ends, none is empty or too long, and the last ends with the payload.

    pre: 1 <= chunk_bytes
    pre: 0 <= payload_bytes
    pre: 0 <= index < rules.chunk_count(payload_bytes, chunk_bytes)
    post: 1 <= __return__[1] <= chunk_bytes
    post: __return__[0] + __return__[1] == min(payload_bytes, rules.chunk_offset(0, chunk_bytes, index + 1))
    post: (__return__[0] + __return__[1] == payload_bytes) == (index == rules.chunk_count(payload_bytes, chunk_bytes) - 1)
    """
    return rules.chunk_offset(0, chunk_bytes, index), rules.chunk_length(payload_bytes, chunk_bytes, index)


def no_payload_no_chunks(payload_bytes: int, chunk_bytes: int) -> int:
    """A payload has chunks exactly when it has bytes.

    pre: 1 <= chunk_bytes
    pre: 0 <= payload_bytes
    post: (__return__ == 0) == (payload_bytes == 0)
    post: 0 <= __return__
    """
    return rules.chunk_count(payload_bytes, chunk_bytes)


def chunks_stay_in_the_slot(area_pages: int, slot_bytes: int, payload_bytes: int, chunk_pages: int, index: int) -> int:
    """Every chunk, rounded up to whole pages as it is written, lies aligned between record area and end of file.

    pre: 1 <= area_pages
    pre: 1 <= chunk_pages
    pre: 0 <= payload_bytes <= slot_bytes
    pre: 0 <= index < rules.chunk_count(payload_bytes, chunk_pages * rules.PAGE_BYTES)
    post: __return__ % rules.PAGE_BYTES == 0
    post: area_pages * rules.PAGE_BYTES <= __return__
    post: __return__ + end_of_write(payload_bytes, chunk_pages, index) <= size_of_file(area_pages, slot_bytes)
    """
    return rules.chunk_offset(area_pages * rules.PAGE_BYTES, chunk_pages * rules.PAGE_BYTES, index)


def end_of_write(payload_bytes: int, chunk_pages: int, index: int) -> int:
    """Bytes that are written for a chunk: its length in whole pages."""
    return rules.align_up(rules.chunk_length(payload_bytes, chunk_pages * rules.PAGE_BYTES, index))


def size_of_file(area_pages: int, slot_bytes: int) -> int:
    """Bytes of a slot file whose record area takes so many pages."""
    return rules.slot_file_bytes(area_pages * rules.PAGE_BYTES, slot_bytes)


def record_fits_its_area(fixed_bytes: int, digest_bytes: int, meta_bytes: int, chunks: int) -> int:
    """The record area holds the fixed part, the meta and every digest, and is whole pages.

    pre: 1 <= fixed_bytes and 0 <= digest_bytes and 0 <= meta_bytes and 0 <= chunks
    post: fixed_bytes + meta_bytes + digest_bytes * chunks <= __return__
    post: __return__ % rules.PAGE_BYTES == 0
    """
    return rules.record_area_bytes(fixed_bytes, digest_bytes, meta_bytes, chunks)
