"""A whole job, once for every single thing that the world can refuse it, and once for every moment when it gives up for good.

`scene` has the job and what must hold after each of its acts: `loud`, `no-harm`, `no-leak`, `bounded`, `newest-survives`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lastgood.core.jit import JIT
from tests.faults.refusing import Refusal, RefusingSystem, counted, system
from tests.faults.scene import ERRORS, Scene, play
from tests.store.small import files_of
from tests.store.watched import WatchedMemory

STRIDE = 1 if JIT else 7
"""Interpreted, where a job takes ten times as long, one refusal in seven."""


def play_in_memory(refusal: Refusal, **geometry: Any) -> Scene:
    """Operations of devices are refused."""
    directory = WatchedMemory(refusal)
    scene = Scene(lambda: directory, directory.contents, refusal)
    scene.geometry = geometry
    play(scene)
    return scene


@pytest.fixture
def fast_place() -> Iterator[Path]:
    """A directory on a file system in memory where there is one: a thousand stores are made there."""
    shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=shared_memory) as place:
        yield Path(place)


def play_on_files(refusal: Refusal, place: Path, device: str) -> Scene:
    """Calls into the system are refused."""
    path = place / "made" / "store"
    scene = Scene(lambda: path, lambda: files_of(path) if path.exists() else {}, refusal)
    scene.options["device"] = device
    try:
        with system(RefusingSystem(refusal)):
            play(scene)
        if refusal.refused and "header" not in scene.contents():
            assert os.listdir(place) == [], "a creation that failed left something behind"
    finally:
        shutil.rmtree(place / "made", ignore_errors=True)
    return scene


def refused_at(run: Callable[[Refusal], Any], *numbers: int, error: int = errno.EIO, lasting: bool = False) -> None:
    """Run with these refused; a failure says which ones they were."""
    refusal = Refusal(*numbers, error=error, lasting=lasting)
    try:
        run(refusal)
    except BaseException as failure:
        failure.add_note(f"refused were {numbers}: {refusal.refused[:2]}, {os.strerror(error)}, {lasting=}")
        raise
    assert refusal.refused, "the run took another path than the one that was counted"


def at_every_number(run: Callable[[Refusal], Any], error: int, *, lasting: bool = False) -> None:
    """Run once for each thing that can be refused."""
    total = len(counted(run))
    assert total > 50
    for number in range(0, total, STRIDE):
        refused_at(run, number, error=error, lasting=lasting)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
def test_every_operation_of_a_device(error: int, lasting: bool) -> None:
    at_every_number(play_in_memory, error, lasting=lasting)


@pytest.mark.parametrize("persists", [2, 1])
def test_every_operation_of_a_device_when_no_slot_is_to_spare(persists: int) -> None:
    """One in flight, so that a quarantined slot is needed again at once."""
    for lasting in (False, True):
        at_every_number(
            lambda refusal: play_in_memory(refusal, in_flight=1, persists=persists), errno.EIO, lasting=lasting
        )


@pytest.mark.parametrize("distance", range(1, 9))
def test_two_refusals_close_together(distance: int) -> None:
    """The second one meets the store in whatever state the first one left it in: a slot in quarantine, no mark yet."""

    def run(refusal: Refusal) -> Scene:
        return play_in_memory(refusal, in_flight=1)

    for number in range(0, len(counted(run)) - distance, STRIDE):
        refused_at(run, number, number + distance)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("device", ["buffered", "auto"])
def test_every_call_into_the_system(fast_place: Path, device: str, lasting: bool) -> None:
    at_every_number(lambda refusal: play_on_files(refusal, fast_place, device), errno.EIO, lasting=lasting)


def test_full_disks(fast_place: Path) -> None:
    at_every_number(lambda refusal: play_on_files(refusal, fast_place, "buffered"), errno.ENOSPC, lasting=True)


def test_the_job_does_what_is_refused_above() -> None:
    """An operation that the job never makes would never be refused."""
    happened = "\n".join(counted(play_in_memory))
    for what in (
        "allocate slot", "persist slot", r"write slot-\d+ at 0", r"write slot-\d+ at 4096", r"write slot-\d+ at 20480",
        "write header at 4096", "persist header", r"read slot-\d+ at 0", r"read slot-\d+ at 4096",
    ):  # fmt: skip
        assert re.search(what, happened), f"{what} is not in {happened}"
    assert happened.count("header") == 4, "the mark is written by the first save, and again by the next writer"
