"""Which medium is weaker than which: on random programs, everything that the stronger one can leave, the weaker one can too."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.media.calls import Call, Program, parse, written
from lastgood.crashsim.media.errors import one_fault
from lastgood.crashsim.media.lying_disk import with_lies
from lastgood.crashsim.media.strict import Strict
from lastgood.crashsim.medium import Rules
from tests.crash.media.running import on_files, on_memory, on_sectors

PATHS = ("a", "b", "d/c")
SCENE = parse("mkdir d; create a; append a o; create d/c; sync")


def calls(*lines: str) -> st.SearchStrategy[Call]:
    """One of these calls."""
    return st.sampled_from([call for line in lines for call in parse(line)])


ON_FILES = calls(
    *(f"{name} {path}" for name in ("create", "unlink", "fsync", "fdatasync") for path in PATHS),
    *(f"append {path} {pages}" for path in PATHS for pages in ("x", "yz")),
    *(f"write {path} 0 w" for path in PATHS),
    *(f"truncate {path} {size}" for path in PATHS for size in (0, 2)),
    *(f"{name} {old} {new}" for name in ("rename", "link") for old in PATHS for new in PATHS if old != new),
    *("fsync /", "fsync d", "mkdir e", "sync"),
)
ON_MEMORY = calls(
    *(
        f"{name} {thread} {word} {x}"
        for name in ("store", "nt")
        for thread in "01"
        for word in ("A0", "A1", "B0")
        for x in "xy"
    ),
    *(f"clwb {thread} {line}" for thread in "01" for line in "AB"),
    *("sfence 0", "sfence 1", "persist 0", "persist 1", "msync A", "msync B", "fsync"),
)
ON_SECTORS = calls(
    *(f"write {sectors} {x}" for sectors in ("A", "B", "AB", "BC") for x in "xy"),
    *("submit 1 AB p", "submit 2 BC q", "complete 1", "complete 2", "fua AB z", "fua C z", "drain", "drain: EIO"),
)


def files_program(size: int = 6) -> st.SearchStrategy[Program]:
    """The scene, and a few calls on it."""
    return st.lists(ON_FILES, max_size=size).map(lambda made: (*SCENE, *made))


def rising(program: Program, run: Callable[[Rules], set[str]], *names: str) -> None:
    """Each of these media allows what the one before it allows."""
    found = [run(MEDIA[name]()) for name in names]
    for stronger, weaker, name in zip(found, found[1:], names[1:], strict=False):
        assert stronger <= weaker, f"{name} lacks {sorted(stronger - weaker)} after: {written(program)}"


@given(files_program())
def test_files(program: Program) -> None:
    rising(program, lambda rules: on_files(rules, program), "strict", "ext4", "page-cache", "failing-fsync")


@given(files_program(5), st.data())
def test_files_that_fail(program: Program, data: st.DataObject) -> None:
    faults = list(one_fault(program[len(SCENE) :]))
    tried = (*SCENE, *(data.draw(st.sampled_from(faults)) if faults else ()))
    rising(tried, lambda rules: on_files(rules, tried), "strict", "ext4", "page-cache", "failing-fsync")


@given(files_program(5), st.integers(0, 1))
def test_more_lies_leave_more(program: Program, budget: int) -> None:
    def lying(most: int) -> set[str]:
        told = with_lies(program[len(SCENE) :], most)
        return set().union(*(on_files(MEDIA["lying-disk"](), (*SCENE, *each)) for each in told))

    assert on_files(MEDIA["page-cache"](), program) <= lying(budget) <= lying(budget + 1)


def strict_memory(line_of: Callable[[int], int]) -> Rules:
    return Strict()


@given(st.lists(ON_MEMORY, max_size=7).map(tuple))
def test_memory(program: Program) -> None:
    strict = on_memory(strict_memory, program)
    eadr, pmem, mmap = (on_memory(MEDIA[name], program) for name in ("pmem-eadr", "pmem", "mmap"))
    assert strict <= eadr <= pmem
    assert strict <= mmap


@given(st.lists(ON_SECTORS, max_size=6).map(tuple))
def test_sectors(program: Program) -> None:
    for size in (1, 2):
        assert on_sectors(Strict(), program, size) <= on_sectors(MEDIA["block"](), program, size)
    assert on_sectors(MEDIA["block"](), program, 2) <= on_sectors(MEDIA["block"](), program, 1)


@given(files_program(5), st.sampled_from(parse("fsync a; fsync d/c; fsync /; fdatasync b; sync")))
def test_a_persist_adds_no_image(program: Program, persist: Call) -> None:
    for name in ("strict", "ext4", "page-cache"):
        assert on_files(MEDIA[name](), (*program, persist)) <= on_files(MEDIA[name](), program)


@given(files_program())
def test_everything_persisted_leaves_one_image(program: Program) -> None:
    """And that is what every program reads: whatever the medium, the view is the same."""
    (view,) = on_files(Strict(), (*program, Call("sync", ())))
    for name in ("ext4", "page-cache", "failing-fsync", "lying-disk"):
        assert on_files(MEDIA[name](), (*program, Call("sync", ()))) == {view}


@given(files_program(), files_program(3))
def test_a_program_written_down_is_read_back(program: Program, other: Program) -> None:
    for each in (program, *one_fault(other)):
        assert parse(written(each)) == each
