"""What a power loss may leave on the simulated disk: drawn cases, and the same images as the explorer's page cache."""

from __future__ import annotations

import errno
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood.crashsim.media.page_cache import PageCache
from lastgood.crashsim.medium import Medium, Persist, State
from lastgood.crashsim.medium import Operation as Written
from lastgood.crashsim.stateful import Disk, Loss, Refusal
from lastgood.crashsim.stateful.disk import SECTOR
from lastgood.crashsim.stateful.operations import EVERYTHING, NAMES, NOTHING


def filled(letter: str, sectors: int = 1) -> bytes:
    return letter.encode() * (SECTOR * sectors)


def with_file(content: bytes = b"") -> Any:
    """A disk with one durable file."""
    disk = Disk()
    file = disk.open("a", create=True)
    file.write(0, content)
    file.persist()
    disk.persist_names()
    return disk, file


def contents(disk: Disk) -> dict[str, bytes]:
    return {name: disk.open(name).read(0, 10_000) for name in disk.names()}


def images(disk: Disk) -> set[tuple[tuple[str, bytes], ...]]:
    """Whatever a power loss can leave, tearing at every sector of one operation after the other."""
    count = disk.outstanding_operations()
    found = set()
    for operations, torn, sectors in itertools.product(range(2**count), range(-1, count), range(4)):
        twin = disk.copy()
        twin.lose_power(Loss(operations, torn, sectors))
        found.add(tuple(contents(twin).items()))
    return found


def refused(kind: str, quarters: int = 0) -> Any:
    return lambda operation: Refusal(errno.EIO, quarters) if operation.kind == kind else None


def test_what_was_persisted_is_in_every_image_and_the_rest_may_be() -> None:
    disk, file = with_file(filled("x", 2))
    file.write(0, filled("y", 2))
    x, y = filled("x"), filled("y")
    assert images(disk) == {(("a", one + two),) for one in (x, y) for two in (x, y)}
    file.persist()
    assert images(disk) == {(("a", y + y),)}


def test_a_write_beyond_the_end_may_leave_its_size_and_not_its_bytes() -> None:
    disk, file = with_file()
    file.write(0, filled("y"))
    assert images(disk) == {(("a", content),) for content in (b"", bytes(SECTOR), filled("y"))}


def test_what_is_cut_off_does_not_come_back() -> None:
    disk, file = with_file(filled("x", 2))
    file.resize(SECTOR)
    file.resize(2 * SECTOR)
    assert contents(disk) == {"a": filled("x") + bytes(SECTOR)}
    file.persist()
    disk.lose_power(EVERYTHING)
    assert contents(disk) == {"a": filled("x") + bytes(SECTOR)}


def test_a_persist_says_nothing_of_the_name_nor_of_other_files() -> None:
    disk, _ = with_file(filled("x"))
    other = disk.open("b", create=True)
    other.write(0, filled("y"))
    other.persist()
    disk.open("a").write(0, filled("z"))
    disk.open("a").persist()
    disk.lose_power(EVERYTHING)
    assert contents(disk) == {"a": filled("z")}, "b had no durable name"


def test_a_rename_is_there_or_not_and_an_open_file_follows_it() -> None:
    disk, old = with_file(filled("x"))
    new = disk.open("b", create=True)
    new.write(0, filled("y"))
    new.persist()
    disk.persist_names()
    disk.rename("b", "a")
    assert contents(disk) == {"a": filled("y")}
    before = (("a", filled("x")), ("b", filled("y")))
    assert images(disk) == {before, (("a", filled("y")),)}
    old.write(0, filled("z"))
    assert contents(disk) == {"a": filled("y")}, "the old file has no name any more"
    disk.persist_names()
    assert images(disk) == {(("a", filled("y")),)}


def test_a_failed_persist_leaves_pages_that_no_later_persist_writes() -> None:
    """What is read looks right, and is gone after the power loss; a new write of the same bytes is what helps."""
    disk, file = with_file(filled("x"))
    file.write(0, filled("y"))
    disk.hook = refused("persist")
    with pytest.raises(OSError, match="error"):
        file.persist()
    disk.hook = lambda operation: None
    file.persist()
    assert contents(disk) == {"a": filled("y")}
    assert images(disk) == {(("a", filled("x")),), (("a", filled("y")),)}
    file.write(0, filled("y"))
    file.persist()
    assert images(disk) == {(("a", filled("y")),)}


def test_a_refused_write_may_be_half_done_and_other_refusals_change_nothing() -> None:
    disk, file = with_file(filled("x", 4))
    disk.hook = refused("write", quarters=3)
    with pytest.raises(OSError, match="error"):
        file.write(0, filled("y", 4))
    assert contents(disk) == {"a": filled("y", 3) + filled("x")}
    for kind, action in (
        ("rename", lambda: disk.rename("a", "b")),
        ("remove", lambda: disk.remove("a")),
        ("create", lambda: disk.open("b", create=True)),
        ("resize", lambda: file.resize(0)),
        ("read", lambda: file.read(0, 1)),
    ):
        disk.hook = refused(kind)
        with pytest.raises(OSError, match="error"):
            action()
    disk.hook = lambda operation: None
    assert contents(disk) == {"a": filled("y", 3) + filled("x")}


def test_losing_what_a_persist_would_cover_keeps_everything_else() -> None:
    disk, file = with_file(filled("x"))
    other = disk.open("b", create=True)
    other.write(0, filled("y"))
    file.write(0, filled("z"))
    without_a, without_names = disk.copy(), disk.copy()
    without_a.lose_power_without(1)
    assert contents(without_a) == {"a": filled("x"), "b": filled("y")}
    without_names.lose_power_without(NAMES)
    assert contents(without_names) == {"a": filled("z")}


def test_a_kill_changes_nothing_but_the_lock() -> None:
    disk, file = with_file(filled("x"))
    file.write(0, filled("y"))
    disk.is_locked = True
    disk.kill_process()
    assert contents(disk) == {"a": filled("y")}
    assert not disk.is_locked
    disk.lose_power(EVERYTHING)
    assert contents(disk) == {"a": filled("x")}


def test_damage_is_on_the_medium_too() -> None:
    disk, _ = with_file(filled("x"))
    disk.damage("a", 5, 1)
    assert contents(disk)["a"][5] == ord("x") ^ 1
    disk.lose_power(NOTHING)
    assert contents(disk)["a"][5] == ord("x") ^ 1


ACTS = st.lists(
    st.tuples(st.just("write"), st.integers(0, 1), st.integers(0, 1), st.integers(1, 4))
    | st.tuples(st.sampled_from(["persist", "fail"]), st.integers(0, 1), st.just(0), st.just(0)),
    max_size=7,
)


@given(ACTS)
def test_its_images_are_those_of_the_explorers_page_cache(acts: list[tuple[str, int, int, int]]) -> None:
    """Two files of two sectors each: one definition, two implementations."""
    medium = Medium(PageCache())
    state = State((0, 0, 0, 0), ())
    disk = Disk()
    files = [disk.open(name, create=True) for name in ("0", "1")]
    for file in files:
        file.write(0, bytes(2 * SECTOR))
        file.persist()
    disk.persist_names()
    for kind, number, sector, content in acts:
        if kind == "write":
            files[number].write(sector * SECTOR, bytes([content]) * SECTOR)
            state = medium.issue(state, Written(2 * number + sector, content, scope=(number,)))
        elif kind == "persist":
            files[number].persist()
            state = medium.persist(state, Persist(number, 0))
        else:
            disk.hook = refused("persist")
            with pytest.raises(OSError, match="error"):
                files[number].persist()
            disk.hook = lambda operation: None
            state = medium.fail_persist(state, Persist(number, 0))
    expected = {tuple(image.image) for image in medium.images(state, lambda image: image)}
    found = {tuple(content[sector * SECTOR] for _, content in image for sector in (0, 1)) for image in images(disk)}
    assert found == expected
