"""A checkpointer as it is used: the dict changes, the object is dropped or closed, arguments are mistaken."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core import SaveFailed, StoreClosed, StoreInUse
from lastgood.core.memory import MemoryDirectory
from lastgood.models.loader import ResumableLoader

# --- the dict as it is now -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", ["boundary", "lazy", "auto"])
def test_the_dict_is_read_again_at_every_save(tmp_path: Path, capture: str) -> None:
    """What was added to the dict after the checkpointer had been made was in no checkpoint, without a word.

    A model that took the place of another was not either: the old one, which nobody trained any more, was saved on.
    """
    model = torch.nn.Linear(100, 100)
    state: dict[str, Any] = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1), "note": 1, "old": 1}
    with lm.Checkpointer(tmp_path / "store", state, capture=capture) as ckpt:
        ckpt.save(1)
        state["optimizer"].step()
        ckpt.save(2)
        state["model"] = other = torch.nn.Linear(100, 100)
        state["optimizer"] = optimizer = torch.optim.SGD(other.parameters(), 0.2, momentum=0.9)
        state["history"] = [1, 2, 3]
        state["note"] = torch.Generator().manual_seed(5)
        del state["old"]
        other(torch.ones(100)).sum().backward()
        optimizer.step()
        ckpt.save(3)
        expected = other.weight.detach().clone()
        optimizer.step()
        ckpt.save(4).wait()
    found = lm.load(tmp_path / "store", step=3)
    assert found["model"]["weight"].equal(expected)
    assert found["optimizer"]["param_groups"][0]["lr"] == 0.2
    assert found["history"] == [1, 2, 3]
    assert found["note"].equal(torch.Generator().manual_seed(5).get_state())
    assert "old" not in found


def test_what_is_restored_is_what_is_in_the_dict_now(tmp_path: Path) -> None:
    state: dict[str, Any] = {"model": torch.nn.Linear(2, 2), "epoch": 3}
    with lm.Checkpointer(tmp_path / "store", state) as ckpt:
        ckpt.save(1)
    fresh: dict[str, Any] = {"model": torch.nn.Linear(2, 2)}
    with lm.Checkpointer(tmp_path / "store", fresh) as ckpt:
        fresh["model"], fresh["epoch"] = torch.nn.Linear(2, 2), 0
        assert ckpt.restore() == 1
        assert fresh["model"].weight.equal(state["model"].weight)
        assert fresh["epoch"] == 3
        fresh[4] = 1  # type: ignore[index]
        with pytest.raises(TypeError, match="give a dict of named parts"):
            ckpt.step(2)


def test_a_loader_that_takes_the_place_of_another_is_followed(tmp_path: Path) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(40))
    state: dict[str, Any] = {"data": ResumableLoader(data, 4, seed=1)}
    with lm.Checkpointer(tmp_path / "store", state) as ckpt:
        state["data"] = loader = ResumableLoader(data, 4, seed=2)
        batches = iter(loader)
        for step in (1, 2):
            next(batches)
            ckpt.step(step)
        drawn = next(batches)[0].tolist()
        ckpt.save(2)
        assert next(batches)[0].tolist() != drawn
    again = {"data": ResumableLoader(data, 4, seed=2)}
    with lm.Checkpointer(tmp_path / "store", again) as ckpt:
        ckpt.restore()
        assert next(iter(again["data"]))[0].tolist() != drawn, "save() says that its update is made"


# --- dropped, closed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", ["boundary", "lazy"])
def test_a_notebook_cell_can_be_run_again(tmp_path: Path, capture: str) -> None:
    """`ckpt = Checkpointer(…); ckpt.restore()` a second time: "is open already, close it first", and nobody could."""
    model = torch.nn.Linear(200, 200)
    state = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1)}
    ckpt = None
    for cell in range(3):
        ckpt = lm.Checkpointer(tmp_path / "store", state, every=1, capture=capture)
        assert ckpt.restore() == 2 * cell
        for step in (1, 2):
            state["optimizer"].step()
            ckpt.step(2 * cell + step)
    del ckpt
    assert lm.Checkpointer(tmp_path / "store", state).restore() == 6


def test_one_that_only_a_circle_holds_gives_its_store_back(tmp_path: Path) -> None:
    state: dict[str, Any] = {"w": 1}
    ckpt = lm.Checkpointer(tmp_path / "store", state)
    ckpt.save(1)
    ckpt.itself = ckpt  # type: ignore[attr-defined]
    gc.disable()
    try:
        del ckpt
        with lm.Checkpointer(tmp_path / "store", state) as again:
            assert again.restore() == 1
    finally:
        gc.enable()


def test_one_that_is_still_held_is_named(tmp_path: Path) -> None:
    with lm.Checkpointer(tmp_path / "store", {"w": 1}) as held, lm.Checkpointer(tmp_path / "store", {"w": 1}) as ckpt:
        held.save(1)
        for call in (ckpt.restore, lambda: ckpt.save(2)):
            with pytest.raises(StoreInUse, match=r"call close\(\) of the Checkpointer that was made for it earlier"):
                call()


def test_a_failure_after_it_was_dropped_is_logged_and_told_at_exit(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody is left to be told by `step` or `close`: the process ends with status 1."""
    from lastgood.core import at_exit
    from lastgood.models import room
    from tests.models.test_background import BrittleDirectory

    directory = BrittleDirectory()
    ckpt = lm.Checkpointer(directory, {"w": torch.zeros(())})
    ckpt.save(1).wait()
    directory.broken = True
    ckpt.save(2)
    with caplog.at_level(logging.ERROR, "lastgood"):
        del ckpt
        gc.collect()
        room.await_dropped()
    assert "was dropped without close()" in caplog.text
    (untold,) = [each for each in at_exit._open if isinstance(each, room.Untold)]
    at_exit.forget(untold)  # or this process would end with status 1, as `test_background.py` sees
    with pytest.raises(SaveFailed):
        untold.close()


def test_after_close_it_says_so_at_the_first_call(tmp_path: Path) -> None:
    """A step that was not due returned None for nine steps, and the tenth said that the checkpointer was closed."""
    ckpt = lm.Checkpointer(tmp_path / "store", {"w": 1}, every=10)
    ckpt.save(1)
    ckpt.close()
    for call in (lambda: ckpt.step(2), ckpt.poll, lambda: ckpt.save(3), lambda: ckpt.pin(1, "best"), ckpt.restore):
        with pytest.raises(StoreClosed, match="is closed: make a new one"):
            call()
    ckpt.close()


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"retention": 5}, r"retention=5: give a Retention, like Retention\(every=1000\)"),
        ({"retention": "all"}, "retention='all': give a Retention"),
        ({"foo": 3}, "no option 'foo': those of the store are .*device.*overload"),
        ({"sigterm_grce": 3}, "no option 'sigterm_grce': did you mean 'sigterm_grace'"),
        ({"overlod": "skip"}, "did you mean 'overload'"),
        ({"slot_bytes": 1}, "no option 'slot_bytes'"),
        ({"in_flight": 0}, "in_flight=0: give a whole number, 1 to 64"),
        ({"in_flight": 2.0}, "in_flight=2.0: give a whole number"),
        ({"keep": 0}, "keep=0: give a whole number, 1 to 16"),
        ({"keep": True}, "keep=True: give a whole number"),
        ({"mean_seconds_between_failures": "soon"}, "mean_seconds_between_failures='soon': give a time"),
        ({"mean_seconds_between_failures": [1]}, r"mean_seconds_between_failures=\[1\]: give a time above 0"),
        ({"sigterm_grace": "x"}, "sigterm_grace='x': give a time like"),
        ({"sigterm_grace": float("nan")}, "sigterm_grace=nan: give a time above 0"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_mistaken_argument_is_named_when_the_checkpointer_is_made(options: dict[str, Any], told: str) -> None:
    """A misspelt option was told of at the first save, hours later, as a mistake of `Store.open`."""
    with pytest.raises((TypeError, ValueError), match=told) as problem:
        lm.Checkpointer(MemoryDirectory(), {"w": 1}, **options)
    assert "\n" not in str(problem.value)


def test_the_ladders_times_are_named() -> None:
    with pytest.raises(ValueError, match="ladder='soon': give a time"):
        lm.Retention(ladder=[("soon", 3)])


def test_times_may_be_words() -> None:
    with lm.Checkpointer(MemoryDirectory(), {"w": 1}, mean_seconds_between_failures="1h", overload="skip") as ckpt:
        assert ckpt.cadence._failure_seconds == 3600  # type: ignore[attr-defined]


@pytest.mark.parametrize("step", ["3", None, 1.5, [1]], ids=str)
def test_a_step_that_is_no_number(step: Any) -> None:
    with lm.Checkpointer(MemoryDirectory(), {"w": 1}) as ckpt:
        for call in (ckpt.step, ckpt.save):
            with pytest.raises(TypeError, match="give the number of updates made so far"):
                call(step)
        assert ckpt.save(np.int64(7)).wait().step == 7
        assert ckpt.save(torch.tensor(8)).wait().step == 8  # type: ignore[arg-type]
