"""`restore` gives back all of it or changes nothing, and never mistakes a damaged store for an empty one."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core import NoStore, NothingUsable, OtherRun, Store, StoreError, StoreInUse
from lastgood.models.errors import StateMismatch
from tests.models.states import assert_same
from tests.models.training import Job


def saved(path: Path, state: dict[str, Any], step: int = 1, **options: Any) -> None:
    with lm.Checkpointer(path, state, **options) as ckpt:
        ckpt.restore()
        ckpt.save(step)


def mismatch(path: Path, state: dict[str, Any], **options: Any) -> str:
    """The message of a restore that must not change anything."""
    with lm.Checkpointer(path, state, **options) as ckpt, pytest.raises(StateMismatch) as problem:
        ckpt.restore()
    message = str(problem.value)
    assert "\n" not in message
    assert "nothing was changed" in message
    return message


# --- nothing there, nothing usable, something there ------------------------------------------------------------------


def test_no_store_an_empty_store_and_an_unusable_one_are_three_things(tmp_path: Path) -> None:
    """ "Starting from scratch", though a resume was asked for: any failure to load was taken for a new run."""
    state = {"w": torch.ones(3)}
    with lm.Checkpointer(tmp_path / "none", state) as ckpt:
        assert ckpt.restore() == 0
    assert not (tmp_path / "none").exists()
    Store.create(tmp_path / "empty", slot_bytes=10_000).close()
    with lm.Checkpointer(tmp_path / "empty", state) as ckpt:
        assert ckpt.restore() == 0
        ckpt.save(1)
    saved(tmp_path / "used", state)
    for slot in (tmp_path / "used").glob("slot-*"):
        slot.write_bytes(bytes(slot.stat().st_size))
    ckpt = lm.Checkpointer(tmp_path / "used", state)
    with pytest.raises(NothingUsable):
        ckpt.restore()
    with pytest.raises(NothingUsable):
        ckpt.save(2)
    ckpt.close()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        lm.Checkpointer(tmp_path / "file", state).restore()


def test_an_older_checkpoint_is_taken_aloud_when_the_newest_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = {"w": torch.zeros(3000)}
    with lm.Checkpointer(tmp_path / "store", state) as ckpt:
        ckpt.save(1).wait()
        state["w"].fill_(2.0)
        record = ckpt.save(2).wait()
    slot = tmp_path / "store" / f"slot-{record.slot:04d}"
    assert slot.exists()
    content = bytearray(slot.read_bytes())
    content[record.payload_offset + 5000] ^= 1
    slot.write_bytes(content)
    with lm.Checkpointer(tmp_path / "store", state) as ckpt, caplog.at_level(logging.WARNING, "lastgood"):
        assert ckpt.restore() == 1
        assert state["w"].eq(0.0).all()
    assert "step 2" in caplog.text
    assert "restoring step 1" in caplog.text


def test_one_line_for_a_store_or_a_step_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoStore, match="no store at"):
        lm.load(tmp_path / "nowhere")
    for step in (3, 4, 5):
        lm.save(tmp_path / "store", {"step": step}, step=step)
    assert lm.load(tmp_path / "store", step=4) == {"step": 4}
    with pytest.raises(NoStore, match=r"no checkpoint of step 9 .*: it holds steps \[4, 5\]"):
        lm.load(tmp_path / "store", step=9)
    Store.create(tmp_path / "empty", slot_bytes=4096).close()
    with pytest.raises(NoStore):
        lm.load(tmp_path / "empty")


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_used_store_is_not_saved_into_without_restoring(tmp_path: Path) -> None:
    """A fresh run in an old directory deleted its own new checkpoints, since the old run's numbers were higher."""
    saved(tmp_path / "store", {"w": 1}, step=1000)
    with lm.Checkpointer(tmp_path / "store", {"w": 2}) as ckpt, pytest.raises(OtherRun):
        ckpt.save(10)
    assert lm.load(tmp_path / "store") == {"w": 1}
    with lm.Checkpointer(tmp_path / "store", {"w": 3}, new_run=True) as ckpt:
        with pytest.raises(StoreError, match="starts over"):
            ckpt.restore()
        ckpt.save(10)
    assert lm.load(tmp_path / "store") == {"w": 3}


def test_after_a_failed_restore_nothing_is_saved_over_the_run(tmp_path: Path) -> None:
    saved(tmp_path / "store", {"w": torch.ones(3)})
    with lm.Checkpointer(tmp_path / "store", {"w": torch.ones(4)}) as ckpt:
        with pytest.raises(StateMismatch):
            ckpt.restore()
        with pytest.raises(OtherRun):
            ckpt.save(2)


def test_restoring_and_saving_go_on_with_the_same_run(tmp_path: Path) -> None:
    for step in range(1, 6):
        saved(tmp_path / "store", {"w": step}, step=step)
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert [record.step for record in store.records()] == [5, 4]
        assert len({record.run for record in store.records()}) == 1


def test_two_checkpointers_do_not_share_a_store(tmp_path: Path) -> None:
    with lm.Checkpointer(tmp_path / "store", {"w": 1}) as one, lm.Checkpointer(tmp_path / "store", {"w": 1}) as other:
        one.save(1).wait()
        with pytest.raises(StoreInUse):
            other.restore()
        assert lm.load(tmp_path / "store") == {"w": 1}, "readers are welcome"


# --- all or nothing --------------------------------------------------------------------------------------------------


def test_everything_that_does_not_fit_is_in_one_error(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    saved(tmp_path / "store", {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1), "old": 1})
    other = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Linear(5, 2, bias=False), torch.nn.BatchNorm1d(2)
    ).double()
    before = {name: each.clone() for name, each in other.state_dict().items()}
    optimizer = torch.optim.SGD(list(other.parameters())[:2], 0.1)
    random.seed(7)
    stream = random.getstate()
    with (
        lm.Checkpointer(tmp_path / "store", {"model": other, "optimizer": optimizer, "new": 1}) as ckpt,
        pytest.raises(StateMismatch) as refusal,
    ):
        ckpt.restore()
    problems = refusal.value.problems
    message = str(refusal.value)
    assert message.endswith(f"; and {len(problems) - 5} more")
    assert "; ".join(problems[:5]) in message
    for phrase in (
        "new: missing in the store",
        "old: unexpected, only in the store",
        "model['0.weight']: shape [4, 3] in the store, [5, 3] here",
        "model['1.bias']: unexpected",
        "model['2.running_mean']: missing",
        "optimizer: group 0 has 4 parameters in the store, 2 here",
    ):
        assert any(phrase in problem for problem in problems), phrase
    assert all(each.equal(before[name]) for name, each in other.state_dict().items())
    assert random.getstate() == stream


def test_other_types_of_weights_are_not_converted_in_silence(tmp_path: Path) -> None:
    saved(tmp_path / "store", {"model": torch.nn.Linear(2, 2).bfloat16()})
    message = mismatch(tmp_path / "store", {"model": torch.nn.Linear(2, 2)})
    assert "model['weight']: torch.bfloat16 in the store, torch.float32 here" in message


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module."])
def test_names_with_a_wrappers_prefix_are_explained(tmp_path: Path, prefix: str) -> None:
    """A model saved compiled did not load uncompiled, or loaded nothing and trained on from fresh weights."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4))
    wrapped = torch.nn.Sequential()
    wrapped.add_module(prefix[:-1], model)
    saved(tmp_path / "a", {"model": wrapped})
    assert f"all names in the store begin with '{prefix}'" in mismatch(tmp_path / "a", {"model": model})
    saved(tmp_path / "b", {"model": model})
    assert f"all names here begin with '{prefix}'" in mismatch(tmp_path / "b", {"model": wrapped})
    saved(tmp_path / "c", {"model": {prefix + name: each for name, each in model.state_dict().items()}})
    assert "model['0.weight']: missing" in mismatch(tmp_path / "c", {"model": dict(model.state_dict())})


def test_another_optimizer_is_refused_and_so_are_moments_of_other_parameters(tmp_path: Path) -> None:
    job = Job()
    job.step()
    saved(tmp_path / "store", {"optimizer": job.optimizer})
    sgd = torch.optim.SGD([{"params": group["params"]} for group in job.optimizer.param_groups], 0.1, momentum=0.9)
    assert "saved from a torch.optim.adamw.AdamW, here is a torch.optim.sgd.SGD" in mismatch(
        tmp_path / "store", {"optimizer": sgd}
    )
    turned = [{"params": list(reversed(group["params"]))} for group in job.optimizer.param_groups]
    message = mismatch(tmp_path / "store", {"optimizer": torch.optim.AdamW(turned, amsgrad=True)})
    assert "its parameter has" in message


def test_named_parameters_in_another_order_are_refused(tmp_path: Path) -> None:
    """Optimizer states know parameters by position: two of one shape, exchanged, took each other's moments."""
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    saved(tmp_path / "store", {"optimizer": torch.optim.SGD([("a", a), ("b", b)], 0.1)})
    assert "another order" in mismatch(tmp_path / "store", {"optimizer": torch.optim.SGD([("b", b), ("a", a)], 0.1)})


def test_another_scheduler_is_refused(tmp_path: Path) -> None:
    """A scheduler's state is its attributes: another class takes them all without a word."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
    saved(tmp_path / "store", {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3)})
    other = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    assert "StepLR, here is a torch.optim.lr_scheduler.CosineAnnealingLR" in mismatch(
        tmp_path / "store", {"scheduler": other}
    )


class Counter:
    """A class of the user's, which may refuse its state."""

    def __init__(self, refuses: bool = False) -> None:
        self.count, self.refuses = 0, refuses

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]
        if self.refuses and state["count"] == 5:
            raise KeyError("count")


def test_what_was_restored_is_undone_when_a_later_part_refuses(tmp_path: Path) -> None:
    first, second, model = Counter(), Counter(), torch.nn.Linear(1, 1)
    first.count = second.count = 5
    saved(tmp_path / "store", {"model": model, "first": first, "second": second})
    first, second, other = Counter(), Counter(refuses=True), torch.nn.Linear(1, 1)
    weight = other.weight.clone()
    message = mismatch(tmp_path / "store", {"model": other, "first": first, "second": second})
    assert "second does not accept its saved state" in message
    assert "KeyError" in message
    assert (first.count, second.count) == (0, 0)
    assert other.weight.equal(weight)


def test_a_sampler_of_another_length_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "store", {"sampler": lm.ResumableSampler(10, seed=1)})
    message = mismatch(tmp_path / "store", {"sampler": lm.ResumableSampler(11, seed=1)})
    assert "saved with length=10, here it has length=11" in message


def test_a_checkpoint_without_random_streams_is_not_restored_in_silence(tmp_path: Path) -> None:
    lm.save(tmp_path / "store", {"w": 1})
    assert "pass rng=False" in mismatch(tmp_path / "store", {"w": 1})
    with lm.Checkpointer(tmp_path / "store", {"w": 2}, rng=False) as ckpt:
        ckpt.restore()
        assert ckpt.restored == {"w": 1}
    lm.save(tmp_path / "list", [1, 2])
    with lm.Checkpointer(tmp_path / "list", {"w": 1}) as ckpt, pytest.raises(StateMismatch, match="holds a list"):
        ckpt.restore()


# --- plain values ----------------------------------------------------------------------------------------------------


def test_plain_values_come_back_in_place_where_they_can(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    state: dict[str, Any] = {
        "weights": dict(model.state_dict()),
        "history": {"losses": [1.0, 2.0], "best": np.float64(0.5)},
        "epoch": 3,
        "pair": (1, torch.ones(2)),
        "seen": {1, 2},
        "array": np.arange(3),
    }
    expected = {"losses": [1.0, 2.0], "best": np.float64(0.5)}
    weight = model.weight.detach().clone()
    saved(tmp_path / "store", state, step=4)
    with torch.no_grad():
        model.weight.zero_()
    history, array, seen, pair = {"losses": [], "extra": 9}, np.zeros(3, int), {7}, (0, torch.zeros(2))
    losses = history["losses"]
    other = {
        "weights": dict(model.state_dict()),
        "history": history,
        "epoch": 0,
        "pair": pair,
        "seen": seen,
        "array": array,
    }
    with lm.Checkpointer(tmp_path / "store", other) as ckpt:
        assert ckpt.restore() == 4
        assert model.weight.equal(weight), "a tensor that aliases the model brings the model back"
        assert_same(history, expected)
        assert losses == [1.0, 2.0]
        assert other["history"] is history
        assert other["epoch"] == 3
        assert pair[1].tolist() == [1.0, 1.0]
        assert (seen, array.tolist()) == ({1, 2}, [0, 1, 2])
        assert ckpt.restored.keys() == other.keys()
        assert ckpt.restored["epoch"] == 3


def test_containers_may_have_grown_since_the_program_made_its_own(tmp_path: Path) -> None:
    saved(
        tmp_path / "store",
        {"callbacks": [{"best": 1.5}, {"patience": 3}], "metrics": {"val": {"loss": [0.3]}}, "h": ((1,),)},
    )
    fresh: dict[str, Any] = {"callbacks": [], "metrics": {}, "h": None}
    with lm.Checkpointer(tmp_path / "store", fresh) as ckpt:
        ckpt.restore()
    assert fresh == {"callbacks": [{"best": 1.5}, {"patience": 3}], "metrics": {"val": {"loss": [0.3]}}, "h": ((1,),)}


def test_generators_of_ones_own_are_entries(tmp_path: Path) -> None:
    def streams() -> dict[str, Any]:
        return {"torch": torch.Generator(), "numpy": np.random.default_rng(1), "python": random.Random(1)}

    def draws(state: dict[str, Any]) -> list[float]:
        tensor = torch.rand(1, generator=state["torch"]).item()
        return [tensor, state["numpy"].random(), state["python"].random()]

    state = streams()
    draws(state)
    saved(tmp_path / "store", state)
    expected = draws(state)
    fresh = streams()
    with lm.Checkpointer(tmp_path / "store", fresh) as ckpt:
        ckpt.restore()
    assert draws(fresh) == expected
    other = streams() | {"numpy": np.random.Generator(np.random.MT19937(1))}
    assert "another kind of generator" in mismatch(tmp_path / "store", other)


# --- sizes and processes ---------------------------------------------------------------------------------------------


def test_a_state_that_outgrows_its_slots_grows_them_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = {"w": torch.ones(1000)}
    with lm.Checkpointer(tmp_path / "store", state) as ckpt:
        ckpt.save(1).wait()
        state["w"] = torch.ones(1_000_000)
        ckpt.save(2).wait()
    assert "has grown to 4," in caplog.text
    assert lm.load(tmp_path / "store")["w"].numel() == 1_000_000


def test_other_sizes_than_the_stores_are_mentioned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saved(tmp_path / "store", {"w": 1}, in_flight=2, keep=3)
    with (
        caplog.at_level(logging.WARNING, "lastgood"),
        lm.Checkpointer(tmp_path / "store", {"w": 1}, in_flight=4) as ckpt,
    ):
        ckpt.restore()
    assert "in_flight=2, which stays; 4 was asked for" in caplog.text
    assert "keep=3, which stays; 2 was asked for" in caplog.text


def test_a_job_of_several_ranks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(StoreError, match="this job has 2 ranks"):
        lm.Checkpointer(tmp_path / "store", {"w": 1})


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: lm.Checkpointer("x", {"w": 1}, every=0), ValueError),
        (lambda: lm.Checkpointer("x", {"w": 1}, every=2.5), ValueError),  # type: ignore[arg-type]
        (lambda: lm.Checkpointer("x", [1]), TypeError),  # type: ignore[arg-type]
        (lambda: lm.Checkpointer("x", {1: 2}), TypeError),  # type: ignore[dict-item]
    ],
)
def test_mistakes_in_the_arguments_are_told_at_once(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_any_cadence_can_be_plugged_in(tmp_path: Path) -> None:
    class WhenAsked:
        def __init__(self) -> None:
            self.told: list[int] = []

        def due(self, step: int) -> bool:
            return step in (3, 4)

        def saved(self, step: int, stalled_seconds: float) -> None:
            self.told.append(step)

    cadence = WhenAsked()
    with lm.Checkpointer(tmp_path / "store", {"w": 1}, every=cadence) as ckpt:
        assert [step for step in range(6) if ckpt.step(step)] == [3, 4]
        assert ckpt.statistics().saves == 2
    assert cadence.told == [3, 4]
