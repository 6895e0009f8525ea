"""One cell of `bench train`: what is measured, and that a checkpoint which is not what was saved is seen."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lastgood.benchmarks.train.contender import Contender, Peer
from lastgood.benchmarks.train.field import FIELD
from lastgood.benchmarks.train.job import STEP_KINDS, Job, differences
from lastgood.benchmarks.train.loop import Cell, Loop, measure, run_cell
from lastgood.benchmarks.train.ours import Lastgood
from lastgood.benchmarks.train.plain import TorchSave
from lastgood.benchmarks.train.process import run_alone
from lastgood.benchmarks.train.usage import Use

SMALL = {"state_mb": 1, "step_seconds": 0.001, "least_seconds": 0.01}


def cell(name: str, interval: int = 2, step_kind: str = "emulated") -> Cell:
    return Cell(name, interval=interval, step_kind=step_kind, **SMALL)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _threads() -> Any:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("step_kind", STEP_KINDS)
@pytest.mark.parametrize(
    "name",
    ["none", "lastgood-boundary-2", "lastgood-lazy-1", "lastgood-lazy-1-skip", "torch-save", "torch-save-thread"],
)
def test_a_cell_saves_what_it_says_and_reads_it_back(name: str, step_kind: str, tmp_path: Path) -> None:
    told = run_cell(cell(name, step_kind=step_kind), FIELD[name].make(), str(tmp_path))
    assert told["wrong"] == []
    assert told["iterations"] == 2 * told["saves"]
    assert told["saves"] >= 2
    assert told["state_bytes"] == pytest.approx(2**20, rel=0.1)
    if name == "none":
        assert (told["complete"], told["staleness"], told["written_bytes"]) == (0, None, 0)
    else:
        assert told["stall_seconds"] > 0
        assert told["complete"] + told["dropped"] <= told["saves"] + Lastgood("lazy", 2).places


class Aliasing(TorchSave):
    """Writes the live tensors, and only when it is waited for: by then the training has changed them."""

    def start(self, step: int, path: str) -> Callable[[], Any]:
        self._go = threading.Event()
        return lambda: (self._go.wait(), TorchSave.start(self, step, path))

    def drain(self) -> None:
        if hasattr(self, "_go"):
            self._go.set()
        super().drain()


class Forgetful(TorchSave):
    """Reports a save as complete that it never wrote."""

    def start(self, step: int, path: str) -> Callable[[], Any]:
        return super().start(step, path) if step < 0 else lambda: None

    def read(self, path: str) -> dict[str, torch.Tensor]:
        return {}


def test_a_copy_that_is_made_too_late_is_seen(tmp_path: Path) -> None:
    told = run_cell(cell("aliasing"), Aliasing(), str(tmp_path))
    assert len(told["wrong"]) == 3, "every tensor has been changed since"


def test_a_checkpoint_without_its_tensors_is_seen(tmp_path: Path) -> None:
    assert run_cell(cell("forgetful"), Forgetful(), str(tmp_path))["wrong"]


def test_a_save_that_fails_on_a_thread_is_told(tmp_path: Path) -> None:
    class Failing(TorchSave):
        def start(self, step: int, path: str) -> Callable[[], Any]:
            return lambda: open(tmp_path / "no" / "such", "rb")

    with pytest.raises(FileNotFoundError):
        run_cell(cell("failing"), Failing(), str(tmp_path))


class Slow(Contender):
    """Holds the training for so long at every save, and drops every second one."""

    name, warm_saves = "slow", 1

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self.steps: list[int] = []

    def save(self, step: int) -> None:
        time.sleep(self._seconds)
        if len(self.steps) % 2:
            self.dropped += 1
        self.steps.append(step)

    def newest_durable_step(self) -> int | None:
        return self.steps[-1] if self.steps else None

    def durable_count(self) -> int:
        return len(self.steps) - self.dropped


def test_what_is_measured_is_whole_intervals() -> None:
    """Two measurements of one run: a save that holds the training for ten steps' time makes the mean step so much longer."""
    contender = Slow(0.05)
    loop = Loop(cell("slow", interval=5), contender, Job(1, "emulated", 0.001))
    loop.interval()
    told = measure(loop)
    assert told["iterations"] == 5 * told["saves"]
    assert loop.step == told["iterations"] + 5
    assert [step % 5 for step in contender.steps] == [0] * len(contender.steps)
    assert told["stall_seconds"] >= 0.05
    assert told["iteration_seconds"] >= told["stall_seconds"] / 5
    assert told["dropped"] + told["complete"] == told["saves"]
    assert told["staleness"] == 2, "0, 1, 2, 3, 4 steps behind, over and over"


def test_the_step_is_not_counted_as_what_saving_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both burn CPU, on the one thread; only the contender's counts. Other tests of this session are left out."""
    monkeypatch.setattr("lastgood.benchmarks.train.loop.use_of", lambda session: Use(time.process_time(), 0))

    def burn(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    class Busy(Slow):
        def save(self, step: int) -> None:
            burn(0.2)
            super().save(step)

    job = Job(1, "emulated", 0.0)
    job.compute = lambda: burn(0.5)  # type: ignore[method-assign]
    told = measure(Loop(cell("busy", interval=1), Busy(0.0), job))
    assert told["saves"] == 2
    assert 0.3 < told["cpu_seconds"] < 1.0, "2 times 0.2, whereas the steps took 2 times 0.5"


def test_a_peer_keeps_two_and_persists_when_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    persisted: list[str] = []
    monkeypatch.setattr("lastgood.benchmarks.train.contender.persist", persisted.append)

    class Folder(Peer):
        name = "folder"

        def start(self, step: int, path: str) -> Callable[[], Any]:
            (Path(path) / "inner").mkdir(parents=True)
            (Path(path) / "inner" / "data").write_bytes(b"x")
            return lambda: None

    plain, durable = Folder(), Folder(with_fsync=True)
    assert (plain.name, plain.is_durable) == ("folder", False)
    assert (durable.name, durable.is_durable) == ("folder+fsync", True)
    for peer in (plain, durable):
        place = tmp_path / peer.name
        place.mkdir()
        peer.begin(Job(1, "emulated", 0.0), str(place))
        for step in (3, 6, 9, 12):
            peer.save(step)
        peer.drain()
        assert sorted(path.name for path in place.iterdir()) == ["step-00000009", "step-00000012"]
        assert peer.newest_durable_step() == 12
        peer.close()
    newest = tmp_path / "folder+fsync" / "step-00000012"
    assert persisted[-4:] == [str(newest), str(newest / "inner" / "data"), str(newest / "inner"), str(newest.parent)]
    assert not any(path.startswith(str(tmp_path / "folder") + "/") for path in persisted)


def test_differences_are_by_name() -> None:
    one = {"a": torch.ones(3), "b": torch.zeros(2)}
    assert differences(one, {"a": torch.ones(3), "b": torch.zeros(2)}) == []
    assert differences(one, {"a": torch.ones(3)}) == ["b"]
    assert differences(one, {"a": torch.tensor([1.0, 1.0, 2.0]), "b": torch.zeros(2)}) == ["a"]


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: {"answer": 42}, None),
        (lambda: {}["no"], "KeyError: 'no' (test_cells.py:"),
        (lambda: os._exit(3), "its process died"),
        (lambda: time.sleep(60), "not done after 1 s"),
    ],
    ids=["done", "raises", "dies", "hangs"],
)
def test_whatever_a_process_does_its_end_is_told_and_nobody_of_it_is_left(
    work: Callable[[], Any], said: str | None, tmp_path: Path
) -> None:
    """Each also starts a process of its own, as some peers do."""

    def busy() -> Any:
        child = subprocess.Popen(["sleep", "60"])
        (tmp_path / "child").write_text(str(child.pid))
        return work()

    told = run_alone(busy, str(tmp_path), 1.0 if said and "done" in said else 60.0)
    assert told.get("answer") == (None if said else 42)
    assert (said or "") in told.get("error", "")
    child = int((tmp_path / "child").read_text())
    end = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()
