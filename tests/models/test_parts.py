"""Restoring in part: what fits is restored, what does not is named, and what was not asked for stays as it is."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
import torch

import lastgood.models as lm
from lastgood.core.memory import MemoryDirectory
from lastgood.models.errors import NotPlainData, StateMismatch
from tests.models.test_restoring import Counter


def network(*widths: int) -> torch.nn.Module:
    return torch.nn.Sequential(*(torch.nn.Linear(a, b) for a, b in itertools.pairwise(widths)))


def saved(directory: Any, state: dict[str, Any]) -> None:
    with lm.Checkpointer(directory, state) as ckpt:
        ckpt.save(7)


def test_not_strict_restores_what_fits_and_names_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    directory, model = MemoryDirectory(), network(3, 4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    counter = Counter()
    counter.count = 3
    saved(directory, {"model": model, "optimizer": optimizer, "counter": counter, "epoch": 4, "old": 1})
    other = network(3, 4, 5)
    before = other[1].weight.clone()
    theirs = torch.optim.SGD(other[0].parameters(), 0.2)
    state = {"model": other, "optimizer": theirs, "counter": Counter(), "epoch": 0, "new": 5}
    with lm.Checkpointer(directory, state) as ckpt:
        with pytest.raises(StateMismatch):
            ckpt.restore()
        with caplog.at_level(logging.WARNING, "lastgood"):
            assert ckpt.restore(strict=False) == 7
        assert other[0].weight.equal(model[0].weight)
        assert other[1].weight.equal(before)
        assert theirs.param_groups[0]["lr"] == 0.2
        assert (state["counter"].count, state["epoch"], state["new"]) == (3, 4, 5)
        for phrase in (
            "model['1.weight']: shape [2, 4] in the store, [5, 4] here",
            "optimizer: group 0",
            "new: missing",
            "old",
        ):
            assert any(phrase in problem for problem in ckpt.left_out), phrase
            assert phrase in caplog.text


def test_not_strict_what_an_object_refuses_stays_as_it_was() -> None:
    directory = MemoryDirectory()
    first, second = Counter(), Counter()
    first.count = second.count = 5
    saved(directory, {"first": first, "second": second})
    first, second = Counter(refuses=True), Counter()
    with lm.Checkpointer(directory, {"first": first, "second": second}) as ckpt:
        assert ckpt.restore(strict=False) == 7
        assert (first.count, second.count) == (0, 5)
        assert "first does not accept its saved state: KeyError: 'count' (nothing was changed)" in ckpt.left_out


def test_only_some_parts_and_nothing_else() -> None:
    directory, model = MemoryDirectory(), network(3, 4)
    saved(directory, {"model": model, "epoch": 4})
    other, state = network(3, 4), {}
    state = {"model": other, "epoch": 0, "more": 1}
    torch.manual_seed(5)
    stream = torch.get_rng_state()
    with lm.Checkpointer(directory, state) as ckpt:
        with pytest.raises(StateMismatch, match="more: missing in the store"):
            ckpt.restore(only=["more"])
        assert ckpt.restore(only=["model"]) == 7
        assert other[0].weight.equal(model[0].weight)
        assert state["epoch"] == 0
        assert torch.get_rng_state().equal(stream)
        ckpt.save(8).wait()
        with pytest.raises(
            ValueError, match=r"only=\['modle'\]: give a list of names out of \['epoch', 'model', 'more'\]"
        ):
            ckpt.restore(only=["modle"])


def test_compiled_and_not_compiled_are_one_model(tmp_path: Path) -> None:
    """A model saved compiled did not load uncompiled, or the other way round; also parts that are compiled by themselves."""
    plain, whole, part = network(3, 4, 2), network(3, 4, 2), network(3, 4, 2)
    compiled = torch.compile(whole, backend="eager")
    part[0] = torch.compile(part[0], backend="eager")
    part = torch.compile(part, backend="eager")
    saved(tmp_path / "plain", {"model": plain})
    for name, model in (("whole", compiled), ("part", part)):
        with lm.Checkpointer(tmp_path / "plain", {"model": model}) as ckpt:
            assert ckpt.restore() == 7
        saved(tmp_path / name, {"model": model})
        again = network(3, 4, 2)
        with lm.Checkpointer(tmp_path / name, {"model": again}) as ckpt:
            assert ckpt.restore() == 7
        assert all(a.equal(b) for a, b in zip(plain.parameters(), again.parameters(), strict=True))
    assert list(lm.load(tmp_path / "part")["model"]) == list(plain.state_dict())


def test_a_lambda_of_a_schedulers_state_is_refused_by_its_key() -> None:
    """torch leaves plain functions out of a scheduler's state; one that hangs on a user's scheduler is named."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    directory = MemoryDirectory()
    with lm.Checkpointer(directory, {"scheduler": scheduler}) as ckpt:
        ckpt.save(1).wait()
        scheduler.rule = lambda step: step
        with pytest.raises(NotPlainData, match=r"\['scheduler'\]\['rule'\]: function"):
            ckpt.save(2)
    with lm.Checkpointer(directory, {"scheduler": scheduler}) as ckpt:
        assert ckpt.restore() == 1


def test_restored_tensors_alias_nothing() -> None:
    directory, model = MemoryDirectory(), network(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 64)).sum().backward()
    optimizer.step()
    state = {"model": model, "optimizer": optimizer, "table": torch.ones(500)}
    with lm.Checkpointer(directory, state, capture="lazy") as ckpt:
        ckpt.save(1).wait()
        ckpt.restore()
        first = [each for moments in optimizer.state.values() for each in moments.values()]
        ckpt.restore()
        second = [each for moments in optimizer.state.values() for each in moments.values()]
        staging = ckpt._store._engine.arena._memory  # type: ignore[union-attr]
        begin, end = staging.ctypes.data, staging.ctypes.data + staging.nbytes
        for tensor in [*first, *second, *model.parameters(), state["table"]]:
            assert not begin <= tensor.data_ptr() < end
        assert not {each.data_ptr() for each in first} & {each.data_ptr() for each in second}
