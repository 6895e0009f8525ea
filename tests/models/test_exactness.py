"""Killed at random and resumed, a training ends exactly where the one that was never killed ends (`newest-survives`)."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import lastgood.models as lm
from lastgood.core import Store
from tests.models.recipes import KINDS, OPTIMIZERS, STEPS, Recipe

pytestmark = pytest.mark.filterwarnings(
    "ignore:Detected call of `lr_scheduler.step"
)  # the scaler skips the first updates

KILLS = 50 if os.environ.get("LASTGOOD_PROFILE") == "nightly" else 3


def train(path: Path, optimizer: str, kind: str, draw: random.Random, stop: int | None, instant: float) -> str:
    """Resume and train to the end, or be killed `instant` seconds after the update `stop`; returns the digest."""
    recipe = Recipe(optimizer, kind, seed=draw.randrange(1000))
    ckpt = lm.Checkpointer(
        path, recipe.state(), every=draw.choice((1, 2, 3)), capture=draw.choice(("boundary", "lazy"))
    )
    start = ckpt.restore()
    if start == 0:  # a resume brings everything back; what was never saved begins as it began
        ckpt.close()
        recipe = Recipe(optimizer, kind)
        ckpt = lm.Checkpointer(path, recipe.state(), every=1, capture=draw.choice(("boundary", "lazy")))
        assert ckpt.restore() == 0
    for step in range(start, STEPS):
        recipe.advance()
        if step == stop:
            threading.Timer(instant, os.kill, (os.getpid(), signal.SIGKILL)).start()
        ckpt.step(step + 1)
    if stop is not None:  # it was to be killed before the step it resumed from, or the timer is late
        os.kill(os.getpid(), signal.SIGKILL)
    ckpt.close()
    return recipe.digest()


def in_a_child(work: Callable[[], str]) -> tuple[int, str]:
    """Do the work in a process of its own: its exit status (negative when killed) and what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def undisturbed(optimizer: str, kind: str) -> str:
    recipe = Recipe(optimizer, kind)
    for _ in range(STEPS):
        recipe.advance()
    return recipe.digest()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_killed_and_resumed(quick_path: Path, optimizer: str, kind: str) -> None:
    draw = random.Random(zlib.crc32(f"{optimizer} {kind}".encode()))
    expected = undisturbed(optimizer, kind)
    kills = 0
    for attempt in range(KILLS):
        path = quick_path / "store" if KILLS <= 3 else quick_path / f"store-{attempt // 3}"
        stop, instant = draw.randrange(STEPS), draw.choice((0.0, 0.001, 0.003))
        status, _ = in_a_child(lambda: train(path, optimizer, kind, draw, stop, instant))  # noqa: B023
        if status == 1:
            pytest.fail("the child has failed, see its message")
        kills += status == -signal.SIGKILL
        if (attempt + 1) % 3 == 0 or attempt == KILLS - 1:
            with Store.open(path, read_only=True) as store:
                assert store.newest() is None or 1 <= store.newest().step <= STEPS  # type: ignore[union-attr]
            status, digest = in_a_child(lambda: train(path, optimizer, kind, draw, None, 0.0))  # noqa: B023
            assert status == 0
            assert digest == expected, f"after {attempt + 1} kills"
    assert kills >= KILLS // 3


def test_the_recipes_are_what_they_say() -> None:
    """The scaler skips updates, the average and the batch statistics move, batches are cut by the end of an epoch."""
    torch.set_num_threads(1)
    scaled = Recipe("adam", "scaler")
    for _ in range(STEPS):
        scaled.advance()
    assert 1 < scaled.scaler.get_scale() < 2.0**127
    assert {int(each["step"]) for each in scaled.optimizer.state.values()} != {STEPS}
    averaged = Recipe("sgd", "average")
    averaged.advance()
    assert averaged.average.n_averaged == 1
    cut = Recipe("sgd", "mid-epoch")
    for _ in range(STEPS):
        cut.advance()
    assert cut.loader.epoch == 4
    assert len({Recipe("sgd", kind).digest() for kind in KINDS}) >= 3
