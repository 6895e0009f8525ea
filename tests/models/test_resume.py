"""A resumed run is the run that never stopped, bit for bit: every update, every draw, every batch."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core import Store
from tests.models.training import Job

STEPS = 20


def digests(job: Job, steps: int = STEPS) -> list[str]:
    """The digest at every update boundary; entry n is after n updates."""
    found = [job.digest()]
    for _ in range(steps):
        job.step()
        found.append(job.digest())
    return found


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "adafactor"])
@pytest.mark.parametrize("stop", [1, 7, 8, 13])
def test_it_equals_the_run_that_never_stopped(tmp_path: Path, optimizer: str, stop: int) -> None:
    expected = digests(Job(optimizer))
    job = Job(optimizer)
    with lm.Checkpointer(tmp_path / "store", job.state(), every=3) as ckpt:
        assert ckpt.restore() == 0
        for step in range(stop):
            job.step()
            ckpt.step(step + 1)
        ckpt.save(stop)
    fresh = Job(optimizer, seed=12345)
    fresh.sampler = lm.ResumableSampler(len(fresh.x), seed=0)
    fresh.batches = iter(fresh.sampler.batches(5, endless=True))
    with lm.Checkpointer(tmp_path / "store", fresh.state(), every=1) as ckpt:
        assert ckpt.restore() == stop
        assert fresh.digest() == expected[stop]
        for step in range(stop, STEPS):
            fresh.step()
            ckpt.step(step + 1)
            assert fresh.digest() == expected[step + 1], f"step {step + 1} differs"


def test_saving_changes_no_later_draw_and_no_value(tmp_path: Path) -> None:
    expected = digests(Job())
    job = Job()
    with lm.Checkpointer(tmp_path / "store", job.state(), every=1) as ckpt:
        for step in range(STEPS):
            job.step()
            ckpt.step(step + 1)
            assert job.digest() == expected[step + 1]


def test_a_save_between_backward_and_update_leaves_gradients_alone(tmp_path: Path) -> None:
    job = Job()
    job.step()
    gradients = {name: each.grad.clone() for name, each in job.model.named_parameters() if each.grad is not None}
    with lm.Checkpointer(tmp_path / "store", job.state()) as ckpt:
        ckpt.save(1)
    for name, each in job.model.named_parameters():
        assert (each.grad is None) == (name not in gradients)
        if each.grad is not None:
            assert each.grad.equal(gradients[name])
            assert not each.is_shared()


def test_moments_that_do_not_exist_yet_stay_absent(tmp_path: Path) -> None:
    """Resuming died, or lost all moments in silence, when a parameter had never got a gradient."""
    job = Job()
    job.step()
    with lm.Checkpointer(tmp_path / "store", job.state()) as ckpt:
        ckpt.save(1)
    saved = job.optimizer.state_dict()["state"]
    for steps in (0, 3):
        other = Job(seed=0)
        for _ in range(steps):
            other.step()
        with lm.Checkpointer(tmp_path / "store", other.state()) as ckpt:
            ckpt.restore()
        restored = other.optimizer.state_dict()["state"]
        assert restored.keys() == saved.keys()
        assert all(restored[n][key].equal(saved[n][key]) for n in saved for key in saved[n])


def test_the_first_save_leaves_room_for_moments_to_come(tmp_path: Path) -> None:
    """A job that saves before its first update has no moments yet: three times the state is still to come."""
    model = torch.nn.Linear(500, 500)
    optimizer = torch.optim.AdamW(model.parameters(), amsgrad=True)
    with lm.Checkpointer(tmp_path / "store", {"model": model, "optimizer": optimizer}, every=1) as ckpt:
        ckpt.save(0)
        model(torch.ones(1, 500)).sum().backward()
        optimizer.step()
        ckpt.save(1).wait()
    assert lm.load(tmp_path / "store", step=1)["optimizer"]["state"][0]["max_exp_avg_sq"].shape == (500, 500)


def test_nothing_restored_is_shared_with_another_restored_copy(tmp_path: Path) -> None:
    """`optimizer.load_state_dict` keeps the tensors it is given: two jobs restored from one read trained each other."""
    job = Job()
    job.step()
    with lm.Checkpointer(tmp_path / "store", job.state()) as ckpt:
        ckpt.save(1).wait()
        ckpt.restore()
        first = {id(each): each for group in job.optimizer.state.values() for each in group.values()}
        kept = {number: each.clone() for number, each in first.items()}
        ckpt.restore()
        job.step()
    assert all(each.equal(kept[number]) for number, each in first.items()), "training changed what was restored before"


CHILD = """
import sys
import lastgood.models as lm
from tests.models.training import Job

job = Job()
ckpt = lm.Checkpointer(sys.argv[1], job.state(), every=1)
start = ckpt.restore()
print("restored", start, job.digest(), flush=True)
tickets = []
for step in range(start + 1, 10**6):
    job.step()
    tickets.append(ckpt.step(step))
    while tickets and tickets[0].done:
        print("durable", tickets.pop(0).wait().step, flush=True)
"""


def test_killed_at_any_moment_it_goes_on_from_an_acknowledged_step(tmp_path: Path) -> None:
    """SIGKILL, again and again; each time the next process finds a whole state, none older than was acknowledged."""
    draw = random.Random(1)
    known: dict[int, str] = {}
    job, at = Job(), 0
    acknowledged = 0
    for _ in range(3):
        child = start_child(tmp_path / "store")
        assert child.stdout is not None
        _, step, digest = child.stdout.readline().split()
        assert int(step) >= acknowledged, "newest-survives"
        while at < int(step):
            job.step()
            at += 1
            known[at] = job.digest()
        assert at == 0 or known[int(step)] == digest, "never-wrong"
        for _ in range(draw.randrange(5, 40)):
            acknowledged = max(acknowledged, int(child.stdout.readline().split()[1]))
        os.kill(child.pid, signal.SIGKILL)
        rest = child.communicate()[0]
        acknowledged = max(
            [acknowledged, *(int(line.split()[1]) for line in rest.splitlines() if line.count(" ") == 1)]
        )
    with lm.Checkpointer(tmp_path / "store", job.state(), every=1) as ckpt:
        assert ckpt.restore() >= acknowledged
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert len({record.run for record in store.records()}) == 1, "every process went on with the same run"


def start_child(store: Path) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root)


def test_global_streams_are_restored_last(tmp_path: Path) -> None:
    """Loading an object may draw numbers; what counts is where the streams stand when `restore` returns."""

    class Drawing:
        def state_dict(self) -> dict[str, Any]:
            return {"a": 1}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            random.random(), np.random.rand(), torch.rand(1)

    with lm.Checkpointer(tmp_path / "store", {"x": Drawing()}) as ckpt:
        ckpt.save(1)
        expected = random.random(), np.random.rand(), torch.rand(1).item()
        assert ckpt.restore() == 1
        assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
    with lm.Checkpointer(tmp_path / "store", {"x": Drawing()}, rng=False) as ckpt:
        random.seed(5)
        ckpt.restore()
        random.random()
        drawn = random.random()
    random.seed(5)
    random.random(), random.random()
    assert drawn != expected[0]
