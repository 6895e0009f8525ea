"""The format is what `docs/format.md` says, and stores that were written once stay readable byte for byte.

The reader here is written from that page alone: plain Python, no code of ours, its own CRC32C, bit by bit.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastgood.core import Store
from lastgood.core.layout import decode_header, encode_header
from lastgood.core.record import decode, encode
from tests.store.golden import content_of, make, unpack
from tests.store.small import check_no_leak, files_of, save

PAGE = 4096
STORES = ["plain", "one-persist", "grown", "unused"]


def crc32c(content: bytes) -> int:
    """Castagnoli's polynomial, reflected, complemented at both ends."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def header_of(content: bytes) -> dict[str, Any]:
    """Both copies and the mark."""
    assert len(content) == 3 * PAGE
    assert content[2 * PAGE :] == content[:PAGE]
    assert content[76:PAGE] == bytes(PAGE - 76)
    assert struct.unpack_from("<I", content, 72) == (crc32c(content[:72]),)
    magic, version, slots, store, slot_bytes, chunk, meta, in_flight, keep, persists, created = struct.unpack_from(
        "<8sII16sQQIIIIQ", content
    )
    assert (magic, version, slots) == (b"LASTGOOD", 1, in_flight + keep)
    mark = content[PAGE : 2 * PAGE]
    if any(mark):
        assert mark == (b"LGMARKED" + store + struct.pack("<I", crc32c(b"LGMARKED" + store))).ljust(PAGE, b"\0")
    return {
        "slots": slots, "store": store, "slot_bytes": slot_bytes, "chunk": min(chunk, -(-slot_bytes // PAGE) * PAGE),
        "meta": meta, "keep": keep, "persists": persists, "created": created, "marked": any(mark),
    }  # fmt: skip


def slot_of(content: bytes, index: int, header: dict[str, Any]) -> dict[str, Any] | None:
    """The record and payload of a slot, every digest checked; None for an empty one."""
    empty = struct.pack("<8sII16s", b"LGEMPTY\0", 1, index, header["store"])
    if content[:36] == empty + struct.pack("<I", crc32c(empty)):
        return None
    (magic, version, used, store, run, slot, meta_bytes, chunk, sequence, step, size, saved_at, chunks, start, crc) = (
        struct.unpack_from("<8sII16s16sIIQQqQQIQI", content)
    )
    assert (magic, version, store, slot) == (b"LGRECORD", 1, header["store"], index)
    assert used == 112 + meta_bytes + 4 * chunks
    assert crc == crc32c(content[:108] + bytes(4) + content[112:used])
    assert content[used:start] == bytes(start - used)
    assert chunks == -(-size // chunk)
    assert (start % PAGE, len(content) % PAGE) == (0, 0)
    payload = content[start : start + size]
    assert len(payload) == size
    digests = struct.unpack_from(f"<{chunks}I", content, 112 + meta_bytes)
    assert digests == tuple(crc32c(payload[at : at + chunk]) for at in range(0, size, chunk))
    padding = -size % PAGE
    assert content[start + size : start + size + padding] == bytes(padding)
    return {
        "step": step, "bytes": size, "sequence": sequence, "slot": slot, "run": run.hex(), "saved_at_ns": saved_at,
        "meta": content[112 : 112 + meta_bytes].hex(), "payload": payload,
    }  # fmt: skip


def read_by_the_page(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the checkpoints that are kept, newest first."""
    files = files_of(path)
    header = header_of(files.pop("header"))
    assert list(files) == [f"slot-{index:04d}" for index in range(header["slots"])]
    slots = [slot_of(content, index, header) for index, content in enumerate(files.values())]
    found = sorted((slot for slot in slots if slot is not None), key=lambda slot: -slot["sequence"])
    return header, found[: header["keep"]]


def check_facts(found: list[dict[str, Any]], facts: list[dict[str, Any]]) -> None:
    for slot, fact in zip(found, facts, strict=True):
        assert {key: slot[key] for key in fact} == fact
        assert slot["payload"] == content_of(slot["step"], slot["bytes"])


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("golden")
    return path, unpack(path)


@pytest.mark.parametrize("device", ["auto", "buffered", "mapped"])
@pytest.mark.parametrize("name", STORES)
def test_a_store_that_was_written_by_format_1_is_read_byte_for_byte(golden: Any, name: str, device: str) -> None:
    path, facts = golden[0] / name, golden[1][name]
    before = files_of(path)
    with Store.open(path, read_only=True, device=device) as store:
        assert store.marked is bool(facts)
        records = store.records()
        found = [
            {
                "step": record.step, "bytes": record.payload_bytes, "sequence": record.sequence, "slot": record.slot,
                "run": record.run.hex(), "saved_at_ns": record.saved_at_ns, "meta": record.meta.hex(),
                "payload": store.read(record).tobytes(),
            }
            for record in records
        ]  # fmt: skip
        check_facts(found, facts)
        assert not {"damaged"} & {report.state for report in store.verify()}
    assert files_of(path) == before


@pytest.mark.parametrize("name", STORES)
def test_a_store_of_format_1_can_be_continued(golden: Any, name: str, tmp_path: Path) -> None:
    path, facts = tmp_path / name, golden[1][name]
    path.mkdir()
    for file, content in files_of(golden[0] / name).items():
        (path / file).write_bytes(content)
    with Store.open(path) as store:
        if facts:
            store.read()
            assert store.run == facts[0]["run"]
        record = save(store, 77, 8000)
        assert record.sequence == (facts[0]["sequence"] if facts else 0) + 1
        kept = [77, *(fact["step"] for fact in facts)][: store.keep]
        assert [each.step for each in store.records()] == kept
        check_no_leak(store)


@pytest.mark.parametrize("where", ["golden", "fresh"])
@pytest.mark.parametrize("name", STORES)
def test_the_page_describes_what_is_written(golden: Any, where: str, name: str, tmp_path: Path) -> None:
    path, facts = golden
    if where == "fresh":
        path, facts = tmp_path, make(tmp_path)
    header, found = read_by_the_page(path / name)
    assert header["marked"] is bool(facts[name])
    assert header["persists"] == (1 if name == "one-persist" else 2)
    check_facts(found, facts[name])


@pytest.mark.parametrize("name", STORES)
def test_what_was_read_is_written_again_as_it_was(golden: Any, name: str) -> None:
    """Encoding is decoding backwards, to the byte: recovery rewrites records and must not change them."""
    files = files_of(golden[0] / name)
    header = decode_header(files["header"], "golden")
    assert encode_header(header.layout, marked=header.marked).tobytes() == files["header"]
    for slot in range(header.layout.slot_count):
        content = files[f"slot-{slot:04d}"]
        area = np.frombuffer(content, np.uint8)[: header.layout.area_bytes]
        record = decode(area, header.layout.store, slot)
        if record is not None:
            image = encode(record).tobytes()
            assert image == content[: len(image)]


def test_a_slot_file_of_the_grown_store_still_has_its_old_size(golden: Any) -> None:
    """Otherwise the case that this golden is there for would be gone."""
    sizes = {len(content) for name, content in files_of(golden[0] / "grown").items() if name.startswith("slot")}
    assert len(sizes) == 2


def test_this_reader_knows_a_wrong_byte_when_it_sees_one(golden: Any) -> None:
    assert crc32c(b"123456789") == 0xE3069283
    files = files_of(golden[0] / "plain")
    header = header_of(files["header"])
    slot = golden[1]["plain"][0]["slot"]
    content = bytearray(files[f"slot-{slot:04d}"])
    for at in (8, 20, 40, 70, 80, 108, 113, 4000, 4096, 4096 + 8999, 4096 + 9001):
        content[at] ^= 4
        with pytest.raises(AssertionError):
            slot_of(bytes(content), slot, header)
        content[at] ^= 4
    assert slot_of(bytes(content), slot, header) is not None
