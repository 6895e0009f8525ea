"""What each medium can leave after a crash: small programs with the exact sets of images, worked out from the rules.

Equality, both ways: an image too many cries wolf, an image too few is blind.
"""

from __future__ import annotations

import pytest

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.media.calls import parse
from lastgood.crashsim.media.errors import one_fault
from lastgood.crashsim.media.files import Files
from tests.crash.media.running import on_disk_named, on_files, on_memory, set_up, with_lying
from tests.crash.media.tables import (
    FILE_MEDIA,
    FILES,
    LIES,
    MEMORY,
    MEMORY_MEDIA,
    SECTOR_MEDIA,
    SECTORS,
    Row,
    expected,
)


def name_of(row: Row) -> str:
    return row.name.replace(" ", "-").replace(",", "")


@pytest.mark.parametrize("medium", FILE_MEDIA)
@pytest.mark.parametrize("row", FILES, ids=name_of)
def test_files(row: Row, medium: str) -> None:
    assert on_files(MEDIA[medium](), row.program) == expected(row.images, FILE_MEDIA.index(medium))


@pytest.mark.parametrize("medium", ["failing-fsync", "lying-disk"])
@pytest.mark.parametrize("row", FILES, ids=name_of)
def test_files_on_what_is_a_page_cache_as_long_as_it_is_honest(row: Row, medium: str) -> None:
    assert on_files(MEDIA[medium](), row.program) == expected(row.images, FILE_MEDIA.index("page-cache"))


@pytest.mark.parametrize("medium", MEMORY_MEDIA)
@pytest.mark.parametrize("row", MEMORY, ids=name_of)
def test_memory(row: Row, medium: str) -> None:
    assert on_memory(MEDIA[medium], row.program) == expected(row.images, MEMORY_MEDIA.index(medium))


@pytest.mark.parametrize("medium", SECTOR_MEDIA)
@pytest.mark.parametrize("row", SECTORS, ids=name_of)
def test_sectors(row: Row, medium: str) -> None:
    assert on_disk_named(medium, row.program) == expected(row.images, SECTOR_MEDIA.index(medium))


@pytest.mark.parametrize("budget", [0, 1, 2])
@pytest.mark.parametrize("row", LIES, ids=name_of)
def test_lies(row: Row, budget: int) -> None:
    assert with_lying(MEDIA["lying-disk"](), row.program, budget) == expected(row.images, budget)


OLD = "create a; append a o; sync; "
TWO_PAGES = "create a; append a oo; sync; "


@pytest.mark.parametrize(
    ("program", "views"),
    [
        pytest.param(OLD + "write a 0 n", {"a=n"}, id="dirty"),
        pytest.param(OLD + "write a 0 n; fsync a: EIO", {"a=n", "a=o"}, id="clean"),
        pytest.param(OLD + "write a 0 p; write a 0 q; fsync a: EIO", {"a=q", "a=p", "a=o"}, id="written-back-before"),
        pytest.param(TWO_PAGES + "write a 0 nn; fsync a: EIO", {"a=nn", "a=no", "a=on", "a=oo"}, id="two-pages"),
        pytest.param(OLD + "write a 0 n; fsync a: EIO; write a 0 m", {"a=m"}, id="dirty-again"),
        pytest.param(OLD + "write a 0 n; fsync a: EIO; write a 0 m; fsync a", {"a=m"}, id="persisted-after-all"),
    ],
)
def test_what_is_read_after_a_persist_failed(program: str, views: set[str]) -> None:
    """A clean page may be dropped and read from the medium again; where pages are never dropped, nothing changes."""
    assert set_up(MEDIA["failing-fsync"](), program).views() == views
    assert len(set_up(MEDIA["page-cache"](), program).views()) == 1


UNSURE = {"a=", "a=x", "a=0", "a=xy", "a=x0", "a=0y", "a=00"}
"""A new file of two pages that was renamed into place, and that nothing forced."""
REPLACING = "create t; append t xy; fsync t; rename t a; fsync /"
AFTER = {
    "": {"a=xy"},
    "create t: ENOSPC": {"a=o"},
    "append t xy: ENOSPC": {"a="},
    "append t xy: 1": {"a=x"},
    "fsync t: EIO": UNSURE,
    "rename t a: EIO": {"a=o t=xy"},
    "fsync /: EIO": {"a=o", "a=o t=xy", "a=xy"},
}


def test_every_error_at_every_place() -> None:
    """A program that looks at no result replaces a file: what each error of each call makes of that."""
    program = parse(REPLACING)
    faulty = list(one_fault(program))
    assert len(faulty) == 3 + 5 + 4 + 3 + 4
    assert on_files(MEDIA["page-cache"](), OLD + REPLACING) == AFTER[""]
    for tried in faulty:
        (wrong,) = (call for call in tried if call.outcome)
        like = next(
            each
            for each in AFTER
            if each.startswith(f"{wrong._replace(outcome='')}:") and each[-1].isdigit() == wrong.outcome.isdigit()
        )
        assert on_files(MEDIA["page-cache"](), (*parse(OLD), *tried)) == AFTER[like], str(wrong)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("create a", "EEXIST"),
        ("create d/x", "ENOENT"),
        ("append b x", "ENOENT"),
        ("write a 1 x", "EFBIG"),
        ("rename b c", "ENOENT"),
        ("rename a e", "EISDIR"),
        ("rename e e/f", "EINVAL"),
        ("unlink e", "EISDIR"),
        ("unlink b", "ENOENT"),
        ("link e f", "EPERM"),
        ("fsync b", "ENOENT"),
        ("fdatasync e", "EINVAL"),
        ("append a x: ENOSPC", "ENOSPC"),
        ("truncate e 0", "ENOENT"),
    ],
)
def test_a_call_that_cannot_be_made_changes_nothing(call: str, error: str) -> None:
    files = Files(MEDIA["page-cache"](), parse(OLD + "mkdir e"))
    before = files.state.outstanding
    assert files.do(parse(call)[0]) == error
    assert files.state.outstanding == before
