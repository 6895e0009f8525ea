"""The power of the litmus programs: every medium has wrong twins, one rule changed in each, and a program tells them apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.media.block import IN_FLIGHT, Block
from lastgood.crashsim.media.ext4 import Ext4
from lastgood.crashsim.media.failing_fsync import FailingFsync
from lastgood.crashsim.media.files import CREATED, CUT, NAME, NEW_DATA, SIZE
from lastgood.crashsim.media.lying_disk import LyingDisk
from lastgood.crashsim.media.memory import NON_TEMPORAL
from lastgood.crashsim.media.mmap import Mmap
from lastgood.crashsim.media.page_cache import PageCache
from lastgood.crashsim.media.pmem import Pmem
from lastgood.crashsim.media.pmem_eadr import PmemEadr
from lastgood.crashsim.media.strict import Strict
from lastgood.crashsim.medium import Operation, Persist, Rules, State
from tests.crash.media.running import on_files, on_memory, on_sectors, set_up, with_lying
from tests.crash.media.tables import FILE_MEDIA, FILES, LIES, MEMORY, MEMORY_MEDIA, SECTORS, Row, expected


class SwapsFiles(Strict):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.scope == later.scope


class PersistsItsFileOnly(Strict):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return persist.file in operation.scope

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.overlaps(later)


class PersistsEveryFile(PageCache):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return not operation.forgotten


class PersistsNames(PageCache):
    names_follow_files = True


class KeepsTrying(PageCache):
    def forgets(self, persist: Persist, operation: Operation) -> bool:
        return False


class PutsPagesInOrder(PageCache):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.scope == later.scope


class ForgetsTheOrderOfOnePlace(PageCache):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return False


class AllocatesAtOnce(Ext4):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        journaled = (CUT, NAME, CREATED, SIZE)
        return super().ordered(earlier, later) or (earlier.note in journaled and later.note in journaled)


class WaitsForPages(Ext4):
    """What data=ordered alone would give, and a real ext4 does not."""

    def ordered(self, earlier: Operation, later: Operation) -> bool:
        if (earlier.note, later.note) == (NEW_DATA, SIZE) and not earlier.forgotten and earlier.scope == later.scope:
            return True
        return super().ordered(earlier, later)


class HasNoJournal(Ext4):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        names = (CUT, NAME, CREATED)
        return super().ordered(earlier, later) and (
            earlier.overlaps(later) or not (earlier.note in names and later.note in names)
        )


class ForgetsNothing(Ext4):
    def forgets(self, persist: Persist, operation: Operation) -> bool:
        return False


class DataOnlyIsAll(Ext4):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return super().forces(persist._replace(data_only=False), operation)


class DrainsWhatIsInFlight(Block):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return not operation.forgotten


class DrainsAgain(Block):
    def forgets(self, persist: Persist, operation: Operation) -> bool:
        return False


class NeverTears(Block):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.overlaps(later) or IN_FLIGHT in (earlier.note, later.note) or earlier.content == later.content


class FencesADisk(Mmap):
    def write_back(self, state: State, line: int, thread: int) -> State:
        return Pmem(self.line_of).write_back(state, line, thread)

    def forces(self, persist: Persist, operation: Operation) -> bool:
        return super().forces(persist, operation) or Pmem(self.line_of).forces(persist, operation)


class SnapshotsNothing(Mmap):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.place == later.place


class WritesBackTheWholeFile(Mmap):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return not operation.forgotten and persist.file >= 0


class AnybodyFences(Pmem):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return operation.note != 0 or persist.file in operation.scope


class NeedsNoFence(Pmem):
    def write_back(self, state: State, line: int, thread: int) -> State:
        left = tuple(each for each in state.outstanding if each.note or self.line_of(each.place) != line)
        base = list(state.base)
        for each in state.outstanding:
            if each not in left:
                base[each.place] = each.content
        return State(tuple(base), left)


class LosesTheOrderOfALine(Pmem):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.place == later.place


class WritesBackPastTheCache(Pmem):
    def write_back(self, state: State, line: int, thread: int) -> State:
        through = tuple(
            each._replace(note=0) if self.line_of(each.place) == line else each for each in state.outstanding
        )
        return super().write_back(State(state.base, through), line, thread)


class NeedsWriteBack(PmemEadr):
    def forces(self, persist: Persist, operation: Operation) -> bool:
        return Pmem.forces(self, persist, operation)


class LosesTheStoreBuffersOrder(PmemEadr):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return Pmem.ordered(self, earlier, later)


class OrdersPastTheCache(PmemEadr):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.place == later.place or earlier.thread == later.thread


class SharesOneBuffer(PmemEadr):
    def ordered(self, earlier: Operation, later: Operation) -> bool:
        return earlier.place == later.place or NON_TEMPORAL not in (earlier.note, later.note)


class NeverEvicts(FailingFsync):
    def evictions(self, state: State) -> list[State]:
        return []


class LiesForAWhile(LyingDisk):
    def forgets(self, persist: Persist, operation: Operation) -> bool:
        return False


def tells(rows: list[Row], column: int, run: Callable[[str], set[str]]) -> list[str]:
    """The programs of a table that tell a twin from the medium of this column."""
    return [row.name for row in rows if run(row.program) != expected(row.images, column)]


@pytest.mark.parametrize("twin", [SwapsFiles, PersistsItsFileOnly])
def test_strict(twin: type[Rules]) -> None:
    assert tells(FILES, FILE_MEDIA.index("strict"), lambda program: on_files(twin(), program))


@pytest.mark.parametrize(
    "twin", [PersistsEveryFile, PersistsNames, KeepsTrying, PutsPagesInOrder, ForgetsTheOrderOfOnePlace]
)
def test_page_cache(twin: type[Rules]) -> None:
    assert tells(FILES, FILE_MEDIA.index("page-cache"), lambda program: on_files(twin(), program))


@pytest.mark.parametrize("twin", [AllocatesAtOnce, WaitsForPages, HasNoJournal, ForgetsNothing, DataOnlyIsAll])
def test_ext4(twin: type[Rules]) -> None:
    assert tells(FILES, FILE_MEDIA.index("ext4"), lambda program: on_files(twin(), program))


@pytest.mark.parametrize("twin", [DrainsWhatIsInFlight, DrainsAgain, NeverTears])
def test_block(twin: type[Rules]) -> None:
    assert tells(SECTORS, 2, lambda program: on_sectors(twin(), program))


def test_block_with_atoms_of_another_size() -> None:
    assert tells(SECTORS, 1, lambda program: on_sectors(Block(), program))


@pytest.mark.parametrize(
    ("medium", "twin"),
    [
        ("mmap", FencesADisk),
        ("mmap", SnapshotsNothing),
        ("mmap", WritesBackTheWholeFile),
        ("pmem", AnybodyFences),
        ("pmem", NeedsNoFence),
        ("pmem", LosesTheOrderOfALine),
        ("pmem", WritesBackPastTheCache),
        ("pmem-eadr", NeedsWriteBack),
        ("pmem-eadr", LosesTheStoreBuffersOrder),
        ("pmem-eadr", OrdersPastTheCache),
        ("pmem-eadr", SharesOneBuffer),
    ],
)
def test_memory(medium: str, twin: type[Rules]) -> None:
    assert tells(MEMORY, MEMORY_MEDIA.index(medium), lambda program: on_memory(twin, program))


def test_failing_fsync() -> None:
    program = "create a; append a o; sync; write a 0 n; fsync a: EIO"
    assert set_up(NeverEvicts(), program).views() != set_up(MEDIA["failing-fsync"](), program).views()


def test_lying_disk() -> None:
    assert tells(LIES, 1, lambda program: with_lying(LiesForAWhile(), program, 1))


def test_no_medium_is_without_a_twin() -> None:
    twins = [each for each in globals().values() if isinstance(each, type) and each.__module__ == __name__]
    assert set(MEDIA) == {each.name for each in twins}
