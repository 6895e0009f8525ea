"""States that did not come back as they were, in other people's programs: incomplete, aliased, refused. One test a case."""

from __future__ import annotations

import collections
import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core import FormatTooNew
from lastgood.core.memory import MemoryDirectory
from lastgood.models.encode import encode
from lastgood.models.errors import NotPlainData, StateMismatch
from tests.models.states import assert_same
from tests.models.training import Job


def there_and_back(state: Any, step: int = 1) -> Any:
    directory: Any = MemoryDirectory()
    lm.save(directory, state, step=step)
    return lm.load(directory)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_o_06_and_o_10_and_o_11_a_resumed_job_is_the_job_that_never_stopped(optimizer: str) -> None:
    """O-06: after a resume the loss scale was back at its start, and steps overflowed and were skipped.
    O-10: resuming inside an epoch gave other batches than the run that had not stopped.
    O-11: dropout and noise after a resume were different.

    20 steps, against 10, a save, a new job that restores, and 10 more: everything is the same to the last bit.
    """
    whole = Job(optimizer)
    for _ in range(20):
        whole.step()
    expected = whole.digest()
    first, directory = Job(optimizer), MemoryDirectory()
    with lm.Checkpointer(directory, first.state(), every=10) as ckpt:
        for step in range(1, 11):
            first.step()
            ckpt.step(step)
    again = Job(optimizer)
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    with lm.Checkpointer(directory, again.state(), every=1000) as ckpt:
        assert ckpt.restore() == 10
        for _ in range(10):
            again.step()
        assert again.digest() == expected


def test_o_06_a_scaler_that_has_backed_off() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=10)
    saved = scaler.state_dict() | {"scale": 128.0, "_growth_tracker": 7}
    scaler.load_state_dict(there_and_back(saved))
    assert scaler.state_dict()["scale"] == 128.0
    assert scaler.state_dict()["_growth_tracker"] == 7


def used_and_unused(steps: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    net = torch.nn.ModuleDict({"used": torch.nn.Linear(4, 3), "unused": torch.nn.Linear(4, 3)})
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, amsgrad=True)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        net["used"](torch.randn(2, 4)).sum().backward()
        optimizer.step()
    return net, optimizer


@pytest.mark.parametrize("stepped_here", [0, 1, 5])
def test_o_07_parameters_that_never_got_a_gradient(stepped_here: int) -> None:
    """O-07: saving worked, and resuming died of parameters that own no optimizer state. Absent stays absent."""
    net, optimizer = used_and_unused(3)
    directory = MemoryDirectory()
    with lm.Checkpointer(directory, {"net": net, "optimizer": optimizer}) as ckpt:
        ckpt.save(3)
    other_net, other = used_and_unused(stepped_here)
    with lm.Checkpointer(directory, {"net": other_net, "optimizer": other}) as ckpt:
        assert ckpt.restore() == 3
    assert_same(optimizer.state_dict(), other.state_dict())
    assert len(other.state_dict()["state"]) == 2


def test_o_08_what_the_program_has_no_place_for_is_not_dropped() -> None:
    """O-08: loading filled a template from a new optimizer, which had no place for the moments, and dropped the rest."""
    _, optimizer = used_and_unused(3)
    state = {"optimizer": optimizer.state_dict(), "more": torch.ones(2)}
    directory: Any = MemoryDirectory()
    lm.save(directory, state)
    assert_same(state, lm.load(directory))
    with (
        lm.Checkpointer(directory, {"optimizer": used_and_unused(0)[1]}, rng=False) as ckpt,
        pytest.raises(StateMismatch, match="more: unexpected, only in the store"),
    ):
        ckpt.restore()


def test_o_09_a_save_between_backward_and_the_update() -> None:
    """O-09: the saved optimizer state was empty because gradients were still there, or half of the parameters frozen."""
    net, optimizer = used_and_unused(3)
    net["unused"].requires_grad_(False)
    net["used"](torch.randn(2, 4)).sum().backward()
    gradients = [each.grad.clone() if each.grad is not None else None for each in net.parameters()]
    directory: Any = MemoryDirectory()
    with lm.Checkpointer(directory, {"net": net, "optimizer": optimizer}) as ckpt:
        ckpt.save(1)
    assert_same(optimizer.state_dict(), lm.load(directory)["optimizer"])
    assert_same(gradients, [each.grad for each in net.parameters()])


def test_o_10_the_next_epoch_is_another_permutation() -> None:
    """O-10: the epoch counter restarted at 0, so the same permutation came twice."""
    sampler = lm.ResumableSampler(50, seed=7)
    order = iter(sampler.batches(4, endless=True))
    first = [next(order) for _ in range(13)]
    saved = there_and_back(sampler.state_dict())
    rest = [next(order) for _ in range(13)]
    other = lm.ResumableSampler(50, seed=7)
    other.load_state_dict(saved)
    resumed = iter(other.batches(4, endless=True))
    assert [next(resumed) for _ in range(13)] == rest
    assert first != rest


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("epoch", [0, 2])
def test_o_10_inside_an_epoch_with_workers_that_have_fetched_ahead(workers: int, epoch: int) -> None:
    """O-10: the generator was saved after it had been drawn from, so a resume inside an epoch gave other batches.

    The batches that are left, and all of the next epoch, are those of the run that did not stop; the next differs.
    """

    def loader() -> lm.ResumableLoader:
        return lm.ResumableLoader(list(range(50)), 4, seed=7, num_workers=workers, multiprocessing_context=context)

    context = "fork" if workers else None
    whole = loader()
    expected = [[batch.tolist() for batch in whole] for _ in range(epoch + 2)]
    assert expected[epoch] != expected[epoch + 1]
    first, directory = loader(), MemoryDirectory()
    with lm.Checkpointer(directory, {"data": first}, every=1000) as ckpt:
        step = 0
        for _ in range(epoch):
            for _ in first:
                step += 1
                ckpt.step(step)
        batches = iter(first)
        for _ in range(5):
            next(batches)
            step += 1
            ckpt.step(step)
        ckpt.save(step)
        next(batches)  # drawn, and no update made of it: it comes again
    again = loader()
    with lm.Checkpointer(directory, {"data": again}) as ckpt:
        assert ckpt.restore() == step
        assert [batch.tolist() for batch in again] == expected[epoch][5:]
        assert [batch.tolist() for batch in again] == expected[epoch + 1]


def test_o_11_saving_draws_no_numbers() -> None:
    """O-11: the random state was saved at another point of the loop than it was restored at."""

    def draws() -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(()))]

    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    without = [draws(), draws()]
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    first, directory = draws(), MemoryDirectory()
    with lm.Checkpointer(directory, {"a": 1}) as ckpt:
        ckpt.save(1)
        assert [first, draws()] == without
        ckpt.restore()
        assert draws() == without[1]


# --- tensors ----------------------------------------------------------------------------------------------------------


def test_o_20_a_small_view_costs_its_own_bytes() -> None:
    """O-20: saving a few rows wrote the whole table behind them: 33.6 MB for 0.13 MB of values."""
    base = torch.arange(2048 * 4096, dtype=torch.float32).reshape(2048, 4096)
    state = {
        "row": base[0],
        "rows": base[::500],
        "narrow": base.narrow(0, 7, 2),
        "overlap a": base[3, :100],
        "overlap b": base[3, 50:150],
        "expanded": torch.tensor([2.5]).expand(1000, 1000),
    }
    assert encode(state).total_bytes < 250_000
    restored = there_and_back(state)
    assert_same(state, restored)
    restored["overlap a"][50:] = -1.0
    assert restored["overlap b"][:50].eq(-1.0).all(), "views that overlap still do"


def test_o_21_tied_weights_are_saved_once_and_tied_again(tmp_path: Path) -> None:
    """O-21: saving failed on weights that share memory, since the form had no notion of it. In exports too."""
    embedding, head = torch.nn.Embedding(257, 33), torch.nn.Linear(33, 257, bias=False)
    head.weight = embedding.weight
    state = {"embedding": embedding.weight, "head": head.weight, "alias": embedding.weight, "step": 3}
    assert encode(state).total_bytes < embedding.weight.nbytes + 2000
    lm.save(tmp_path / "store", state)
    for form in ("lastgood", "safetensors", "pt"):
        out = tmp_path / f"out.{form}"
        lm.export(tmp_path / "store", out)
        assert out.stat().st_size < embedding.weight.nbytes + 8000
        restored = lm.load(out)
        assert len({restored[name].data_ptr() for name in ("embedding", "head", "alias")}) == 1


def test_o_22_values_do_not_depend_on_strides(tmp_path: Path) -> None:
    """O-22: channels-last weights made the save raise; a reader that ignores strides gives scrambled numbers."""
    state = {
        "conv": torch.randn(16, 8, 3, 3).to(memory_format=torch.channels_last),
        "conv3d": torch.randn(4, 3, 2, 3, 3).to(memory_format=torch.channels_last_3d),
        "turned": torch.randn(7, 11).t(),
        "permuted": torch.randn(2, 3, 4, 5, 6).permute(4, 2, 0, 3, 1),
        "slice": torch.randn(30)[::3],
    }
    restored = there_and_back(state)
    assert_same(state, restored)
    assert restored["conv"].stride() == state["conv"].stride()
    lm.save(tmp_path / "store", state)
    for form in ("lastgood", "safetensors", "pt"):
        lm.export(tmp_path / "store", tmp_path / f"out.{form}")
        assert_same(state, lm.load(tmp_path / f"out.{form}"))


def test_o_23_low_precision_keeps_its_bits() -> None:
    """O-23: bfloat16 and float8 broke the save, because their bytes were taken by way of numpy, which lacks them."""
    special = torch.tensor([0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 1e-7, 448.0])
    state = {name: special.to(getattr(torch, name)) for name in ("bfloat16", "float16")}
    for name in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"):
        dtype = getattr(torch, f"float8_{name}", None)
        if dtype is not None:
            state[name] = torch.arange(256).to(torch.uint8).view(dtype)
    assert_same(state, there_and_back(state))


@pytest.mark.filterwarnings("ignore")  # torch calls these layouts unfinished
def test_o_24_sparse_tensors() -> None:
    """O-24: sparse tensors could not be saved, or came back with indices that point nowhere."""
    coo = torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 1, 0], [2, 0, 0, 2]]), torch.tensor([1.0, 2.0, 3.0, 4.0]), (3, 4)
    )
    state = {
        "uncoalesced": coo,
        "coalesced": coo.coalesce(),
        "csr": torch.eye(5).to_sparse_csr(),
        "empty": torch.sparse_coo_tensor(size=(3, 0)),
        "dense": torch.ones(3),
    }
    restored = there_and_back(state)
    assert_same(state, restored)
    assert not restored["uncoalesced"].is_coalesced()
    embedding = torch.nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(embedding.parameters())
    embedding(torch.tensor([1, 2])).sum().backward()
    optimizer.step()
    assert_same(optimizer.state_dict(), there_and_back(optimizer.state_dict()))


def test_o_25_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O-25: tensors beyond 2 GiB came back with zeros at their end: a write moves what it likes, and was not looped."""
    plain, lengths = os.pwrite, random.Random(0)

    def short(descriptor: int, data: Any, offset: int) -> int:
        return plain(descriptor, memoryview(data)[: lengths.randint(1, 65536)], offset)

    monkeypatch.setattr(os, "pwrite", short)
    state = {"big": torch.arange(700_000, dtype=torch.int32), "after": torch.arange(5)}
    with lm.Checkpointer(tmp_path / "store", state, device="buffered", rng=False) as ckpt:
        ckpt.save(1)
    monkeypatch.undo()
    assert_same(state, lm.load(tmp_path / "store"))


@pytest.mark.nightly
@pytest.mark.parametrize("size", [2**31 + 4097, 2**32 + 4097])
def test_o_25_beyond_two_and_four_gibibytes(tmp_path: Path, size: int) -> None:
    big = torch.zeros(size, dtype=torch.uint8)
    marks = [0, 0x7FFFEFFF, 0x7FFFF000, 2**31 - 1, 2**31, 2**32 - 1, 2**32, size - 1]
    for position in marks:
        if position < size:
            big[position] = 1 + position % 251
    lm.save(tmp_path / "store", {"big": big, "after": torch.arange(5)}, keep=1)
    restored = lm.load(tmp_path / "store")
    assert restored["big"].equal(big)
    assert restored["after"].equal(torch.arange(5))


# --- what is loaded ---------------------------------------------------------------------------------------------------


def test_o_33_what_save_takes_load_gives_back() -> None:
    """O-33: training and saving were green, and the resume was refused because of a numpy scalar or a generator's state."""
    state = {
        "best": np.float64(0.25),
        "seen": np.int64(7),
        "history": np.arange(5, dtype=np.float32),
        "numpy": np.random.RandomState(3).get_state(),
        "numpy new": np.random.default_rng(3).bit_generator.state,
        "python": random.Random(3).getstate(),
        "torch": torch.Generator().manual_seed(3).get_state(),
        "generators": [np.random.default_rng(3), random.Random(3)],
    }
    restored = there_and_back(state)
    pair = [state.pop("generators"), restored.pop("generators")]
    assert_same(state, restored)
    assert pair[0][0].random() == pair[1][0].random()
    assert pair[0][1].random() == pair[1][1].random()


def test_o_35_containers_whose_shape_differs_from_what_the_program_holds() -> None:
    """O-35: a list that was empty in the loading program and full in the file could not be loaded."""
    saved = {
        "callbacks": [{"best": 1.5, "path": "x"}, {"patience": 3}],
        "metrics": {"val": {"loss": [0.3, 0.2]}},
        "history": ((1, 2), (3,)),
        "step": 100,
    }
    here: dict[str, Any] = {"callbacks": [], "metrics": {}, "history": None, "step": 0}
    directory = MemoryDirectory()
    with lm.Checkpointer(directory, dict(saved), rng=False) as ckpt:
        ckpt.save(100)
    with lm.Checkpointer(directory, here, rng=False) as ckpt:
        ckpt.restore()
    assert_same(saved, here)


def test_o_36_empty_containers_stay(tmp_path: Path) -> None:
    """O-36: empty dicts vanished in a round trip through flat names; keeping them then broke the writer."""
    state = {
        "state": {},
        "groups": [],
        "nested": {"a": {"b": {}}, "c": [[], ()], "d": ""},
        "ordered": collections.OrderedDict(),
        "queue": collections.deque(),
        "none": None,
        "false": False,
        "zero": 0,
    }
    assert_same(state, there_and_back(state))
    lm.save(tmp_path / "store", state)
    lm.export(tmp_path / "store", tmp_path / "out.safetensors")
    assert_same(state, lm.load(tmp_path / "out.safetensors"))


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "_orig_mod.module."])
def test_o_37_names_with_a_wrappers_prefix(prefix: str) -> None:
    """O-37: a model saved compiled did not load uncompiled; or it loaded, and left fresh weights in place."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    directory: Any = MemoryDirectory()
    wrapped = {prefix + key: value for key, value in net.state_dict().items()}
    lm.save(directory, {"model": wrapped, "step": 10})
    here = {"model": torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), "step": 0}
    before = [each.clone() for each in here["model"].parameters()]  # type: ignore[union-attr]
    with lm.Checkpointer(directory, here, rng=False) as ckpt, pytest.raises(StateMismatch) as refusal:
        ckpt.restore()
    assert prefix in str(refusal.value)
    assert "'0.weight'" in str(refusal.value)
    assert all(a.equal(b) for a, b in zip(before, here["model"].parameters(), strict=True))  # type: ignore[union-attr]


def test_o_38_another_version_is_named(tmp_path: Path) -> None:
    """O-38: checkpoints of a newer version of a library failed with a KeyError. Both versions are named; nothing is
    deleted or overwritten. That older formats are read for ever is in `tests/models/test_format.py`."""
    lm.save(tmp_path / "store", {"w": torch.ones(3)})
    lm.export(tmp_path / "store", tmp_path / "out.lastgood")
    content = bytearray((tmp_path / "out.lastgood").read_bytes())
    content[8] += 1
    (tmp_path / "newer.lastgood").write_bytes(content)
    with pytest.raises(FormatTooNew, match=r"format 2, this lastgood reads up to 1: upgrade"):
        lm.load(tmp_path / "newer.lastgood")
    assert (tmp_path / "newer.lastgood").read_bytes() == content


def test_o_56_functions_inside_a_state() -> None:
    """O-56: scheduler states with lambdas could not be saved, or dragged the whole optimizer along."""
    parameter = [torch.nn.Parameter(torch.zeros(2))]
    rates = torch.optim.lr_scheduler

    def sgd() -> torch.optim.Optimizer:
        return torch.optim.SGD(parameter, lr=0.1, momentum=0.9)

    one = sgd()
    taken = {
        "lambda": rates.LambdaLR(sgd(), lr_lambda=lambda epoch: 0.95**epoch).state_dict(),
        "one": rates.OneCycleLR(sgd(), max_lr=0.5, total_steps=10).state_dict(),
        "two": rates.SequentialLR(one, [rates.ConstantLR(one), rates.ExponentialLR(one, 0.9)], [2]).state_dict(),
    }
    assert_same(taken, there_and_back(taken))
    directory: Any = MemoryDirectory()
    lm.save(directory, {"a": 1})
    before = {name: device.content.tobytes() for name, device in directory.files.items()}
    for state, path in (
        ({"scheduler": {"scale": lambda x: x}}, r"state\['scheduler'\]\['scale'\]: function"),
        ({"cyclic": rates.CyclicLR(sgd(), 0.1, 0.2, scale_fn=lambda x: 0.99)}, r"state\['cyclic'\]: .*CyclicLR"),
        ({"bound": [one.step]}, r"state\['bound'\]\[0\]: "),
    ):
        with pytest.raises(NotPlainData, match=path):
            lm.save(directory, state)
    assert {name: device.content.tobytes() for name, device in directory.files.items()} == before


def test_a_state_with_many_kinds_is_saved_by_two_threads_at_once() -> None:
    """The encoder keeps nothing between two states: jobs side by side in one process do not disturb each other."""
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = there_and_back({"n": number, "w": [torch.full((100,), float(number))] * 3, "a": np.ones(3)})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found["n"] == number and found["w"][0].eq(number).all() for number, found in results.items())
    assert len(results) == 6
