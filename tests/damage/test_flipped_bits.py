"""One bit the other way round, anywhere: seen where it matters, harmless where it does not, never returned as if whole."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lastgood.core import Damaged, FormatTooNew, NotAStore, NothingUsable, Store
from tests.damage.specimen import (
    LEFTOVER,
    NEWEST,
    OLDER,
    PAGE,
    STEPS,
    UNUSED,
    check_a_writer_heals,
    directory_of,
    files_in,
    flipped,
    look,
    meaning,
    original,
    thinned,
)

WHOLE = {"header": "whole", NEWEST: "whole", OLDER: "whole", LEFTOVER: "leftover", UNUSED: "empty"}


def places(name: str, kind: str) -> list[int]:
    """The offsets of a file that have this meaning."""
    return [at for at in range(len(original()[name])) if meaning(name, at) == kind]


def test_the_undamaged_store() -> None:
    found = look(original())
    assert (found.step, found.passed_over, found.is_strict_error) == (4, (), False)
    assert found.states == WHOLE
    check_a_writer_heals(original())


def test_every_byte_of_every_record() -> None:
    """The newest: the older one is returned, with the reason. Any other: the newest, and verify says which is damaged."""
    for name in (NEWEST, OLDER, LEFTOVER, UNUSED):
        for at in thinned(places(name, "record")):
            files = flipped(original(), name, at, at % 8)
            found = look(files)
            where = f"{name}, byte {at}"
            assert found.step == (3 if name == NEWEST else 4), where
            assert found.states == {**WHOLE, name: "damaged"} | (
                {LEFTOVER: "whole"} if name in (NEWEST, OLDER) else {}
            ), where
            assert len(found.passed_over) == 1, where
            assert name in found.passed_over[0], where
            assert found.is_strict_error, where
            if at % 7 == 0:
                check_a_writer_heals(files)


@pytest.mark.parametrize("page", [0, 2])
def test_every_byte_of_a_copy_of_the_header(page: int) -> None:
    """The other copy is used, and the next writer repairs the damaged one."""
    for at in thinned(places("header", "copy")):
        if at // PAGE == page:
            files = flipped(original(), "header", at, at % 8)
            found = look(files)
            assert (found.step, found.states) == (4, {**WHOLE, "header": "damaged"}), f"byte {at}"
            assert len(found.passed_over) == 1, f"byte {at}"
            assert "header" in found.passed_over[0]
            directory = directory_of(files)
            Store.open(directory).close()
            assert files_in(directory) == original(), f"byte {at}: repaired to the byte"
            if at % 7 == 0:
                check_a_writer_heals(files)


def test_every_byte_of_both_copies_of_the_header() -> None:
    """Refused, for reading and for writing, in one line; nothing is touched."""
    for at in thinned(places("header", "copy")):
        if at < PAGE:
            files = flipped(flipped(original(), "header", at), "header", at + 2 * PAGE)
            for read_only in (True, False):
                directory = directory_of(files)
                with pytest.raises((Damaged, NotAStore, FormatTooNew)) as caught:
                    Store.open(directory, read_only=read_only)
                assert "\n" not in str(caught.value)
                assert "/memory" in str(caught.value)
                assert files_in(directory) == files, f"byte {at}"


def test_every_byte_of_the_mark() -> None:
    """Still marked: damage to it must not make a loss look like a fresh start. It is seen, and repaired."""
    for at in thinned(places("header", "mark")):
        files = flipped(original(), "header", at, at % 8)
        found = look(files)
        assert (found.step, found.states) == (4, {**WHOLE, "header": "damaged"}), f"byte {at}"
        directory = directory_of(files)
        Store.open(directory).close()
        assert files_in(directory) == original(), f"byte {at}: repaired to the byte"
        lost = {name: bytes(len(content)) if name.startswith("slot") else content for name, content in files.items()}
        with Store.open(directory_of(lost), read_only=True) as store, pytest.raises(NothingUsable):
            store.read()


def test_five_hundred_bytes_of_payloads() -> None:
    numbers = random.Random(500)
    for _ in thinned(list(range(500))):
        name = numbers.choice([NEWEST, NEWEST, OLDER, LEFTOVER])
        at = numbers.choice(places(name, "payload"))
        files = flipped(original(), name, at, numbers.randrange(8))
        found = look(files)
        where = f"{name}, byte {at}"
        assert found.step == (3 if name == NEWEST else 4), where
        assert found.states == ({**WHOLE, name: "damaged"} if name != LEFTOVER else WHOLE), where
        assert found.is_strict_error is (name == NEWEST), where
        assert [f"step {STEPS[name]} " in line for line in found.passed_over] == ([True] if name == NEWEST else []), (
            where
        )
        if numbers.random() < 0.1 and name != OLDER:
            check_a_writer_heals(files)


def test_the_first_and_the_last_byte_of_every_chunk() -> None:
    for name in (NEWEST, OLDER):
        used = places(name, "payload")
        for at in {
            used[0],
            used[-1],
            *(edge + near for edge in used[::PAGE] for near in (-1, 0, 1) if edge + near in used),
        }:
            found = look(flipped(original(), name, at))
            assert found.step == (3 if name == NEWEST else 4), f"{name}, byte {at}"
            assert found.states[name] == "damaged", f"{name}, byte {at}"


def test_every_byte_of_the_header_and_the_record_areas_that_means_nothing() -> None:
    """A byte of each file at a time; each of them is flipped once."""
    spare = {name: [at for at in places(name, "nothing") if name == "header" or at < PAGE] for name in original()}
    spare |= {f"header {third}": spare["header"][third::3] for third in range(3)}
    del spare["header"]
    for turn in thinned(thinned(list(range(max(map(len, spare.values())))))):
        files = original()
        for name, offsets in spare.items():
            if turn < len(offsets):
                files = flipped(files, name.split()[0], offsets[turn], turn % 8)
        found = look(files)
        assert (found.step, found.passed_over, found.states) == (4, (), WHOLE), f"turn {turn}"


def test_bytes_that_mean_nothing() -> None:
    """All of them at once, and two hundred one by one, also behind the payloads: nothing is reported."""
    files = dict(original())
    for name, content in files.items():
        bits = np.frombuffer(content, np.uint8).copy()
        bits[places(name, "nothing")] ^= 0x55
        files[name] = bits.tobytes()
    numbers = random.Random(200)
    singles = []
    for _ in thinned(list(range(200))):
        name = numbers.choice(list(files))
        singles.append(flipped(original(), name, numbers.choice(places(name, "nothing")), numbers.randrange(8)))
    for each in [files, *singles]:
        assert each != original()
        found = look(each)
        assert (found.step, found.passed_over, found.is_strict_error, found.states) == (4, (), False, WHOLE)
    check_a_writer_heals(files)


def test_damage_to_all_that_is_kept() -> None:
    """With both kept ones damaged the leftover is the newest whole one; with all three there is nothing, and that raises."""
    files = original()
    for name, finds in ((NEWEST, 3), (OLDER, 2)):
        files = flipped(files, name, PAGE + 100)
        found = look(files)
        assert found.step == finds
        assert found.states[name] == "damaged"
        check_a_writer_heals(files)
    files = flipped(files, LEFTOVER, PAGE + 100)
    for read_only in (True, False):
        directory = directory_of(files)
        with Store.open(directory, read_only=read_only) as store:
            for strict in (False, True):
                with pytest.raises((NothingUsable, Damaged)) as caught:
                    store.read(strict=strict)
                assert "\n" not in str(caught.value)
            assert len(store.passed_over) == 3
        with Store.open(directory, new_run=True) as store, pytest.raises(NothingUsable):
            store.save(b"a fresh start", step=0)
        assert files_in(directory) == files


@pytest.mark.parametrize("bits", range(1, 9))
def test_a_burst_of_flipped_bits(bits: int) -> None:
    """A CRC32C sees every burst of up to 32 bits; here across the edge of two chunks and inside a record."""
    numbers = random.Random(bits)
    for _ in thinned(list(range(20))):
        name = numbers.choice([NEWEST, OLDER])
        at = numbers.choice([*places(name, "record"), PAGE + PAGE - 1, PAGE + numbers.randrange(8000)])
        files = original()
        for bit in range(bits):
            files = flipped(files, name, at + bit // 8, bit % 8)
        assert look(files).step == (3 if name == NEWEST else 4)
        assert look(files).states[name] == "damaged"
