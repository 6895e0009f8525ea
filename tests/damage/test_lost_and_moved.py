"""Pages zeroed, files cut, longer, gone, swapped or taken from elsewhere: seen, explained, and healed by the next writer."""

from __future__ import annotations

import itertools

import pytest

from lastgood.core import Damaged, NoStore, NotAStore, NothingUsable, Store, StoreError
from lastgood.core.memory import MemoryDirectory
from tests.damage.specimen import (
    LEFTOVER,
    NEWEST,
    OLDER,
    PAGE,
    UNUSED,
    Files,
    changed,
    check_a_writer_heals,
    directory_of,
    files_in,
    look,
    meaning,
    original,
)
from tests.store.small import create, save

SLOTS = (NEWEST, OLDER, LEFTOVER, UNUSED)
FINDS = {NEWEST: 3, OLDER: 4, LEFTOVER: 4, UNUSED: 4}


def without(name: str, files: Files | None = None) -> Files:
    return {other: content for other, content in (files or original()).items() if other != name}


def check_damaged(files: Files, name: str, finds: int | None = None) -> None:
    """Seen by verify, with a reason in front of whatever was passed over, and healed."""
    found = look(files)
    assert found.step == (FINDS[name] if finds is None else finds)
    assert found.states[name] == "damaged"
    assert any(name in line or "step" in line for line in found.passed_over)
    assert found.is_strict_error
    check_a_writer_heals(files)


@pytest.mark.parametrize("page", range(1, 6))
@pytest.mark.parametrize("name", SLOTS)
def test_a_zeroed_page_of_payload(name: str, page: int) -> None:
    at = page * PAGE
    files = changed(original(), name, lambda content: content.__setitem__(slice(at, at + PAGE), bytes(PAGE)))
    found = look(files)
    if meaning(name, at) == "payload" and name != LEFTOVER:
        assert found.states[name] == "damaged"
        assert found.step == FINDS[name]
        assert found.is_strict_error is (name == NEWEST)
    else:
        assert (found.step, found.passed_over, found.states[name]) == (4, (), look(original()).states[name])
    check_a_writer_heals(files) if name != OLDER else None


@pytest.mark.parametrize("name", SLOTS)
def test_a_zeroed_record(name: str) -> None:
    """Zeros are what a lost block reads as; they must not pass for a slot that was never used."""
    check_damaged(changed(original(), name, lambda content: content.__setitem__(slice(PAGE), bytes(PAGE))), name)


@pytest.mark.parametrize("page", [0, 2])
def test_a_zeroed_copy_of_the_header(page: int) -> None:
    where = slice(page * PAGE, (page + 1) * PAGE)
    files = changed(original(), "header", lambda content: content.__setitem__(where, bytes(PAGE)))
    found = look(files)
    assert (found.step, found.states["header"]) == (4, "damaged")
    directory = directory_of(files)
    Store.open(directory).close()
    assert files_in(directory) == original()


@pytest.mark.parametrize("name", SLOTS)
def test_a_byte_more(name: str) -> None:
    files = changed(original(), name, lambda content: content.append(7))
    assert look(files) == look(original())
    check_a_writer_heals(files)


@pytest.mark.parametrize("name", SLOTS)
def test_a_byte_less(name: str) -> None:
    """The last byte of a slot file is not used here: nothing is lost."""
    files = changed(original(), name, lambda content: content.pop())
    assert look(files) == look(original())
    check_a_writer_heals(files)


@pytest.mark.parametrize("length", [0, 1, 111, 112, 4095, 4096, 4097, 8192, 12_000])
@pytest.mark.parametrize("name", SLOTS)
def test_a_file_cut_short(name: str, length: int) -> None:
    files = changed(original(), name, lambda content: content.__delitem__(slice(length, None)))
    found = look(files)
    assert found.step == FINDS[name]
    if length < PAGE or name in (NEWEST, OLDER):
        assert found.states[name] == "damaged"
    assert bool(found.passed_over) is (length < PAGE or name == NEWEST)
    if name != OLDER or length < PAGE:
        check_a_writer_heals(files)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 11, 12, 75, 76, 4096, 4124, 8192, 8192 + 75, 8192 + 76, 12_287])
def test_a_header_cut_short(length: int) -> None:
    files = changed(original(), "header", lambda content: content.__delitem__(slice(length, None)))
    if length < 76:
        for read_only in (True, False):
            directory = directory_of(files)
            with pytest.raises((Damaged, NotAStore)) as caught:
                Store.open(directory, read_only=read_only)
            assert "\n" not in str(caught.value)
            assert files_in(directory) == files
        return
    found = look(files)
    assert found.step == 4
    assert found.states["header"] == ("damaged" if length < 8192 + 76 else "whole")
    check_a_writer_heals(files)
    lost = {name: content if name == "header" else bytes(len(content)) for name, content in files.items()}
    with Store.open(directory_of(lost), read_only=True) as store:
        assert store.marked, "a mark that is missing must not make a loss look like a fresh start"


def test_a_longer_header() -> None:
    assert look(changed(original(), "header", lambda content: content.append(7))) == look(original())


@pytest.mark.parametrize("pair", list(itertools.combinations(SLOTS, 2)), ids="-".join)
def test_swapped_slot_files(pair: tuple[str, str]) -> None:
    """Each record says which slot it is for: neither is taken for the other."""
    one, two = pair
    files = {**original(), one: original()[two], two: original()[one]}
    found = look(files)
    assert (
        found.step
        == max({4: NEWEST, 3: OLDER, 2: LEFTOVER}.items(), key=lambda item: item[0] * (item[1] not in pair))[0]
    )
    for name in pair:
        assert found.states[name] == "damaged"
    check_a_writer_heals(files)


@pytest.mark.parametrize("name", SLOTS)
def test_a_copy_of_another_slot(name: str) -> None:
    for other in SLOTS:
        if other != name:
            check_damaged({**original(), name: original()[other]}, name)


@pytest.mark.parametrize("name", SLOTS)
def test_a_slot_file_of_another_store(name: str) -> None:
    directory = MemoryDirectory()
    with create(directory) as store:
        for step in range(1, 8):
            save(store, step)
    check_damaged({**original(), name: files_in(directory)[name]}, name)


def test_the_header_of_another_store() -> None:
    """All its slots are strangers then: nothing usable, nothing touched."""
    directory = MemoryDirectory()
    with create(directory) as store:
        save(store, 1)
    files = {**original(), "header": files_in(directory)["header"]}
    damaged = directory_of(files)
    with Store.open(damaged, read_only=True) as store, pytest.raises(NothingUsable, match="another store"):
        store.read()
    with Store.open(damaged, new_run=True) as store, pytest.raises(NothingUsable):
        store.save(b"x", step=1)
    assert files_in(damaged) == files


@pytest.mark.parametrize("name", SLOTS)
def test_a_missing_slot_file(name: str) -> None:
    check_damaged(without(name), name)


def test_all_slot_files_missing() -> None:
    files = {"header": original()["header"]}
    with Store.open(directory_of(files), read_only=True) as store:
        with pytest.raises(NothingUsable):
            store.read()
        assert len(store.passed_over) == 4


def test_a_missing_header_is_not_a_creation_that_was_never_completed() -> None:
    """The slots hold checkpoints, which no creation writes: told apart, and nobody may create a store over them.

    The story: a job found no header, took that for no store, created one, and emptied every slot of the old one.
    """
    files = without("header")
    for read_only in (True, False):
        directory = directory_of(files)
        with pytest.raises(Damaged, match="header"):
            Store.open(directory, read_only=read_only)
        assert files_in(directory) == files
    directory = directory_of(files)
    with pytest.raises(StoreError) as caught:
        create(directory)
    assert not isinstance(caught.value, NoStore)
    assert files_in(directory) == files
    directory.files["header"] = directory_of(original()).files["header"]
    assert look(files_in(directory)) == look(original())


def test_an_older_copy_of_the_newest_slot() -> None:
    """A slot file put back from a backup: an older checkpoint of the same store, whole. The newest that is left is found."""
    directory = directory_of(original())
    with Store.open(directory) as store:
        store.read()
        for step in (5, 6, 7, 8):
            record = save(store, step)
    newest = f"slot-{record.slot:04d}"
    files = {**files_in(directory), newest: original()[newest]}
    with Store.open(directory_of(files), read_only=True) as store:
        assert store.read_with_record()[0].step == 7
