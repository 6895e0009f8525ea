"""Headers and records that say absurd things under a right digest: memory that failed before they were written, or somebody
on purpose. Refused in one line, without a huge allocation and without a look outside; the others are found as ever."""

from __future__ import annotations

import struct

import pytest

from lastgood.core import StoreError, layout, record
from lastgood.core.rules import SEQUENCE_LIMIT, chunk_count
from tests.damage.specimen import NEWEST, Files, check_a_writer_heals, look, original

EXTREMES = (0, 1, 2, 3, 16, 65, 4095, 4096, 4097, 2**20, 2**31, 2**32 - 1, 2**47, 2**48, 2**63 - 1, 2**63, 2**64 - 1)
USED, META, CHUNK, SEQUENCE, PAYLOAD, CHUNKS, START = 2, 6, 7, 8, 10, 12, 13
SLOTS, SLOT_BYTES, CHUNK_LIMIT, META_ROOM, IN_FLIGHT, KEEP, PERSISTS = 2, 4, 5, 6, 7, 8, 9


def fits(form: struct.Struct, values: list[object]) -> bool:
    try:
        form.pack(*values)
    except struct.error:
        return False
    return True


def with_record(field: int, value: int, *, consistent: bool) -> Files | None:
    """The newest record saying this, its digest right; `consistent` makes its number of chunks and its length follow."""
    image = bytearray(original()[NEWEST][:4096])
    values = list(record.FIXED.unpack(image[: record.DIGEST_OFFSET]))
    values[field] = value
    if consistent and values[CHUNK]:
        values[CHUNKS] = chunk_count(values[PAYLOAD], values[CHUNK])
        values[USED] = record.FIXED_BYTES + values[META] + 4 * values[CHUNKS]
    if not fits(record.FIXED, values) or (
        field == PAYLOAD and value in (0, 4096)
    ):  # whole chunks: a save could be that
        return None
    image[: record.DIGEST_OFFSET] = record.FIXED.pack(*values)
    image[record.DIGEST_OFFSET : record.FIXED_BYTES] = bytes(4)
    image[record.DIGEST_OFFSET : record.FIXED_BYTES] = record.sealed(bytes(image[: values[USED]]))[-4:]
    return {**original(), NEWEST: bytes(image) + original()[NEWEST][4096:]}


@pytest.mark.parametrize("field", [USED, META, CHUNK, SEQUENCE, PAYLOAD, CHUNKS, START])
@pytest.mark.parametrize("consistent", [False, True])
def test_a_record(field: int, consistent: bool) -> None:
    refused = 0
    for value in EXTREMES:
        files = with_record(field, value, consistent=consistent)
        if files is None:
            continue
        found = look(files)
        if found.step == 3:
            refused += 1
            is_older = field == SEQUENCE and 1 <= value < SEQUENCE_LIMIT
            assert is_older or "slot-0000" in found.passed_over[0] or "slot 0" in found.passed_over[0], value
            check_a_writer_heals(files)
    assert refused >= 3 or (field in (USED, CHUNKS) and consistent)


def with_header(field: int, value: int, *, consistent: bool) -> Files | None:
    """Both copies of the header saying this, their digests right; `consistent` makes the number of slots follow."""
    image = bytearray(original()["header"])
    values = list(layout.FIXED.unpack(image[: layout.FIXED.size]))
    values[field] = value
    if consistent:
        values[SLOTS] = values[IN_FLIGHT] + values[KEEP]
    if not fits(layout.FIXED, values):
        return None
    body = record.sealed(layout.FIXED.pack(*values))
    for offset in (0, layout.COPY_OFFSET):
        image[offset : offset + len(body)] = body
    return {**original(), "header": bytes(image)}


@pytest.mark.parametrize("field", [SLOTS, SLOT_BYTES, CHUNK_LIMIT, META_ROOM, IN_FLIGHT, KEEP, PERSISTS])
@pytest.mark.parametrize("consistent", [False, True])
def test_a_header(field: int, consistent: bool) -> None:
    refused = 0
    for value in EXTREMES:
        files = with_header(field, value, consistent=consistent)
        if files is None:
            continue
        try:
            look(files)
        except StoreError as error:
            refused += "\n" not in str(error)
    assert refused >= 2 or (field == SLOTS and consistent)
