"""The real protocol on every medium: what is claimed there holds, what is not claimed is not held by luck.

Counts are goldens: they change with the protocol or with a medium's rules, and whoever changes those must say why.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import Report, explore
from lastgood.crashsim.core_system import CoreSystem
from lastgood.crashsim.core_target import edited, real_target, save
from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.promises import LOUD, MONOTONE, NEVER_WRONG, NEWEST_SURVIVES, PROMISES
from lastgood.crashsim.search import breadth_first
from lastgood.crashsim.store_layout import Layout, StoreMedium, content_of

TWO_SAVES = Bounds(saves=2)


def claimed(bounds: Bounds) -> Report:
    """The real protocol within these bounds, judged by what is claimed on its medium."""
    rules = MEDIA[bounds.medium]
    return explore("real", bounds, rules.digests, tuple(each for each in PROMISES if each in rules.promises))


@pytest.mark.parametrize(
    ("medium", "states"),
    [
        ("strict", 2_794),
        ("page-cache", 1_165),
        ("ext4", 1_165),
        ("mmap", 1_165),
        ("block", 1_857),
        ("pmem", 2_005),
        ("pmem-eadr", 2_005),
        ("failing-fsync", 1_165),
        ("lying-disk", 1_165),
    ],
)
def test_what_is_claimed_holds(medium: str, states: int) -> None:
    report = claimed(Bounds(saves=2, medium=medium))
    assert not report.sentence, "\n".join([report.sentence, *report.lines])
    assert report.result.exhaustive
    assert report.result.states == states


@pytest.mark.parametrize("medium", [name for name, rules in MEDIA.items() if rules.faults])
def test_what_is_claimed_holds_when_the_medium_fails(medium: str) -> None:
    """`newest-survives` and all the others where a persist fails and says so; `never-wrong` where it lies."""
    report = claimed(Bounds(savers=1, saves=3, faults=MEDIA[medium].faults, medium=medium))
    assert not report.sentence, "\n".join([report.sentence, *report.lines])
    assert report.result.exhaustive


@pytest.mark.parametrize("medium", ["pmem", "pmem-eadr"])
def test_persistent_memory_where_a_step_fails_and_where_one_persist_is_all(medium: str) -> None:
    for bounds in (Bounds(savers=1, saves=2, faults=1), Bounds(savers=1, saves=3, one_persist=1, keep=2)):
        ways = ("trusted",) if bounds.one_persist else MEDIA[medium].digests
        report = explore("real", bounds._replace(medium=medium), ways, tuple(PROMISES))
        assert not report.sentence, "\n".join([report.sentence, *report.lines])


@pytest.mark.parametrize("promise", [NEWEST_SURVIVES, MONOTONE, LOUD])
def test_what_a_lying_disk_breaks(promise: str) -> None:
    """One lie is enough for each promise that is not claimed there, which is why it is not."""
    assert promise not in MEDIA["lying-disk"].promises
    report = explore("real", Bounds(saves=2, faults=1, medium="lying-disk"), ("trusted",), (promise,))
    assert report.sentence.startswith(f"{promise} is broken")


def test_a_lying_disk_is_found_out_by_the_digests_alone() -> None:
    report = explore("real", Bounds(saves=1, faults=1, medium="lying-disk"), ("ignored",), (NEVER_WRONG,))
    assert report.sentence.startswith("never-wrong is broken")


def test_a_failed_persist_believed_is_lost_by_a_mere_process_crash() -> None:
    """The record's persist fails, the second one succeeds, the save is acknowledged, and the clean page is dropped.

    Nothing loses power: the process that starts again reads the record that the medium still has. A cache that never
    drops a page needs a power loss to show it.
    """
    bounds = Bounds(saves=2, faults=1, medium="failing-fsync")
    report = explore("retry-failed-record-persist", bounds, ("trusted",), (NEWEST_SURVIVES,))
    assert report.sentence.startswith("newest-survives is broken: after a process crash")
    assert report.replay.endswith(".K1")
    kept = explore(
        "retry-failed-record-persist", bounds._replace(medium="page-cache"), ("trusted",), (NEWEST_SURVIVES,)
    )
    assert kept.sentence.startswith("newest-survives is broken: after a power loss")


@pytest.mark.parametrize("digests", ["trusted", "ignored"])
@pytest.mark.parametrize(
    ("medium", "broken"),
    [("pmem", True), ("pmem-eadr", True), ("page-cache", False), ("block", False), ("mmap", False)],
)
def test_every_writer_persists_what_it_stored(medium: str, broken: bool, digests: str) -> None:
    """A fence of another thread says nothing: where a persist is per thread, `newest-survives` needs each writer's own."""
    careless = replace(real_target(), writers_persist=False)
    result = breadth_first(CoreSystem(careless, Bounds(saves=2, medium=medium), (digests,)))
    assert (result.counterexample is not None) == broken
    assert result.counterexample is None or result.counterexample.violation.promise in (NEWEST_SURVIVES, NEVER_WRONG)


@pytest.mark.parametrize("medium", ["page-cache", "pmem"])
def test_a_write_that_fails_may_have_written(medium: str) -> None:
    """Short writes and late errors. A save that takes "failed" for "nothing is there" would hand the doubtful slot on."""
    bounds = Bounds(savers=1, saves=3, faults=1, medium=medium)
    hands_on = edited(
        save.save,
        (
            (
                "    yield WRITE_RECORD\n",
                "    yield WRITE_RECORD\n    if mine[STATUS] != DONE:\n        mine[OUTCOME] = FAILED\n"
                "        fetch_add(cells, free_cell, bit)\n        yield STEP\n        return\n",
            ),
        ),
    )
    found = breadth_first(CoreSystem(replace(real_target(), save=hands_on), bounds, ("ignored",))).counterexample
    assert found is not None
    assert found.violation.promise == NEVER_WRONG
    assert [move[-1] for move in found.moves if move[-1] in "xyz"] == ["z"], "all of it was written, and it failed"
    assert explore("real", bounds, ("ignored",), (NEVER_WRONG,)).result.exhaustive


NEW, OLD = content_of(2, 0), content_of(1, 0)


def store_on(medium: str) -> tuple[StoreMedium, int]:
    """One slot with a checkpoint in it, durable."""
    layout = Layout(slots=1, chunks=2)
    store = StoreMedium(layout, MEDIA[medium]())
    return store, store.settled([OLD] * layout.places_per_slot + [1])


def payloads(store: StoreMedium, number: int) -> set[int]:
    """Every payload that a power loss leaves in the slot."""
    return {store.contents(each).payloads[0] for each, _ in store.power_losses(number)}


@pytest.mark.parametrize(("medium", "left"), [("page-cache", {NEW}), ("block", {NEW}), ("pmem", {OLD, NEW, -1})])
def test_the_savers_persist_and_the_writers(medium: str, left: set[int]) -> None:
    """The saver's persist of its file covers what its writers stored, except on persistent memory."""
    store, number = store_on(medium)
    for chunk in range(2):
        number = store.write_chunk(number, 0, chunk, NEW)
    assert payloads(store, store.persist(number, 0)) == left
    for chunk in range(2):
        number = store.persist_chunk(number, 0, chunk)
    assert payloads(store, number) == ({NEW} if medium == "pmem" else {OLD, NEW, -1})


def test_recovery_persists_what_it_wrote_itself() -> None:
    store, number = store_on("pmem")
    number = store.rewrite_payload(number, 0, NEW)
    assert payloads(store, number) == {OLD, NEW, -1}
    assert payloads(store, store.persist(number, 0)) == {NEW}


def test_one_disk_is_drained_for_all_files() -> None:
    """The mark's persist makes a record durable on a disk of its own cache, not behind a page cache."""
    for medium, left in (("block", {NEW}), ("page-cache", {OLD, NEW, -1})):
        store, number = store_on(medium)
        number = store.persist(store.write_record(number, 0, NEW), file=1)
        assert {store.contents(each).records[0] for each, _ in store.power_losses(number)} == left
