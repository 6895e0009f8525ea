"""Lazy capture: what is saved is the state at the boundary, whatever forward, backward and update do next (`never-wrong`)."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import lastgood.models as lm
from lastgood.benchmarks.lazy import counted_arenas
from lastgood.core import SaveFailed, Store
from lastgood.core.memory import MemoryDirectory
from lastgood.models.capture import PackedBytes
from lastgood.models.choosing import AutoCopy, prefers_lazy
from lastgood.models.copier import Copy, MovedWhileCopied, ThreadCopier
from lastgood.models.device_link import read_ahead
from lastgood.models.encode import encode
from lastgood.models.lazy import LazyCopy, Scratch

torch.set_num_threads(1)

WIDTH = 96  # weights of 36 KiB, which are copied lazily; biases, which are not


class LateCopier(ThreadCopier):
    """A thread that takes its time before every piece, so that the training is far ahead."""

    def submit(self, copy: Copy) -> None:
        run = copy.run

        def slowly() -> Iterator[None]:
            time.sleep(0.003)
            for piece in run():
                yield piece
                time.sleep(0.0005)

        copy.run = slowly  # type: ignore[method-assign]
        super().submit(copy)


class Rescaling(nn.Module):
    """Everything that forward is known to change: batch statistics, spectral norm of both kinds, a rescaled embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(200, WIDTH, max_norm=1.0)
        self.first = nn.utils.spectral_norm(nn.Linear(WIDTH, WIDTH))
        self.second = nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH))
        self.norm = nn.BatchNorm1d(WIDTH)
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.frozen(self.norm(self.second(self.first(self.words(ids)).relu()))).square().mean()


class Loop:
    """A training loop; `boundaries` has the bytes of the whole state after every update."""

    def __init__(self, capture: Any, directory: Any = None, **options: Any) -> None:
        torch.manual_seed(0)
        self.model = Rescaling()
        self.average = torch.optim.swa_utils.AveragedModel(self.model)
        self.optimizer = torch.optim.AdamW([each for each in self.model.parameters() if each.requires_grad], lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 50)
        self.state = {
            "model": self.model, "average": self.average, "optimizer": self.optimizer, "scheduler": self.scheduler,
            "notes": {"table": np.zeros(9000), "seen": []},
        }  # fmt: skip
        self.directory = MemoryDirectory() if directory is None else directory
        self.ckpt = lm.Checkpointer(self.directory, self.state, capture=capture, in_flight=3, keep=4, **options)
        self.boundaries: dict[int, bytes] = {}

    def update(self, step: int) -> None:
        self.optimizer.zero_grad()
        self.model(torch.randint(0, 200, (16,))).backward()
        self.optimizer.step()
        self.scheduler.step()
        self.average.update_parameters(self.model)
        self.state["notes"]["table"][:] = step
        self.state["notes"]["seen"].append(step)

    def run(self, start: int, stop: int) -> None:
        for step in range(start, stop):
            self.update(step)
            self.boundaries[step] = self.ckpt._encode().to_bytes()
            self.ckpt.step(step)

    def check(self) -> list[int]:
        """Every checkpoint in the store is its boundary, byte for byte; returns their steps."""
        with Store.open(self.directory, read_only=True) as store:
            records = store.records()
            for record in records:
                assert store.read(record).tobytes() == self.boundaries[record.step], f"step {record.step} is a mix"
        return [record.step for record in records]


@pytest.mark.parametrize("every", [1, 2, 5])
def test_every_checkpoint_is_its_boundary(every: int) -> None:
    loop = Loop(LazyCopy(LateCopier()), every=every)
    with loop.ckpt:
        loop.run(1, 21)
        assert loop.ckpt.statistics().update_wait_seconds > 0
    assert loop.check()[0] == 20
    assert loop.ckpt.statistics().failed == 0


def test_the_check_sees_it_when_nothing_is_held_at_the_boundary() -> None:
    """Batch statistics, the vectors of spectral norm, a rescaled embedding: forward changes them before any gate."""

    class HoldsNothing(Scratch):
        def held(self, region: Any) -> Any:
            return lambda: region

    capture = LazyCopy(LateCopier())
    loop = Loop(capture, every=1)
    capture._scratch = HoldsNothing()
    with loop.ckpt:
        loop.run(1, 8)
    with pytest.raises(AssertionError, match="is a mix"):
        loop.check()


def test_a_weight_that_the_loop_itself_changes_voids_that_save_and_is_held_from_then_on() -> None:
    """Clipped weights after the boundary: no optimizer step, so no gate."""
    loop = Loop(LazyCopy(LateCopier()), every=1)
    with loop.ckpt:
        loop.run(1, 4)
        loop.update(4)
        loop.boundaries[4] = loop.ckpt._encode().to_bytes()
        ticket = loop.ckpt.save(4)
        with torch.no_grad():
            loop.model.frozen.weight.clamp_(-0.01, 0.01)
        loop.update(5)
        with pytest.raises(SaveFailed) as failure:
            ticket.wait()
        assert isinstance(failure.value.__cause__, MovedWhileCopied)
        assert "model['frozen.weight'] was changed outside of an optimizer step" in str(failure.value)
        with pytest.raises(SaveFailed, match="step 4"):
            loop.ckpt.step(5)
        loop.boundaries[5] = loop.ckpt._encode().to_bytes()
        for step in range(6, 10):
            with torch.no_grad():
                loop.model.frozen.weight.add_(0.1)
            loop.update(step)
            loop.boundaries[step] = loop.ckpt._encode().to_bytes()
            loop.ckpt.step(step)
            with torch.no_grad():
                loop.model.frozen.weight.mul_(0.5)
    assert loop.check()[:4] == [9, 8, 7, 6]
    assert loop.ckpt.statistics().failed == 1


def test_weights_that_move_in_forward_for_reasons_of_their_own_are_found_before_they_do_harm() -> None:
    """The first save is a boundary copy, and what moves until the next update is remembered."""

    class Drifting(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                self.weight.mul_(0.999)
            return super().forward(x)

    capture = LazyCopy(LateCopier())
    loop = Loop(capture, every=1)
    loop.model.frozen = Drifting(WIDTH, WIDTH).requires_grad_(False)
    with loop.ckpt:
        loop.run(1, 12)
    assert loop.check()[0] == 11
    assert loop.ckpt.statistics().failed == 0


def test_a_loop_without_a_saved_optimizer_is_gated_too() -> None:
    """Only the model is saved; the optimizer that moves it is seen at its first step."""
    loop = Loop("lazy", every=1)
    loop.ckpt.close()
    directory, model = MemoryDirectory(), loop.model
    boundaries = {}
    with lm.Checkpointer(directory, {"model": model}, every=1, capture=LazyCopy(LateCopier()), keep=4) as ckpt:
        for step in range(1, 10):
            loop.update(step)
            boundaries[step] = ckpt._encode().to_bytes()
            ckpt.step(step)
    assert ckpt.statistics().update_wait_seconds > 0
    with Store.open(directory, read_only=True) as store:
        assert all(store.read(record).tobytes() == boundaries[record.step] for record in store.records())


def test_staging_memory_smaller_than_the_state(tmp_path: Path) -> None:
    """The update then waits for the medium, and nothing is mixed; memory stays what it was."""
    loop = Loop(LazyCopy(LateCopier()), tmp_path / "store", every=1, chunk_bytes=8192, staging_bytes=65536)
    with loop.ckpt:
        loop.run(1, 10)
        assert loop.ckpt._store is not None
        assert loop.ckpt._store.staging_bytes == 65536
    assert loop.check()[0] == 9


def test_the_arena_is_allocated_once(tmp_path: Path) -> None:
    """As `bench state` counts them: it counted at a place where arenas are no longer made, and reported none."""
    loop = Loop("lazy", tmp_path / "store", every=1)
    with counted_arenas() as made, loop.ckpt:
        loop.run(1, 4)
        area = loop.ckpt.capture._scratch._area  # type: ignore[attr-defined]
        loop.run(4, 12)
        assert loop.ckpt.capture._scratch._area is area  # type: ignore[attr-defined]
    assert len(made) == 1


def test_only_what_must_is_held_at_the_boundary() -> None:
    loop = Loop("lazy", every=1)
    with loop.ckpt:
        loop.run(1, 5)
        held = loop.ckpt.capture.held_bytes  # type: ignore[attr-defined]
        assert loop.ckpt.capture.explain().startswith(f"lazy: {held:,} bytes")
    total = loop.ckpt.statistics().state_bytes
    embedding, average = 200 * WIDTH * 4, sum(each.nbytes for each in loop.average.parameters())
    assert held < embedding + average + 9000 * 8 + 64 * 1024
    assert held < total / 2


def test_lazily_saved_and_restored_a_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    expected = Loop("boundary")
    with expected.ckpt:
        for step in range(1, 16):
            expected.update(step)
        final = expected.ckpt._encode().to_bytes()
    loop = Loop("lazy", tmp_path / "store", every=1)
    with loop.ckpt:
        loop.run(1, 8)
    again = Loop("auto", tmp_path / "store", every=1)
    with again.ckpt:
        assert again.ckpt.restore() == 7
        again.run(8, 16)
        assert again.ckpt._encode().to_bytes() == final


def test_a_save_after_another_without_an_update_in_between() -> None:
    loop = Loop(LazyCopy(LateCopier()), every=1)
    with loop.ckpt:
        loop.run(1, 4)
        loop.boundaries[100] = loop.boundaries[101] = loop.ckpt._encode().to_bytes()
        assert loop.ckpt.save(100).sequence < loop.ckpt.save(101).sequence
    assert loop.check()[:2] == [101, 100]


@pytest.mark.parametrize("is_there", [False, True])
def test_an_interrupt_on_the_way_to_the_copier_leaves_nobody_waiting(is_there: bool) -> None:
    """A Ctrl-C before the copier had it: the next update, close and exit waited for ever for a copy that nobody made."""

    class Interrupted(LateCopier):
        def submit(self, copy: Copy) -> None:
            if is_there:
                super().submit(copy)
                copy.copied.wait(60)
            raise KeyboardInterrupt

    capture = LazyCopy(LateCopier())
    loop = Loop(capture, every=1)
    with loop.ckpt:
        loop.run(1, 4)
        kept, capture._copier = capture._copier, Interrupted()
        loop.update(4)
        loop.boundaries[4] = loop.ckpt._encode().to_bytes()
        with pytest.raises(KeyboardInterrupt):
            loop.ckpt.save(4)
        capture._copier = kept
        loop.run(5, 6)
    assert loop.check()[:2] == [5, 4 if is_there else 3]


def test_closed_right_after_a_save() -> None:
    loop = Loop(LazyCopy(LateCopier()), every=1)
    with loop.ckpt:
        loop.run(1, 6)
    assert loop.check()[0] == 5


ENDING = """
import sys, torch
import lastgood.models as lm
from tests.models.test_lazy import LateCopier, LazyCopy, Loop

loop = Loop(LazyCopy(LateCopier()), sys.argv[1], every=1)
loop.run(1, 6)
if sys.argv[2] == "raises":
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize("ending", ["returns", "raises"])
def test_left_open_at_exit_the_copy_under_way_is_finished(tmp_path: Path, ending: str) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", ENDING, str(tmp_path / "store"), ending], env=environment, timeout=120)
    assert (done.returncode == 0) == (ending == "returns")
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert store.records()[0].step == 5


def test_a_forked_child_that_trains_does_not_wait_for_its_parents_copier() -> None:
    loop = Loop(LazyCopy(LateCopier()), every=1)
    with loop.ckpt:
        loop.run(1, 4)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                loop.update(4)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0


def test_auto_copies_small_states_at_the_boundary_and_large_ones_lazily() -> None:
    loop = Loop("auto", every=1)
    with loop.ckpt:
        loop.run(1, 6)
        assert isinstance(loop.ckpt.capture, AutoCopy)
        assert "only" in loop.ckpt.capture.explain()
        loop.state["notes"]["table"] = np.zeros(200_000)
        loop.run(6, 12)
        assert "only" not in loop.ckpt.capture.explain()
    assert loop.check()[0] == 11
    assert prefers_lazy(3, 4)
    assert not prefers_lazy(4, 3)
    assert prefers_lazy(4, 0)


@pytest.mark.parametrize("capture", ["sometimes", 7])
def test_a_capture_that_there_is_not(capture: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="choose one of boundary, lazy, auto"):
        lm.Checkpointer("x", {"w": 1}, capture=capture)


class LateLink:
    """A device that fills a host area only when it is waited for, and has two of them."""

    def __init__(self) -> None:
        self.areas = [bytearray(10**6), bytearray(10**6)]
        self.started: list[int] = []

    def start(self, read: Any, area: int) -> Any:
        self.started.append(area)
        return read, area

    def wait(self, started: Any) -> Any:
        read, area = started
        content = bytes(memoryview(read()))
        self.areas[area][: len(content)] = content
        return memoryview(self.areas[area])[: len(content)]


def test_regions_of_a_device_come_one_ahead_through_two_areas(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of starting and waiting, and that an area is not filled while it is read, with a stand-in for the device."""
    from lastgood.models import device_link

    monkeypatch.setattr(device_link, "is_remote", lambda read: isinstance(read, (device_link.LiveBytes, PackedBytes)))
    draw = random.Random(1)
    for _ in range(20):
        state = [torch.rand(draw.choice((3, 5000, 20_000))) for _ in range(7)] + [
            np.arange(9000.0),
            torch.rand(90, 90).t(),
        ]
        snapshot, link = encode(state), LateLink()
        held = type(snapshot).buffers
        readers = read_ahead(snapshot.readers, link)
        whole = b"".join(bytes(memoryview(each)) for each in held(dataclasses.replace(snapshot, readers=readers)))
        assert whole == snapshot.to_bytes()
        assert link.started == [number % 2 for number in range(len(link.started))]
