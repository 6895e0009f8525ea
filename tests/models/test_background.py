"""What goes wrong behind the training's back is told once, in time, and never hides what went wrong in front (`loud`)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core import SaveFailed, SaveSkipped, Store, StoreClosed
from lastgood.core.memory import MemoryDevice, MemoryDirectory
from lastgood.models.decode import decode


class BrittleDirectory(MemoryDirectory):
    """Fails every persist of a slot while `broken` is set, once `may_persist` is."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.may_persist = threading.Event()
        self.may_persist.set()

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self.files[name] = BrittleDevice(self)
        return super().open(name, writable=writable)


class BrittleDevice(MemoryDevice):
    def __init__(self, directory: BrittleDirectory) -> None:
        super().__init__()
        self.directory = directory

    def persist(self) -> None:
        self.directory.may_persist.wait()
        if self.directory.broken:
            raise OSError(errno.EIO, "the disk is tired", "slot")


def ended(ckpt: lm.Checkpointer) -> None:
    """Wait until nothing is in flight."""
    for ticket in list(ckpt._tracker.in_flight):
        with contextlib.suppress(SaveFailed):
            ticket.wait()


def newest(directory: MemoryDirectory) -> int:
    with Store.open(directory, read_only=True) as store:
        return decode(store.read()).state["w"].item()


def test_a_failure_is_told_at_the_next_step_once_and_training_may_go_on() -> None:
    """The background save failed, training went on, and nobody heard of it until the next resume."""
    directory, state = BrittleDirectory(), {"w": torch.zeros(())}
    ckpt = lm.Checkpointer(directory, state, every=10)
    state["w"].fill_(1.0)
    assert ckpt.step(10) is not None
    ended(ckpt)
    directory.broken = True
    ticket = ckpt.step(20)
    assert ticket is not None
    ended(ckpt)
    with pytest.raises(SaveFailed, match=r"step 20 did not become durable.*tired"):
        ckpt.step(21)
    with pytest.raises(SaveFailed):
        ticket.wait()
    assert ckpt.step(22) is None, "told once"
    directory.broken = False
    state["w"].fill_(3.0)
    third = ckpt.step(30)
    assert third is not None
    assert third.wait().step == 30
    ckpt.close()
    assert newest(directory) == 3.0
    statistics = ckpt.statistics()
    assert (statistics.saves, statistics.published, statistics.failed) == (3, 2, 1)


def test_a_save_that_tells_of_an_earlier_failure_is_itself_under_way() -> None:
    directory, state = BrittleDirectory(), {"w": torch.zeros(())}
    ckpt = lm.Checkpointer(directory, state, every=1)
    ckpt.step(1).wait()  # type: ignore[union-attr]
    directory.broken = True
    ckpt.step(2)
    ended(ckpt)
    directory.broken = False
    state["w"].fill_(7.0)
    with pytest.raises(SaveFailed, match="step 2") as failure:
        ckpt.step(3)
    assert failure.value.ticket is not None
    assert failure.value.ticket.wait().step == 3
    ckpt.close()
    assert newest(directory) == 7.0


def test_a_save_that_fails_at_once_does_not_tell_of_itself() -> None:
    """It had failed before `save` returned, on a busy machine: `save` raised, and its caller took it for an earlier one."""
    directory = BrittleDirectory()
    ckpt = lm.Checkpointer(directory, {"w": torch.zeros(())})
    ckpt.save(1).wait()
    directory.broken = True
    begin = ckpt.capture.begin

    def begin_and_see_it_fail(*arguments: Any, **keywords: Any) -> Any:
        ticket = begin(*arguments, **keywords)
        with pytest.raises(SaveFailed):
            ticket.wait()
        return ticket

    ckpt.capture.begin = begin_and_see_it_fail  # type: ignore[method-assign]
    assert ckpt.save(2).outcome == "failed"
    directory.broken, ckpt.capture.begin = False, begin  # type: ignore[method-assign]
    with pytest.raises(SaveFailed, match="step 2") as failure:
        ckpt.save(3)
    assert failure.value.ticket is not None
    assert failure.value.ticket.wait().step == 3
    ckpt.close()


def test_a_failure_of_the_last_save_is_told_by_close() -> None:
    directory = BrittleDirectory()
    ckpt = lm.Checkpointer(directory, {"w": torch.zeros(())})
    ckpt.save(1).wait()
    directory.broken = True
    ckpt.save(2)
    with pytest.raises(SaveFailed, match="step 2"):
        ckpt.close()
    ckpt.close()
    assert ckpt.statistics().failed == 1
    with pytest.raises(StoreClosed, match="make a new one"):
        ckpt.save(3)


def test_several_failures_are_told_together() -> None:
    directory = BrittleDirectory()
    ckpt = lm.Checkpointer(directory, {"w": torch.zeros(())}, in_flight=4)
    ckpt.save(1).wait()
    directory.broken = True
    directory.may_persist.clear()
    for step in (2, 3, 4):
        ckpt.save(step)
    directory.may_persist.set()
    with pytest.raises(SaveFailed, match=r"did not become durable.*\(and 2 more saves failed\)"):
        ckpt.close()
    assert ckpt.statistics().failed == 3
    assert newest(directory) == 0.0


def fail_in_the_background_and_in_front(directory: BrittleDirectory) -> None:
    with lm.Checkpointer(directory, {"w": torch.zeros(())}) as ckpt:
        ckpt.save(1).wait()
        directory.broken = True
        ckpt.save(2)
        raise ZeroDivisionError("of the user's own")


def test_the_users_own_exception_stays_in_front(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError) as problem:
        fail_in_the_background_and_in_front(BrittleDirectory())
    told = capsys.readouterr().err + "".join(getattr(problem.value, "__notes__", []))
    assert "step 2 did not become durable" in told


def test_a_store_that_cannot_be_made_is_told_by_the_save(tmp_path: Path) -> None:
    """In a directory without write permission the save returned normally and wrote nothing."""
    (tmp_path / "file").write_text("x")
    ckpt = lm.Checkpointer(tmp_path / "file" / "store", {"w": 1}, every=1)
    with pytest.raises(Exception, match="file") as problem:
        ckpt.step(1)
    assert isinstance(problem.value, OSError | ValueError) or "is a file" in str(problem.value)


def test_a_step_that_is_not_due_does_nothing(tmp_path: Path) -> None:
    calls = 0

    class Watched(dict):  # type: ignore[type-arg]
        def __getitem__(self, name: str) -> Any:
            nonlocal calls
            calls += 1
            return super().__getitem__(name)

    state = Watched(w=torch.ones(3))
    with lm.Checkpointer(tmp_path / "store", state, every=1000) as ckpt:
        calls = 0
        for step in range(1, 1000):
            assert ckpt.step(step) is None
        assert calls == 0
        assert ckpt.statistics().stalled_seconds == 0.0
        assert not (tmp_path / "store").exists()


def test_the_counts_add_up(tmp_path: Path) -> None:
    state = {"w": torch.zeros(100_000)}
    with lm.Checkpointer(tmp_path / "store", state, every=2, in_flight=3) as ckpt:
        for step in range(1, 41):
            ckpt.step(step)
    numbers = ckpt.statistics()
    assert numbers.saves == 20
    assert numbers.published + numbers.superseded == 20
    assert (numbers.newest_started_step, numbers.newest_durable_step) == (40, 40)
    assert len(numbers.staleness_steps) == 20
    assert all(sample >= 0 for sample in numbers.staleness_steps)
    assert 0 < numbers.longest_stall_seconds <= numbers.stalled_seconds
    assert numbers.state_bytes > 400_000


def test_a_forked_child_leaves_its_parents_checkpoints_alone(tmp_path: Path) -> None:
    state = {"w": torch.zeros(())}
    ckpt = lm.Checkpointer(tmp_path / "store", state, every=1)
    ckpt.step(1)
    child = os.fork()
    if child == 0:
        try:
            ckpt.save(2)
        except StoreClosed:
            ckpt.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    state["w"].fill_(5.0)
    ckpt.step(3)
    ckpt.close()
    assert np.array_equal(lm.load(tmp_path / "store")["w"], torch.tensor(5.0))


ENDINGS = """
import errno, json, os, sys, torch
import lastgood.models as lm
from lastgood.core import files

torch.set_num_threads(1)

def train(path, broken):
    ckpt = lm.Checkpointer(path, {"w": torch.ones(300_000)}, every=1)
    ckpt.save(1).wait()
    if broken:
        def fail(self):
            raise OSError(errno.EIO, "the disk is tired", self.path)
        files.BufferedFile.persist = files.DirectFile.persist = fail
    ckpt.save(2)
    return ckpt

path = sys.argv[1]
lm.save(f"{path}/warm", {"w": 1})  # loads all code once, and leaves no thread behind
statuses = {}
for ending in ("returns", "kept", "exits", "raises", "returns broken", "kept broken", "exits broken", "raises broken"):
    child = os.fork()
    if child:
        statuses[ending] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        continue
    errors = os.open(f"{path}/{ending}.err", os.O_CREAT | os.O_WRONLY)
    os.dup2(errors, 2)
    ckpt = train(f"{path}/{ending}", "broken" in ending)
    if "returns" in ending:
        del ckpt
    elif "exits" in ending:
        sys.exit(0)
    elif "raises" in ending:
        raise RuntimeError("of the user's own")
    break
else:
    print(json.dumps(statuses))
"""


def test_a_checkpointer_left_open_at_exit_waits_and_tells(tmp_path: Path) -> None:
    """The last save of a run was lost, or failed with exit status 0, since nobody waited for it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ENDINGS, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    statuses = json.loads(done.stdout)
    assert statuses == {
        "returns": 0,
        "kept": 0,
        "exits": 0,
        "raises": 1,
        "returns broken": 1,
        "kept broken": 1,
        "exits broken": 1,
        "raises broken": 1,
    }
    for ending in statuses:
        told = (tmp_path / f"{ending}.err").read_text()
        with Store.open(tmp_path / ending, read_only=True) as store:
            record = store.newest()
            assert record is not None
            assert record.step == 2 or "broken" in ending
        assert ("step 2 did not become durable" in told) == ("broken" in ending)
        assert ("of the user's own" in told) == ("raises" in ending)


def test_skipped_saves_are_counted_and_hold_nobody_up() -> None:
    """Policy `skip`: when the storage is behind, a save is refused rather than waited for; its own ticket says so."""
    directory = BrittleDirectory()
    state = {"w": torch.zeros(())}
    with lm.Checkpointer(directory, state, every=1, in_flight=1, overload="skip", chunk_bytes=8192) as ckpt:
        ckpt.save(1).wait()
        directory.may_persist.clear()
        tickets = [ckpt.save(step) for step in (2, 3, 4)]
        directory.may_persist.set()
        assert [ticket.outcome for ticket in tickets[1:]] == ["skipped", "skipped"]
        with pytest.raises(SaveSkipped):
            tickets[1].wait()
    numbers = ckpt.statistics()
    assert (numbers.published, numbers.skipped, numbers.failed) == (2, 2, 0)


def test_options_of_the_store_may_stay_in_the_program_that_resumes(tmp_path: Path) -> None:
    for step in (1, 2):
        with lm.Checkpointer(tmp_path / "store", {"w": step}, every=1, chunk_bytes=8192, writers=1) as ckpt:
            assert ckpt.restore() == step - 1
            ckpt.step(step)
