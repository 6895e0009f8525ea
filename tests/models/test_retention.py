"""What is pinned or kept by a rule stays whatever the slots do, and one whole checkpoint is there at every instant."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import lastgood.models as lm
from lastgood.core import Damaged, NoStore, Store, StoreError
from lastgood.models.retention import Keeper, Retention


def save(path: Path, step: int) -> None:
    lm.save(path, {"w": torch.full((2000,), float(step)), "step": step}, step=step)


def step_in(path: str | Path) -> int:
    state = lm.load(path)
    assert state["w"].eq(float(state["step"])).all()
    return int(state["step"])


def test_a_pinned_checkpoint_outlives_its_slot(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "store")
    save(tmp_path / "store", 1)
    with Store.open(tmp_path / "store", read_only=True) as store:
        path = keeper.pin(store, 1, "best")
    for step in range(2, 12):
        save(tmp_path / "store", step)
    assert step_in(path) == 1
    assert keeper.pins() == {"best": path}
    assert lm.load(path, lazy=True)["w"].eq(1.0).all()
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert all(report.state != "damaged" for report in store.verify()), "copies are not in the store's way"
        assert [record.step for record in store.records()] == [11, 10]
        keeper.pin(store, 11, "best")
        assert step_in(path) == 11
        with pytest.raises(NoStore, match=r"no checkpoint of step 1 .* it holds steps \[10, 11\]"):
            keeper.pin(store, 1, "again")
    keeper.unpin("best")
    assert keeper.pins() == {}
    with pytest.raises(NoStore, match="no pin 'best'"):
        keeper.unpin("best")


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 101, 3])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ValueError, match="no name for a pin"):
        Keeper(tmp_path).path_of(name)


def test_every_nth_step_stays(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "store", Retention(every=4))
    for step in range(1, 14):
        save(tmp_path / "store", step)
        with Store.open(tmp_path / "store", read_only=True) as store:
            keeper.look(store)
    assert list(keeper.kept()) == [4, 8, 12]
    assert [step_in(path) for path in keeper.kept().values()] == [4, 8, 12]


def test_a_time_ladder_thins_with_age() -> None:
    rule = Retention(ladder=[("10s", 3), ("1m", 2)])
    kept: list[tuple[int, float]] = []
    for second in range(0, 300, 2):
        if rule.wants(second, float(second), kept):
            kept.append((second, float(second)))
        gone = rule.superfluous(kept)
        kept = [copy for copy in kept if copy[0] not in gone]
        assert kept
        assert len(kept) <= 5
    assert [step for step, _ in kept] == [180, 240, 270, 280, 290]


@pytest.mark.parametrize("options", [{"every": 0}, {"every": True}, {"ladder": [(0, 3)]}, {"ladder": [("1h", 0)]}])
def test_numbers_that_would_keep_nothing_are_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Retention(**options)


class Died(BaseException):
    """The process is gone at this instant."""


@pytest.mark.parametrize("call", ["replace", "unlink", "fsync", "open"])
def test_whoever_is_killed_one_whole_checkpoint_is_there(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A best model was deleted before the next one was on the disk, then the process was killed: none was left."""
    keeper = Keeper(tmp_path / "store", Retention(ladder=[(1e-9, 1)]))
    save(tmp_path / "store", 1)
    with Store.open(tmp_path / "store", read_only=True) as store:
        pinned = keeper.pin(store, 1, "best")
        keeper.look(store)
    for instant in range(6):
        save(tmp_path / "store", instant + 2)
        with Store.open(tmp_path / "store", read_only=True) as store, monkeypatch.context() as patch:
            real, count = getattr(os, call), iter(range(100))

            def dies(
                *arguments: Any, real: Any = real, count: Any = count, at: int = instant // 2, **named: Any
            ) -> Any:
                if next(count) == at:
                    raise Died
                return real(*arguments, **named)

            patch.setattr(os, call, dies)
            with suppress(Died):
                keeper.pin(store, instant + 2, "best")
                keeper.look(store)
        assert step_in(pinned) >= 1
        assert step_in(tmp_path / "store") == instant + 2
        assert keeper.kept()
        for path in keeper.kept().values():
            step_in(path)


def test_a_checkpointer_pins_and_keeps(tmp_path: Path) -> None:
    state = {"w": torch.zeros(1000), "step": 0}
    rule = Retention(every=5)
    with lm.Checkpointer(tmp_path / "store", state, every=1, retention=rule, rng=False) as ckpt:
        for step in range(1, 13):
            state["w"].fill_(float(step))
            state["step"] = step
            ticket = ckpt.step(step)
            if step == 7:
                best = ckpt.pin(7, "best")
            elif ticket is not None and step % 5 == 0:
                ticket.wait()
        with pytest.raises(NoStore, match="no checkpoint of step 1 "):
            ckpt.pin(1, "first")
    assert step_in(best) == 7
    assert list(ckpt.keeper.kept()) == [5, 10]
    assert [step_in(path) for path in ckpt.keeper.kept().values()] == [5, 10]


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_a_step_that_is_to_stay_is_not_overtaken(tmp_path: Path, keep: int) -> None:
    """Four saves in flight went past the one to be kept: its slot had been used again when somebody looked."""
    state = {"w": torch.zeros(200_000), "step": 0}
    rule = Retention(every=4)
    with lm.Checkpointer(tmp_path / "store", state, every=1, retention=rule, in_flight=4, keep=keep, rng=False) as ckpt:
        for step in range(1, 30):
            state["w"].fill_(float(step))
            state["step"] = step
            ckpt.step(step)
    assert list(ckpt.keeper.kept()) == [4, 8, 12, 16, 20, 24, 28]
    assert [step_in(path) for path in ckpt.keeper.kept().values()] == [4, 8, 12, 16, 20, 24, 28]


@pytest.mark.parametrize("how", ["damaged", "no room"])
def test_what_could_not_be_kept_is_told_once_and_saving_goes_on(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lastgood.models import retention

    state = {"w": torch.zeros(1000), "step": 0}
    plain = retention.copy_out

    def fails(store: Store, record: Any, path: str, **options: Any) -> None:
        if record.step == 5:
            raise Damaged("step 5 is damaged") if how == "damaged" else OSError(28, "No space left on device", path)
        plain(store, record, path, **options)

    monkeypatch.setattr(retention, "copy_out", fails)
    told = []
    with lm.Checkpointer(
        tmp_path / "store", state, every=1, retention=Retention(every=5), in_flight=1, keep=1, rng=False
    ) as ckpt:
        for step in range(1, 13):
            try:
                ckpt.step(step)
            except lm.NotKept as problem:
                told.append((step, problem))
    assert [step for step, _ in told] == [6]
    assert "step 5 was to stay and could not be copied" in str(told[0][1])
    assert told[0][1].ticket is not None
    assert told[0][1].ticket.step == 6
    assert list(ckpt.keeper.kept()) == [10]
    assert ckpt.statistics().published == 12


def test_a_copy_that_is_damaged_does_not_count_and_is_not_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = Keeper(tmp_path / "store", Retention(ladder=[(1e-9, 1)]))
    save(tmp_path / "store", 1)
    with Store.open(tmp_path / "store", read_only=True) as store:
        keeper.look(store)
    damaged = Path(keeper.kept()[1])
    damaged.write_bytes(damaged.read_bytes()[:100])
    again = Keeper(tmp_path / "store", Retention(ladder=[(1e-9, 1)]))
    for step in (2, 3):
        save(tmp_path / "store", step)
        with Store.open(tmp_path / "store", read_only=True) as store:
            again.look(store)
    assert list(again.kept()) == [1, 3]
    assert caplog.text.count("does not count as kept") == 1


@pytest.mark.parametrize("new_run", [False, True], ids=["gone-back", "another-run"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_step_that_is_saved_again_is_kept_as_it_was_saved_last(
    tmp_path: Path, new_run: bool, restarted: bool
) -> None:
    """The copy of an abandoned run stayed under the number of the step, and the step that counted was never kept."""

    def run(values: list[int], steps: range, **options: Any) -> list[float]:
        state = {"v": torch.zeros(2)}
        with lm.Checkpointer(tmp_path / "store", state, every=1, retention=Retention(every=5), **options) as ckpt:
            if restarted and values[0] and not new_run:
                ckpt.restore()
            for value in values:
                for step in steps:
                    state["v"].fill_(value + step)
                    ckpt.step(step)
        return [lm.load(path)["v"][0].item() for path in ckpt.keeper.kept().values()]

    if new_run or restarted:
        assert run([0], range(1, 12)) == [5.0, 10.0]
        assert run([100], range(1, 7), new_run=new_run) == [105.0, 10.0]
    else:
        assert run([0, 100], range(4, 7)) == [105.0]


def test_the_newest_save_of_a_step_is_found_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lastgood.models import retention

    copied = []
    plain = retention.copy_out
    monkeypatch.setattr(retention, "copy_out", lambda *given, **more: (copied.append(given[1]), plain(*given, **more)))
    state = {"w": torch.zeros(2000), "step": 0}
    with lm.Checkpointer(tmp_path / "store", state, keep=3, rng=False) as ckpt:
        for _ in range(2):
            ckpt.save(5).wait()
        monkeypatch.setattr("time.time_ns", lambda: 10**18)
        state["w"].fill_(6.0)
        state["step"] = 6
        newest = ckpt.save(5).wait()
    assert newest.saved_at_ns == 10**18, "the clock was put back"
    for _ in range(2):
        with Store.open(tmp_path / "store", read_only=True) as store:
            Keeper(tmp_path / "store", Retention(every=5)).look(store)
    assert [record.sequence for record in copied] == [newest.sequence - 2, newest.sequence - 1, newest.sequence]
    assert step_in(Keeper(tmp_path / "store").kept()[5]) == 6


@pytest.mark.parametrize("call", ["replace", "fsync", "open"])
@pytest.mark.parametrize("instant", range(3))
def test_whoever_is_killed_while_a_copy_is_replaced_it_is_whole(
    tmp_path: Path, call: str, instant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = Keeper(tmp_path / "store", Retention(every=5))
    for value in (1, 2):
        lm.save(tmp_path / "store", {"w": torch.full((2000,), float(value)), "step": value}, step=5)
        with Store.open(tmp_path / "store", read_only=True) as store, monkeypatch.context() as patch:
            real, count = getattr(os, call), iter(range(100))

            def dies(*given: Any, real: Any = real, count: Any = count, **named: Any) -> Any:
                if next(count) == instant:
                    raise Died
                return real(*given, **named)

            if value == 2:
                patch.setattr(os, call, dies)
            with suppress(Died):
                keeper.look(store)
        assert step_in(keeper.kept()[5]) >= 1
    with Store.open(tmp_path / "store", read_only=True) as store:
        Keeper(tmp_path / "store", Retention(every=5)).look(store)
    assert step_in(keeper.kept()[5]) == 2


def test_a_step_of_another_run_is_not_pinned_as_one_of_this(tmp_path: Path) -> None:
    state = {"w": torch.full((2000,), 5.0), "step": 5}
    with lm.Checkpointer(tmp_path / "store", state, keep=3) as ckpt:
        ckpt.save(5)
    with lm.Checkpointer(tmp_path / "store", state, keep=3, new_run=True) as ckpt:
        assert step_in(ckpt.pin(5, "before")) == 5, "no other run has begun yet"
        ckpt.save(1).wait()
        with pytest.raises(NoStore, match=r"no checkpoint of step 5 .*: it holds steps \[1\] of this run.*exported"):
            ckpt.pin(5, "best")
    with lm.Checkpointer(tmp_path / "store", state, keep=3) as ckpt:
        assert ckpt.restore() == 1
        with pytest.raises(NoStore, match="another run's"):
            ckpt.pin(5, "best")
        assert list(ckpt.keeper.pins()) == ["before"]
        ckpt.save(5)
        assert step_in(ckpt.pin(5, "best")) == 5


def test_pins_need_files() -> None:
    from lastgood.core.memory import MemoryDirectory

    with lm.Checkpointer(MemoryDirectory(), {"a": 1}, every=1) as ckpt:
        ckpt.save(1)
        with pytest.raises(StoreError, match="a directory of files"):
            ckpt.pin(1, "best")
