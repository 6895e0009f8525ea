"""A small store whose every byte has a known meaning, copies of it with something broken, and what must hold of each.

    slot-0000   step 4, the newest            slot-0002   step 3, kept too
    slot-0001   step 2, a leftover            slot-0003   never used

Saved payloads end inside a page; `meaning` says of each byte of each file what it is for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lastgood.core import Damaged, Record, Store
from lastgood.core.jit import JIT
from lastgood.core.memory import MemoryDevice, MemoryDirectory
from tests.store.small import check_no_leak, create, is_payload_of, payload_of, save

PAGE = 4096
NEWEST, OLDER, LEFTOVER, UNUSED = "slot-0000", "slot-0002", "slot-0001", "slot-0003"
STEPS = {NEWEST: 4, OLDER: 3, LEFTOVER: 2}
SIZES = {1: 9000, 2: 15_001, 3: 8191, 4: 12_345}

Files = dict[str, bytes]


def thinned(places: list[int]) -> list[int]:
    """All of them; interpreted, where a look takes fifty times as long, one in seventeen."""
    return places if JIT else places[::17]


@functools.cache
def original(persists: int = 2) -> Files:
    """The whole store's files."""
    directory = MemoryDirectory()
    with create(directory, persists=persists) as store:
        for step in (1, 2, 3, 4):
            save(store, step, SIZES[step])
        assert [(record.step, record.slot) for record in store.records()] == [(4, 0), (3, 2)]
    return {name: device.content.tobytes() for name, device in directory.files.items()}


@functools.cache
def records() -> dict[str, Record]:
    """The record in each slot file."""
    with Store.open(directory_of(original()), read_only=True) as store:
        return {report.file: report.record for report in store.verify() if report.record is not None}


def directory_of(files: Files) -> MemoryDirectory:
    """A directory with these files."""
    directory = MemoryDirectory()
    directory._exists = True
    for name, content in files.items():
        directory.files[name] = MemoryDevice(np.frombuffer(content, np.uint8).copy())
    return directory


def files_in(directory: MemoryDirectory) -> Files:
    """The other way round."""
    return {name: device.content.tobytes() for name, device in directory.files.items()}


def changed(files: Files, name: str, change: Callable[[bytearray], Any]) -> Files:
    """The files with one of them changed in place."""
    content = bytearray(files[name])
    change(content)
    return {**files, name: bytes(content)}


def flipped(files: Files, name: str, at: int, bit: int = 0) -> Files:
    """One bit of one byte the other way round."""
    content = files[name]
    return {**files, name: content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]}


def meaning(name: str, at: int) -> str:
    """What a byte is for: "copy", "mark", "record", "payload", or "nothing"."""
    if name == "header":
        page, offset = divmod(at, PAGE)
        return ["copy", "mark", "copy"][page] if offset < (28 if page == 1 else 76) else "nothing"
    record = records().get(name)
    if at < PAGE:
        used = 36 if record is None else 112 + len(record.meta) + 4 * len(record.digests)
        return "record" if at < used else "nothing"
    return "payload" if record is not None and at - PAGE < record.payload_bytes else "nothing"


class Finding(NamedTuple):
    """What a look at a store came to."""

    step: int
    passed_over: tuple[str, ...]
    states: dict[str, str]
    is_strict_error: bool


def look(files: Files) -> Finding:
    """Read and verify, changing nothing. Whatever is returned is what was saved at that step (`never-wrong`)."""
    directory = directory_of(files)
    with Store.open(directory, read_only=True) as store:
        record, found = store.read_with_record()
        assert found.size == SIZES[record.step]
        assert is_payload_of(record.step, found), "never-wrong"
        passed_over = store.passed_over
        assert all("\n" not in line for line in passed_over)
        strict_error = False
        try:
            strict, _ = store.read_with_record(strict=True)
            assert strict == record
        except Damaged:
            strict_error = True
        states = {report.file: report.state for report in store.verify()}
    assert files_in(directory) == files, "a reader changes nothing"
    return Finding(record.step, passed_over, states, strict_error)


def check_a_writer_heals(files: Files) -> None:
    """Opening the damaged store for writing and saving `keep` times leaves nothing damaged, and every slot in use."""
    directory = directory_of(files)
    with Store.open(directory) as store:
        record, found = store.read_with_record()
        assert is_payload_of(record.step, found), "never-wrong"
        for step in (8, 9):
            save(store, step)
            kept = store.records()
            assert kept[0].step == step
            assert kept[0].sequence > record.sequence
            assert {each.step for each in kept[1:]} <= {record.step, 8, 3}
        check_no_leak(store)
        states = {report.file: report.state for report in store.verify()}
        assert "damaged" not in states.values(), states
        for each in store.records():
            assert is_payload_of(each.step, store.read(each))
    with Store.open(directory, read_only=True) as store:
        assert [each.step for each in store.records()] == [9, 8]
        assert store.read(strict=True).tobytes() == payload_of(9).tobytes()
