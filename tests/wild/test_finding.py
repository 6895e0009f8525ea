"""The wrong checkpoint was found, or a damaged one, or another job's: in other people's programs. One test a case."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import torch

import lastgood.models as lm
from lastgood.core import Damaged, NoStore, NotAStore, NothingUsable, OtherRun, Store, StoreError, StoreInUse
from tests.models.test_hostile_payload import Planted
from tests.wild.scene import marked, step_of


def saved(path: Path, steps: list[int], keep: int = 2) -> Path:
    for step in steps:
        lm.save(path, marked(step), step=step, keep=keep)
    return path


def slots_of(path: Path) -> dict[int, tuple[Path, int]]:
    """The slot file and the payload's place, by step."""
    with Store.open(path, read_only=True) as store:
        return {r.step: (path / f"slot-{r.slot:04d}", r.payload_offset) for r in store.records()}


def change(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_o_02_names_say_nothing(tmp_path: Path) -> None:
    """O-02: a resume took the directory with the highest number, though the job had died before that was finished."""
    path = saved(tmp_path / "store", [10])
    for name in ("step-20", "slot-0099", "checkpoint-30"):
        (path / name).mkdir() if name == "step-20" else (path / name).write_bytes(b"not whole")
    whole = next(iter(slots_of(path).values()))[0].read_bytes()
    (path / "slot-0050").write_bytes(whole[:5000])
    free = next(each for each in sorted(path.glob("slot-000*")) if each not in [s for s, _ in slots_of(path).values()])
    change(free, 0, whole[:4096])  # a record that is another slot's
    assert step_of(lm.load(path)) == 10
    with Store.open(path, read_only=True) as store:
        assert any("slot" in reason for reason in store.passed_over)


def test_o_04_the_next_older_one_is_tried_and_the_reasons_are_told(tmp_path: Path) -> None:
    """O-04: a resume failed on an incomplete newest checkpoint though good older ones lay beside it."""
    path = saved(tmp_path / "store", [1, 2, 3, 4, 5], keep=5)
    slots = slots_of(path)
    slots[5][0].unlink()
    os.truncate(slots[4][0], 5000)
    change(slots[3][0], 20, b"\xff\xff")
    assert step_of(lm.load(path)) == 2
    with Store.open(path, read_only=True) as store:
        assert store.read() is not None
        assert len(store.passed_over) == 3
        with pytest.raises(Damaged):
            store.read(strict=True)


def test_o_34_a_planted_pickle_is_never_run(tmp_path: Path) -> None:
    """O-34: resuming unpickled whatever the file held, so a planted checkpoint ran code."""
    marker = tmp_path / "marker"
    planted = pickle.dumps(Planted(marker))
    path = saved(tmp_path / "store", [1])
    for each in sorted(path.iterdir()):
        before = each.read_bytes()
        each.write_bytes(planted)
        with contextlib.suppress(StoreError):
            assert step_of(lm.load(path)) == 1
        assert not marker.exists()
        each.write_bytes(before)
    pickle.loads(planted)
    assert marker.exists(), "the trap works"


def save_as(number: int, path: Path, start: Any, results: Any) -> None:
    torch.set_num_threads(1)
    start.wait()
    try:
        for round_number in range(4):
            lm.save(path, marked(7, width=1000 * (number + 1)) | {"who": number}, step=round_number)
        results.put("saved")
    except StoreError as refusal:
        results.put(type(refusal).__name__)


def test_o_39_and_o_40_several_writers(tmp_path: Path) -> None:
    """O-39: the processes of a job raced to rename one directory, and all but one died of it.
    O-40: two writers shared one temporary name, so the published file had another's tail.

    One writer at a time owns the store; another is refused, clearly; what is found is one writer's, whole.
    """
    context = multiprocessing.get_context("fork")
    start, results = context.Event(), context.Queue()
    path = tmp_path / "store"
    workers = [context.Process(target=save_as, args=(number, path, start, results)) for number in range(3)]
    for worker in workers:
        worker.start()
    start.set()
    told = sorted(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    assert "saved" in told or set(told) <= {"StoreInUse", "StoreExists"}
    assert set(told) <= {"saved", "StoreInUse", "StoreExists", "NoStore"}
    state = lm.load(path)
    assert state["layer0"].numel() == 1000 * (state.pop("who") + 1)
    assert step_of(state) == 7


def test_o_40_a_stale_part_of_a_dead_process_is_harmless(tmp_path: Path) -> None:
    path = saved(tmp_path / "store", [1])
    (tmp_path / "out.safetensors.99999.part").write_bytes(b"half")
    lm.export(path, tmp_path / "out.safetensors")
    assert step_of(lm.load(tmp_path / "out.safetensors")) == 1


def test_o_49_an_interrupted_save_is_in_nobodys_way(tmp_path: Path) -> None:
    """O-49: one interrupted save left a partial directory that made each later run hang at the same step."""
    path = saved(tmp_path / "store", [10, 20])
    file, offset = slots_of(path)[20]
    change(file, offset, os.urandom(2000))
    assert step_of(lm.load(path)) == 10
    saved(path, [20])
    assert step_of(lm.load(path)) == 20


def test_o_50_the_order_is_that_of_saving(tmp_path: Path) -> None:
    """O-50: 10000 sorted before 9000, so the newest were deleted; or times of files decided, and a copy lost them."""
    steps = [9, 10, 99, 100, 9000, 10000]
    path = saved(tmp_path / "store", steps, keep=3)
    for number, each in enumerate(sorted(path.iterdir())):
        os.utime(each, (1_000_000 - number, 1_000_000 - number))
    with Store.open(path, read_only=True) as store:
        assert [record.step for record in store.records()] == [10000, 9000, 100]
    assert step_of(lm.load(path)) == 10000
    lm.save(path, marked(5), step=5)
    assert step_of(lm.load(path)) == 5, "saved last, whatever its number"


def test_o_51_nothing_there_and_nothing_usable_are_different(tmp_path: Path) -> None:
    """O-51: "starting from scratch", though a resume was asked for and checkpoints were there."""
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "nowhere", tmp_path / "empty"):
        with lm.Checkpointer(nothing, {"a": 1}) as ckpt:
            assert ckpt.restore() == 0
        with pytest.raises(NoStore):
            lm.load(nothing)
    path = saved(tmp_path / "store", [1, 2])
    for file, offset in slots_of(path).values():
        change(file, offset, os.urandom(200))
    with lm.Checkpointer(path, {"a": 1}) as ckpt, pytest.raises(NothingUsable):
        ckpt.restore()
    with pytest.raises(NothingUsable):
        lm.load(path)
    (tmp_path / "file").write_text("something else")
    with lm.Checkpointer(tmp_path / "file", {"a": 1}) as ckpt, pytest.raises((NotAStore, StoreError, OSError)):
        ckpt.restore()


def test_o_52_a_new_run_in_a_used_directory(tmp_path: Path) -> None:
    """O-52: a fresh run in a used directory deleted its own new checkpoints, since the old run's number was higher."""
    path = tmp_path / "store"
    state = {"who": "a"}
    with lm.Checkpointer(path, state, every=1, keep=1) as ckpt:
        ckpt.save(1000)
    with lm.Checkpointer(path, {"who": "b"}, every=1) as ckpt, pytest.raises(OtherRun):
        ckpt.save(10)
    with lm.Checkpointer(path, {"who": "b"}, every=1, new_run=True) as ckpt:
        ckpt.save(10).wait()
        assert lm.load(path) == {"who": "b"}
    assert lm.load(path) == {"who": "b"}


@pytest.mark.parametrize("seed", range(3))
def test_o_53_damage_is_noticed_and_the_older_checkpoint_used(tmp_path: Path, seed: int) -> None:
    """O-53: flipped bits were loaded as weights and found days later."""
    path = saved(tmp_path / "store", [1, 2])
    file, start = slots_of(path)[2]
    good, draw = file.read_bytes(), random.Random(seed)
    with Store.open(path, read_only=True) as store:
        length = store.records()[0].payload_bytes
    for _ in range(25):
        position = start + draw.randrange(length)
        change(file, position, bytes([good[position] ^ 1 << draw.randrange(8)]))
        assert step_of(lm.load(path)) == 1
        change(file, position, good[position : position + 1])
    for spoiled in (bytes(4096), os.urandom(100)):
        change(file, start + 4096, spoiled)
        assert step_of(lm.load(path)) == 1
        change(file, start + 4096, good[start + 4096 : start + 4096 + len(spoiled)])
    assert step_of(lm.load(path)) == 2
    other = slots_of(path)[1][0]
    file.rename(path / "aside"), other.rename(file), (path / "aside").rename(other)
    with pytest.raises(NothingUsable):
        lm.load(path)


def test_o_54_reading_everything_again_finds_what_was_spoiled_later(tmp_path: Path) -> None:
    """O-54: no crash at all, and yet some of the files saved on a virtual disk were damaged afterwards."""
    path = saved(tmp_path / "store", [1, 2])
    with Store.open(path, read_only=True) as store:
        assert not [report for report in store.verify() if report.state == "damaged"]
    file, start = slots_of(path)[1]
    change(file, start + 100, b"\xff\x00\xff")
    with Store.open(path, read_only=True) as store:
        assert [report.file for report in store.verify() if report.state == "damaged"] == [file.name]


def test_o_39_a_second_job_is_refused_by_name(tmp_path: Path) -> None:
    """Two jobs that were started on one directory by mistake: the second is told who holds it."""
    with lm.Checkpointer(tmp_path / "store", {"a": 1}) as ckpt:
        ckpt.save(1)
        with pytest.raises(StoreInUse, match=str(os.getpid())):
            lm.save(tmp_path / "store", {"b": 2})
