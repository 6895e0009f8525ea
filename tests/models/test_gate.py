"""No update touches a tensor whose copy is not complete, in whichever order training and copier move (`never-wrong`)."""

from __future__ import annotations

import gc
import os
import random
import time

import pytest
import torch

from tests.models.schedules import Scene, Touched, new_store

SCHEDULES = 10_000
SECONDS = 1e9 if os.environ.get("LASTGOOD_PROFILE") == "nightly" else 20.0


def test_ten_thousand_schedules() -> None:
    """All of them in the nightly profile; ordinarily as many as 20 seconds allow, and never fewer than 20."""
    torch.set_num_threads(1)
    began = time.monotonic()
    with new_store() as store:
        for number in range(SCHEDULES):
            Scene(store, random.Random(number)).run(steps=3)
            if number >= 20 and time.monotonic() - began > SECONDS:
                break
    print(f"{number + 1} schedules in {time.monotonic() - began:.1f} s")


def test_without_the_gate_it_is_seen() -> None:
    """The same schedules, the gate taken away: the optimizer meets a reader within the first few."""
    torch.set_num_threads(1)
    caught = 0
    with new_store() as store:
        for number in range(30):
            scene = Scene(store, random.Random(number), gate=False)
            try:
                scene.run(steps=3)
            except Touched:
                caught += 1
            finally:
                scene.capture.close()
    assert caught >= 15


def test_a_copy_that_an_ungated_update_got_into_is_void_not_kept() -> None:
    """Should an update come past the gate all the same, what was copied is given up and told of, never published."""

    class Careless(Scene):
        def __init__(self, *arguments: object, **keywords: object) -> None:
            super().__init__(*arguments, **keywords)  # type: ignore[arg-type]
            self.optimizer.copier = type(self.copier)()  # looks at another one, which never copies

    torch.set_num_threads(1)
    voided = 0
    for number in range(20):
        store = new_store()
        scene = Careless(store, random.Random(number), gate=False)
        try:
            scene.run(steps=3)
        except Exception as problem:
            assert "changed outside of an optimizer step" in str(problem)  # noqa: PT017
            voided += 1
            for record in store.records():
                assert store.read(record).tobytes() == scene.expected[record.step]
        try:
            store.close()
        except Exception as problem:
            assert "changed outside of an optimizer step" in str(problem)  # noqa: PT017
    assert voided >= 10


def test_every_optimizer_is_held_at_the_gate_also_one_that_is_not_saved() -> None:
    torch.set_num_threads(1)
    with new_store() as store:
        scene = Scene(store, random.Random(1))
        scene.iterate(1)
        scene.save(1)
        assert not scene.copier.copies[0][0].copied.is_set()
        other = torch.optim.Adam(scene.model.parameters())
        for parameter in scene.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        other.step()
        assert all(copy.copied.is_set() for copy, _ in scene.copier.copies)
        scene.capture.close()


@pytest.mark.parametrize("where", ["closed", "dropped"])
def test_the_gate_goes_with_its_checkpointer(where: str) -> None:
    from torch.optim import optimizer as module

    before = len(module._global_optimizer_pre_hooks)
    with new_store() as store:
        scene = Scene(store, random.Random(1))
        assert len(module._global_optimizer_pre_hooks) == before + 1
        if where == "closed":
            scene.capture.close()
        del scene
        gc.collect()
    assert len(module._global_optimizer_pre_hooks) == before
