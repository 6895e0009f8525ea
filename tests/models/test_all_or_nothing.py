"""Whatever raises while a checkpoint is loaded, everything that was here before is put back, to the last bit."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core.memory import MemoryDirectory
from lastgood.models import entries, putting_back, writing
from lastgood.models.errors import StateMismatch
from tests.models.states import assert_same


class Outsider(torch.nn.Module):
    """A module with a state of its own beside its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.Linear(2, 2)
        self.note = "fresh"

    def get_extra_state(self) -> str:
        return self.note

    def set_extra_state(self, note: str) -> None:
        self.note = note


class RefusesExtra(Outsider):
    """… and which does not like what was saved of it."""

    def set_extra_state(self, note: str) -> None:
        raise RuntimeError("not this one")


class OwnLoading(torch.nn.Linear):
    """Loads its weights and then finds that it had better not."""

    raises: BaseException = ValueError("own refusal")

    def load_state_dict(self, *args: Any, **keywords: Any) -> Any:
        super().load_state_dict(*args, **keywords)
        raise self.raises


class InterruptedLoading(OwnLoading):
    """Somebody presses Ctrl-C while it loads."""

    raises = KeyboardInterrupt()


class ParticularSGD(torch.optim.SGD):
    """Loads, then looks at what it has got."""

    def load_state_dict(self, state_dict: Any) -> None:
        super().load_state_dict(state_dict)
        if self.param_groups[0]["lr"] == 0.5:
            raise ValueError("not at this rate")


class Scheduler:
    """Stateful, and picky."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]
        if self.count == 7:
            raise KeyError("count")


def post_hook(module: torch.nn.Module) -> torch.nn.Module:
    def complain(*_: Any) -> None:
        raise OSError("the hook has its own file to read")

    module.register_load_state_dict_post_hook(complain)
    return module


def picky_sgd(rate: float, kind: type[torch.optim.SGD]) -> torch.optim.SGD:
    parameter = torch.nn.Parameter(torch.full((3,), rate))
    optimizer = kind([parameter], rate, momentum=0.9)
    parameter.grad = torch.full((3,), rate)
    optimizer.step()
    return optimizer


def hooked_sgd(rate: float) -> torch.optim.SGD:
    optimizer = picky_sgd(rate, torch.optim.SGD)

    def complain(*_: Any) -> None:
        raise RuntimeError("hook")

    optimizer.register_load_state_dict_post_hook(complain)
    return optimizer


def counted() -> Scheduler:
    made = Scheduler()
    made.count = 7
    return made


CASES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "extra-state": (Outsider, RefusesExtra),
    "own-module": (lambda: torch.nn.Linear(2, 2), lambda: OwnLoading(2, 2)),
    "interrupted": (lambda: torch.nn.Linear(2, 2), lambda: InterruptedLoading(2, 2)),
    "module-hook": (lambda: torch.nn.Linear(2, 2), lambda: post_hook(torch.nn.Linear(2, 2))),
    "own-optimizer": (lambda: picky_sgd(0.5, torch.optim.SGD), lambda: picky_sgd(0.25, ParticularSGD)),
    "optimizer-hook": (lambda: picky_sgd(0.5, torch.optim.SGD), lambda: hooked_sgd(0.25)),
    "scheduler": (counted, Scheduler),
}


def company() -> dict[str, Any]:
    """What is restored beside it: one of each kind."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    return {
        "model": model,
        "optimizer": optimizer,
        "extra": Outsider(),
        "stream": torch.Generator().manual_seed(random.randrange(10**6)),
        "plain": {
            "w": torch.randn(2), "a": np.random.rand(2), "l": [random.random()], "s": {random.random()},
            "nan": float("nan"), "pair": (torch.randn(1), 1), "wide": torch.randn(1).expand(3),
        },
        "epoch": random.randrange(10**6),
    }  # fmt: skip


def look(state: dict[str, Any]) -> Any:
    """All that is in the objects of a state, in memory of its own."""
    return copy.deepcopy(
        {entry.name: entry.read() for entry in entries.entries_of(state)}
        | {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
def test_whatever_raises_everything_is_put_back(name: str, first: bool) -> None:
    """A hook raised half way through `restore`: the model had the checkpoint's weights, the optimizer its fresh moments.

    The error was the hook's own, so a program that caught it and started afresh trained on from that mixture.
    """
    saving, refusing = CASES[name]
    directory = MemoryDirectory()
    with lm.Checkpointer(directory, company() | {"picky": saving()}) as ckpt:
        ckpt.save(5)
    here = {"picky": refusing(), **company()} if first else {**company(), "picky": refusing()}
    plain, weight = here["plain"], here["plain"]["w"]
    before = look(here)
    with lm.Checkpointer(directory, here) as ckpt:
        if name == "interrupted":
            with pytest.raises(KeyboardInterrupt):
                ckpt.restore()
        else:
            with pytest.raises(StateMismatch, match="picky does not accept its saved state, nothing was changed"):
                ckpt.restore()
        assert_same(look(here), before)
        assert here["plain"] is plain
        assert plain["w"] is weight
    if name != "interrupted":
        with lm.Checkpointer(directory, here) as ckpt:
            assert ckpt.restore(strict=False) == 5
            assert [each for each in ckpt.left_out if "picky" in each]
            assert_same(look(here)["picky"], before["picky"])
            assert here["epoch"] != before["epoch"], "the rest is restored"


@pytest.mark.parametrize("instant", range(12))
def test_an_interruption_between_any_two_writes_is_put_back(instant: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while plain values were written: a dict that had been emptied and not yet filled stayed empty."""
    directory, writes = MemoryDirectory(), []
    with lm.Checkpointer(directory, company()) as ckpt:
        ckpt.save(5)
    here = company()
    before, original = look(here), writing.write_tensor

    def interrupted(*arguments: Any) -> bool:
        if len(writes) == instant:
            writes.append(instant)
            raise KeyboardInterrupt
        writes.append(instant)
        return original(*arguments)

    monkeypatch.setattr(writing, "write_tensor", interrupted)
    with lm.Checkpointer(directory, here) as ckpt:
        try:
            ckpt.restore()
        except KeyboardInterrupt:
            assert_same(look(here), before)
            assert instant < len(writes)
        else:
            assert instant >= len(writes) > 0
            assert here["epoch"] != before["epoch"]


def test_what_cannot_be_put_back_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """An object that takes its checkpoint, raises, and refuses its earlier state too: nobody can say "nothing changed"."""

    class Spoilt(Scheduler):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.count += 1
            raise ValueError("never")

    directory = MemoryDirectory()
    with lm.Checkpointer(directory, {"a": counted()}) as ckpt:
        ckpt.save(5)
    told = pytest.raises(StateMismatch, match="all was put back but a, which would not take the earlier state")
    with lm.Checkpointer(directory, {"a": Spoilt()}) as ckpt, told:
        ckpt.restore()
    assert "ValueError: never" in caplog.text


def test_without_putting_back_the_mixture_would_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the tests above see what they are for."""
    monkeypatch.setattr(putting_back.Kept, "put_back", lambda self: True)
    for name in CASES:
        saving, refusing = CASES[name]
        directory = MemoryDirectory()
        with lm.Checkpointer(directory, company() | {"picky": saving()}) as ckpt:
            ckpt.save(5)
        here = {**company(), "picky": refusing()}
        before = look(here)
        with lm.Checkpointer(directory, here) as ckpt, pytest.raises((StateMismatch, KeyboardInterrupt)):
            ckpt.restore()
        with pytest.raises(AssertionError):
            assert_same(look(here), before)


def test_a_state_here_that_cannot_be_copied_is_refused_before_anything(tmp_path: Path) -> None:
    class Locked(Scheduler):
        stream: Any = 1

        def state_dict(self) -> dict[str, Any]:
            return {"count": self.count, "stream": self.stream}

    model = torch.nn.Linear(1, 1)
    with lm.Checkpointer(tmp_path / "store", {"model": model, "a": Locked()}) as ckpt:
        ckpt.save(5)
    other = torch.nn.Linear(1, 1)
    weight, locked = other.weight.clone(), Locked()
    locked.stream = (each for each in ())
    with lm.Checkpointer(tmp_path / "store", {"model": other, "a": locked}) as ckpt:
        with pytest.raises(StateMismatch, match="a: its state here cannot be copied"):
            ckpt.restore()
        assert other.weight.equal(weight)
        assert ckpt.restore(strict=False) == 5
        assert other.weight.equal(model.weight)
        assert "a: its state here cannot be copied" in ckpt.left_out[0]


# --- tensors that are not like others ---------------------------------------------------------------------------------


def inference(size: int) -> torch.Tensor:
    with torch.inference_mode():
        return torch.zeros(size)


def jagged(value: float) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.full((2,), value), torch.full((3,), value)], layout=torch.jagged)


@pytest.mark.parametrize(
    ("saved", "here"),
    [
        (lambda: torch.full((1,), 3.0).expand(5), lambda: torch.zeros(1).expand(5)),
        (lambda: torch.ones(3), lambda: inference(3)),
        (lambda: torch.eye(3).to_sparse_csr(), lambda: torch.zeros(3, 3).to_sparse_csr()),
        (lambda: torch.eye(3).to_sparse(), lambda: torch.zeros(3, 3).to_sparse()),
        (lambda: jagged(1.0), lambda: jagged(0.0)),
        (lambda: torch.ones(3), lambda: torch.nn.Parameter(torch.zeros(3))),
    ],
    ids=["expanded", "inference", "csr", "coo", "jagged", "parameter"],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_a_tensor_that_cannot_be_written_into_is_replaced(saved: Any, here: Any) -> None:
    """`restore` raised what torch says of such a tensor, after the model had been loaded."""
    directory, expected = MemoryDirectory(), saved()
    with lm.Checkpointer(directory, {"x": [expected]}) as ckpt:
        ckpt.save(5)
    state = {"x": [here()]}
    original = state["x"][0]
    with lm.Checkpointer(directory, state) as ckpt:
        assert ckpt.restore() == 5
    found = state["x"][0]
    assert found.to_dense().equal(expected.to_dense()) if not found.is_nested else found.values().eq(1.0).all()
    if isinstance(original, torch.nn.Parameter):
        assert found is original, "a parameter is written into, also with a tensor that was none"


@pytest.mark.parametrize(
    ("saved", "here", "told"),
    [
        (lambda: torch.eye(3).to_sparse(), lambda: torch.zeros(3, 3), "torch.sparse_coo in the store, torch.strided here"),
        (lambda: torch.zeros(3, 3), lambda: torch.eye(3).to_sparse(), "torch.strided in the store, torch.sparse_coo here"),
        (lambda: jagged(1.0), lambda: torch.zeros(2, 3), "nested torch.jagged in the store"),
        (lambda: torch.zeros(3), lambda: torch.empty(3, device="meta"), "on the meta device here"),
    ],
    ids=["sparse", "dense", "nested", "meta"],
)  # fmt: skip
def test_another_layout_is_refused_before_anything_is_changed(saved: Any, here: Any, told: str) -> None:
    directory = MemoryDirectory()
    with lm.Checkpointer(directory, {"x": saved()}) as ckpt:
        ckpt.save(5)
    with lm.Checkpointer(directory, {"x": here()}) as ckpt, pytest.raises(StateMismatch, match=f"x: .*{told}"):
        ckpt.restore()


def test_a_model_without_memory_is_refused(tmp_path: Path) -> None:
    """On the meta device `restore` returned 5 and loaded nothing: torch's `load_state_dict` warns and goes on.

    A lazy module that had not run ended in torch's words about shapes, without the name of the parameter.
    """
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    with lm.Checkpointer(
        tmp_path / "store", {"model": model, "optimizer": torch.optim.SGD(model.parameters())}
    ) as ckpt:
        ckpt.save(5)
    with torch.device("meta"):
        meta = torch.nn.Sequential(torch.nn.Linear(4, 3))
    lazy = torch.nn.Sequential(torch.nn.LazyLinear(3))
    for here, told in ((meta, "on the meta device here"), (lazy, "a lazy module that has not run")):
        with lm.Checkpointer(
            tmp_path / "store", {"model": here, "optimizer": torch.optim.SGD(here.parameters())}
        ) as ckpt:
            with pytest.raises(StateMismatch, match=rf"model\['0.weight'\]: .*{told}") as refusal:
                ckpt.restore()
            assert [
                each
                for each in refusal.value.problems
                if each.startswith("optimizer: parameter 0 is ") and told in each
            ]
    ready = meta.to_empty(device="cpu")
    with lm.Checkpointer(tmp_path / "store", {"model": ready}) as ckpt:
        ckpt.restore(strict=False)
    assert ready[0].weight.equal(model[0].weight)
