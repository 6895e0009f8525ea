"""How runs become figures, and what is asked for becomes a plan."""

from __future__ import annotations

import argparse
import math
from typing import Any

import pytest

from lastgood.benchmarks.train import field
from lastgood.benchmarks.train.figures import figures_of, figures_of_cell
from lastgood.benchmarks.train.loop import Cell
from lastgood.benchmarks.train.options import BadPlan, add_train_arguments, plan_of
from lastgood.benchmarks.train.report import as_table
from lastgood.benchmarks.train.sweep import Plan, Samples
from lastgood.benchmarks.train.targets import rows


def run_of(iteration: float, baseline: float = 0.1, **others: Any) -> dict[str, Any]:
    usual = {
        "iteration_seconds": iteration, "baseline_seconds": baseline, "baseline_cpu_seconds": 0.01, "iterations": 20,
        "saves": 4, "complete": 3, "dropped": 1, "stall_seconds": 0.02, "staleness": 5, "oldest_seconds": 0.7,
        "longest_seconds": 0.4,
        "cpu_seconds": 1.0, "written_bytes": 4_000_000_000, "drain_seconds": 0.1, "extra_bytes": 2**20,
        "descendant_bytes": 2**21, "state_bytes": 1_000_000_000, "wrong": [],
    }  # fmt: skip
    return usual | others


def test_figures_are_medians_over_rounds_of_ratios_within_a_round() -> None:
    """A round in which everything was slow, the baseline too, counts for what it says of the contender."""
    runs = [run_of(0.12), run_of(0.36, baseline=0.3), run_of(0.15)]
    cell = figures_of_cell(Cell("lastgood-lazy-1", 1000, 5, "emulated"), runs, 1e9)
    assert cell["slowdown"] == pytest.approx(1.2)
    assert cell["slowdown_range"] == pytest.approx([1.2, 1.5])
    assert cell["floor"] == pytest.approx(1e9 / (5 * 0.1 * 1e9))
    assert cell["cpu_seconds_per_gb"] == pytest.approx((1.0 - 20 * 0.01) / 4)
    assert (cell["durable"], cell["durable_saves"], cell["saves"], cell["dropped"]) == (True, 9, 12, 3)
    assert cell["written_gb_per_save"] == pytest.approx(1.0)
    assert cell["peak_mb"] == 3
    assert cell["correct"]


def test_a_device_that_is_fast_enough_allows_no_slowdown() -> None:
    assert figures_of_cell(Cell("torch-save", 1000, 50, "emulated"), [run_of(0.2)], 1e9)["floor"] == 1.0


def test_saves_that_are_not_persisted_are_not_counted_as_durable() -> None:
    cell = figures_of_cell(Cell("safetensors", 1000, 5, "emulated"), [run_of(0.2)], 1e9)
    assert (cell["durable"], cell["durable_saves"], cell["complete_saves"]) == (False, 0, 3)
    assert figures_of_cell(Cell("safetensors+fsync", 1000, 5, "emulated"), [run_of(0.2)], 1e9)["durable_saves"] == 3


def test_a_wrong_checkpoint_in_one_round_is_not_averaged_away() -> None:
    runs = [run_of(0.2), run_of(0.2, wrong=["model.0"]), run_of(0.2)]
    assert not figures_of_cell(Cell("torch-save", 64, 5, "emulated"), runs, 1e9)["correct"]


def test_a_cell_that_failed_says_why_and_has_no_figures() -> None:
    plan = Plan(("none", "torch-save"), (64,), (5,), ("emulated",))
    samples = Samples(
        [2e9, 4e9], [1.0, 4.0, 2.0], {Cell("torch-save", 64, 5, "emulated"): [{"error": "ValueError: no"}]}, 1
    )
    figures = figures_of(plan, samples)
    assert figures["raw_gb_per_s"] == 3.0
    assert (figures["machine"]["load"], figures["machine"]["load_range"]) == (2.0, [1.0, 4.0])
    assert figures["cells"][0]["slowdown"] is None
    assert "failed: ValueError: no" in as_table(figures)


def test_the_table_marks_what_is_not_durable_and_names_what_is_absent() -> None:
    plan = Plan(("none", "safetensors"), (64,), (5,), ("emulated",))
    cells = {Cell(name, 64, 5, "emulated"): [run_of(0.2)] for name in ("safetensors", "lastgood-lazy-1")}
    figures = figures_of(plan, Samples([2e9], [1.0], cells, 1)) | {"absent": {"orbax": "orbax is not installed"}}
    table = as_table(figures | {"missing": ["torch-save, 64 MB every 5 (emulated)"]})
    assert "\n~ safetensors " in table
    assert "\n  lastgood-lazy-1 " in table
    assert "absent: orbax: orbax is not installed" in table
    assert "not measured: torch-save, 64 MB every 5 (emulated)" in table


def arguments_for(*words: str, quick: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_train_arguments(parser)
    return argparse.Namespace(**vars(parser.parse_args(words)), quick=quick, directory=None, json=False)


def plan_for(*words: str, quick: bool = False) -> Plan:
    return plan_of(arguments_for(*words, quick=quick))


def test_the_whole_sweep() -> None:
    plan = plan_for()
    assert plan.states_mb == (64, 256, 1024)
    assert plan.intervals == (1, 2, 5, 10, 25, 50)
    assert plan.step_kinds == ("emulated", "torch")
    assert plan.contenders[0] == "none"
    assert {f"lastgood-{kind}-{count}" for kind in ("boundary", "lazy") for count in (1, 2, 4)} <= set(plan.contenders)
    assert plan.disk_bytes > 6 * 1024 * 2**20


def test_the_quick_one_has_durable_contenders_only_and_a_limit() -> None:
    plan = plan_for(quick=True)
    assert (plan.states_mb, plan.intervals, plan.step_kinds) == ((256,), (2, 10), ("emulated",))
    assert all(field.FIELD[name].is_durable for name in plan.contenders[1:])
    assert plan.limit_seconds <= 170 < math.inf


def test_what_is_wanted_is_what_the_rows_need() -> None:
    """Every row of the page finds its cells; nobody is measured where no row asks for it."""
    plan = plan_for("--wanted")
    cells = [
        {
            "contender": name, "state_mb": block.state_mb, "interval": block.interval, "step_kind": block.step_kind,
            "durable": field.FIELD[name].is_durable, "slowdown": 1.5, "floor": 1.0, "staleness": 1.0, "peak_mb": 1.0,
            "cpu_seconds_per_gb": 1.0, "longest_seconds": 1.0, "dropped": 0, "saves": 3,
        }
        for block in plan.blocks()
        for name in block.contenders
    ]  # fmt: skip
    found = rows({"cells": cells, "raw_gb_per_s": 1.0, "step_ms": 100.0})
    assert [row.what for row in found if row.is_reached is None] == []
    assert plan.cell_count == len(cells)
    assert all(block.contenders[0] == "none" for block in plan.blocks())
    assert plan.disk_bytes > 6 * 2**30


def test_of_what_is_wanted_only_the_chosen_are_measured() -> None:
    plan = plan_for("--wanted", "--contenders", "lastgood-lazy,torch-save,safetensors")
    found = {(block.state_mb, block.interval, block.step_kind): block.contenders for block in plan.blocks()}
    small = ("none", *(f"lastgood-lazy-{count}" for count in (1, 2, 4)), "torch-save", "safetensors")
    large = (*small[:4], "lastgood-lazy-1-skip", "lastgood-lazy-2-replace")
    assert found == {
        **{(256, interval, "emulated"): small for interval in (1, 2, 5, 10, 25)},
        (256, 10, "torch"): small,
        **{(1024, interval, "emulated"): large for interval in (1, 2)},
    }
    assert {block.state_mb for block in plan_for("--wanted", "--contenders", "torch-save").blocks()} == {256}
    assert {block.state_mb for block in plan_for("--wanted", "--contenders", "lastgood-lazy-1-skip").blocks()} == {1024}


def test_contenders_are_chosen_by_name_or_by_how_it_begins() -> None:
    assert plan_for("--contenders", "lastgood-lazy-1,torch-save").contenders == (
        "none",
        "lastgood-lazy-1",
        "torch-save",
    )
    assert set(plan_for("--contenders", "lastgood-boundary").contenders) == {
        "none", *(f"lastgood-boundary-{count}" for count in (1, 2, 4)),
    }  # fmt: skip


def test_an_absent_peer_is_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field, "find_spec", lambda name: None)
    assert (
        field.absent()["torch_checkpointing"] == "torch_checkpointing is not installed: pip install 'lastgood[bench]'"
    )
    assert not {"torch_checkpointing", "torchsnapshot+fsync", "lightning"} & set(plan_for().contenders)
    assert "torch-save-thread" in plan_for().contenders


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--state-mb", "0"], "--state-mb 0: give 1 to 1,000,000,000"),
        (["--state-mb", "big"], "--state-mb big: give numbers"),
        (["--intervals", "1,,2"], "--intervals 1,,2: give numbers"),
        (["--state-mb", "1" * 400], ": give 1 to 1,000,000,000"),
        (["--intervals", "-1"], "--intervals -1: give 1 to 1,000,000,000"),
        (["--intervals", "1,1000"], "--step-ms 100: 3 times 1000 steps take longer than the 240 s that a cell may"),
        (["--step-ms", "1e300"], "--step-ms 1e+300: 3 times 50 steps take longer"),
        (["--step-kinds", "gpu"], "--step-kinds gpu: choose of emulated, torch"),
        (["--step-ms", "0"], "--step-ms 0: give more than 0"),
        (["--step-ms", "nan"], "--step-ms nan"),
        (["--seconds", "-2"], "--seconds -2: give more than 0"),
        (["--seconds", "nan"], "--seconds nan: give more than 0, and 120 at most"),
        (["--seconds", "1e9"], "--seconds 1e+09: give more than 0, and 120 at most"),
        (["--repetitions", "0"], "--repetitions 0: give 1 to 1000"),
        (["--repetitions", "1000000000"], "--repetitions 1000000000: give 1 to 1000"),
        (["--contenders", "nobody"], "--contenders nobody: there is none of this name; there are none, lastgood-"),
        (["--contenders", "lastgood,"], "--contenders : there is none"),
        (["--wanted", "--contenders", "none"], "--wanted: nobody is left to be measured"),
        (["--figure", "/no/such/folder/x.svg"], "--figure /no/such/folder/x.svg: No such file or directory: /no/such"),
        (["--wanted", "--step-kinds", "torch"], "--step-kinds: --wanted says it already: give one of them"),
        (["--figure", "x.jpeg"], "--figure x.jpeg: give a name that ends in .png"),
    ],
)
def test_what_cannot_be_measured_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(BadPlan) as raised:
        plan_for(*words)
    assert said in str(raised.value)
