"""The same damage to real files, read by every kind of device: what is harmless to one must not be a loss to another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lastgood.core import Damaged, Store
from tests.damage.specimen import LEFTOVER, NEWEST, OLDER, PAGE, SIZES, UNUSED, original
from tests.store.small import check_kept, check_no_leak, is_payload_of, save

DEVICES = ["direct", "buffered", "mapped", "emulated-pmem"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    (tmp_path / "header").write_bytes(original()["header"])
    try:
        with Store.open(tmp_path, read_only=True, device=request.param):
            return str(request.param)
    except Exception as error:
        if "O_DIRECT" not in str(error):
            raise
        pytest.skip(f"no O_DIRECT here: {error}")
    finally:
        (tmp_path / "header").unlink()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The specimen as files."""
    place = tmp_path / "store"
    place.mkdir()
    for name, content in original().items():
        (place / name).write_bytes(content)
    return place


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0x10
    file.write_bytes(content)


def used_end(step: int) -> int:
    """Where a step's payload ends in its file."""
    return PAGE + SIZES[step]


HARMLESS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a byte more": lambda path: (path / NEWEST).open("ab").write(b"x"),
    "a page more": lambda path: (path / NEWEST).open("ab").write(bytes(PAGE)),
    "a byte less": lambda path: os.truncate(path / NEWEST, (path / NEWEST).stat().st_size - 1),
    "cut right behind the payload": lambda path: os.truncate(path / NEWEST, used_end(4)),
    "the older one cut right behind its payload": lambda path: os.truncate(path / OLDER, used_end(3)),
    "an unused slot cut to its record": lambda path: os.truncate(path / UNUSED, PAGE),
    "padding": lambda path: flip(path / NEWEST, used_end(4)),
    "a longer header": lambda path: (path / "header").open("ab").write(b"x"),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_harmless(path: Path, device: str, what: str) -> None:
    HARMLESS[what](path)
    with Store.open(path, read_only=True, device=device) as store:
        record, found = store.read_with_record(strict=True)
        assert record.step == 4
        assert is_payload_of(4, found)
        assert store.passed_over == ()
        assert "damaged" not in {report.state for report in store.verify()}
    heal(path, device)


DAMAGING: dict[str, Callable[[Path], object]] = {
    "a byte of payload": lambda path: flip(path / NEWEST, PAGE + 5000),
    "the last byte of payload": lambda path: flip(path / NEWEST, used_end(4) - 1),
    "the record": lambda path: flip(path / NEWEST, 70),
    "cut inside the payload": lambda path: os.truncate(path / NEWEST, used_end(4) - 1),
    "cut at a page": lambda path: os.truncate(path / NEWEST, 2 * PAGE),
    "cut to the record": lambda path: os.truncate(path / NEWEST, PAGE),
    "cut inside the record": lambda path: os.truncate(path / NEWEST, 100),
    "cut to nothing": lambda path: os.truncate(path / NEWEST, 0),
    "gone": lambda path: (path / NEWEST).unlink(),
    "swapped with the leftover": lambda path: swap(path / NEWEST, path / LEFTOVER),
    "a copy of the older one": lambda path: shutil.copy(path / OLDER, path / NEWEST),
}


def swap(one: Path, two: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)


@pytest.mark.parametrize("what", DAMAGING)
def test_what_costs_the_newest(path: Path, device: str, what: str) -> None:
    DAMAGING[what](path)
    with Store.open(path, read_only=True, device=device) as store:
        record, found = store.read_with_record()
        assert record.step == 3
        assert is_payload_of(3, found)
        assert store.passed_over
        assert all("\n" not in line for line in store.passed_over)
        with pytest.raises(Damaged):
            store.read(strict=True)
        assert "damaged" in {report.state for report in store.verify()}
    heal(path, device)


@pytest.mark.parametrize("length", [76, PAGE - 1, PAGE])
def test_a_header_of_which_the_front_is_left(path: Path, device: str, length: int) -> None:
    """One copy of it is whole, so nothing is lost; a reader that tried O_DIRECT on it by a whole page died of EOFError."""
    os.truncate(path / "header", length)
    with Store.open(path, read_only=True, device=device) as store:
        assert is_payload_of(4, store.read())
        assert any("header" in line for line in store.passed_over)
    heal(path, device)


def heal(path: Path, device: str) -> None:
    """A writer goes on, and leaves nothing damaged."""
    with Store.open(path, device=device) as store:
        store.read()
        save(store, 8)
        save(store, 9)
        check_kept(store, [9, 8])
        check_no_leak(store)
        assert not {"damaged"} & {report.state for report in store.verify()}
    sizes = {file.stat().st_size for file in path.glob("slot-*")}
    assert (
        len({size for size in sizes if size < len(original()[NEWEST])}) <= 2
    )  # slots not used again may still be short


def test_a_file_that_is_cut_while_a_reader_has_it_open(path: Path, device: str) -> None:
    """The next older one is found; a mapped reader died of SIGBUS, since its mapping was longer than the file."""
    with Store.open(path, read_only=True, device=device) as store:
        assert store.read_with_record()[0].step == 4
        os.truncate(path / NEWEST, 2 * PAGE)
        record, payload = store.read_with_record()
        assert record.step == 3
        assert is_payload_of(3, payload)
        assert "ends at byte" in store.passed_over[0]
