"""`lastgood bench train` from outside: one object, nothing left behind, and what an interrupt leaves."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lastgood import cli
from lastgood.benchmarks.train.loop import Cell
from lastgood.benchmarks.train.report import Bar
from lastgood.benchmarks.train.sweep import Plan, Samples
from tests.benchmarks.test_train_figures import run_of
from tests.command.running import lastgood, one_line, started, wait_until_gone

TINY = (
    "bench", "train", "--state-mb", "1", "--intervals", "2", "--step-ms", "1", "--step-kinds", "emulated",
    "--seconds", "0.05", "--json",
)  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    place = tmp_path_factory.mktemp("bench")
    drawn = place / "figure.svg"
    words = ("--contenders", "lastgood-lazy-1,torch-save", "--repetitions", "1", "--directory", str(place / "here"))
    (place / "here").mkdir()
    try:
        import matplotlib  # noqa: F401

        words += ("--figure", str(drawn))
    except ImportError:
        pass
    completed = lastgood(*TINY, *words)
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr == "round 1 of 1, block 1 of 1: 1 MB every 2 (emulated); 0 of 3 cells done\n"
    return json.loads(completed.stdout), place


def test_one_object_with_every_cell(measured: tuple[dict[str, object], Path]) -> None:
    figures, _ = measured
    cells = figures["cells"]
    assert isinstance(cells, list)
    assert {cell["contender"] for cell in cells} == {"none", "lastgood-lazy-1", "torch-save"}
    for cell in cells:
        assert cell["slowdown"] > 0
        assert cell["correct"] is True
        assert cell["error"] is None
        assert {"floor", "durable", "durable_saves", "dropped", "staleness", "peak_mb", "cpu_seconds_per_gb"} <= set(
            cell
        )
        assert (cell["state_mb"], cell["interval"], cell["step_kind"]) == (1, 2, "emulated")
    assert figures["raw_gb_per_s"] > 0  # type: ignore[operator]
    assert figures["complete"] is True
    assert figures["missing"] == []


def test_nothing_is_left_behind_but_the_figure(measured: tuple[dict[str, object], Path]) -> None:
    pytest.importorskip("matplotlib")
    _, place = measured
    assert list((place / "here").iterdir()) == []
    assert "lastgood-lazy-1" in (place / "figure.svg").read_text()


@pytest.fixture
def interrupts_are_ignored() -> Iterator[None]:
    """As a script's command in the background inherits it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_are_ignored")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_shows_what_was_measured_and_leaves_nothing(number: int, status: int, tmp_path: Path) -> None:
    """Ctrl-C in the middle of a sweep of hours: the cells that were done are printed, files and processes are gone."""
    words = (*TINY, "--repetitions", "1000", "--contenders", "torch-save", "--directory", str(tmp_path))
    with started(*words, temporary=tmp_path) as (process, mark):
        begun: set[int] = set()
        end = time.monotonic() + 120
        while len(begun) < 3 and time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                begun |= {cell.stat().st_ctime_ns for cell in tmp_path.glob("lastgood-bench-*/cell")}
            time.sleep(0.005)
        process.send_signal(number)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == status, errors
        figures = json.loads(output)
        assert figures["complete"] is False
        assert figures["cells"], "what was measured so far"
        assert list(tmp_path.iterdir()) == []
        assert wait_until_gone(mark) == []


def test_an_interrupt_of_tune_leaves_nothing(tmp_path: Path) -> None:
    """The interrupt comes as a measurement is being forked, when Python swallows exceptions of those who registered."""
    sizes = ("--seconds", "600", "--state-mb", "1", "--step-ms", "1", "--output", str(tmp_path / "tuned.json"))
    words = ("tune", *sizes, "--directory", str(tmp_path))
    with started(*words, temporary=tmp_path) as (process, mark):
        end = time.monotonic() + 120
        while not list(tmp_path.glob("lastgood-tune-*/cell")) and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (130, "lastgood: interrupted\n")
        assert list(tmp_path.iterdir()) == []
        assert wait_until_gone(mark) == []


@pytest.mark.parametrize(("what", "number", "status"), [("core", signal.SIGINT, 130), ("state", signal.SIGTERM, 143)])
def test_a_signal_ends_the_other_benchmarks_and_leaves_nothing(
    what: str, number: int, status: int, tmp_path: Path
) -> None:
    with started("bench", what, "--quick", "--directory", str(tmp_path), temporary=tmp_path) as (process, mark):
        end = time.monotonic() + 120
        while not list(tmp_path.glob("lastgood-bench-*")) and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(number)
        output, errors = process.communicate(timeout=120)
        assert (process.returncode, output, errors) == (status, "", "lastgood: interrupted\n")
        assert list(tmp_path.iterdir()) == []
        assert wait_until_gone(mark) == []


def test_a_sweep_that_is_out_of_time_shows_what_it_has_and_names_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is over while the second contender is measured, which would take for ever."""
    monkeypatch.setattr("lastgood.benchmarks.train.sweep.prepare", lambda directory: None)
    monkeypatch.setattr("lastgood.benchmarks.train.sweep.Bandwidth", lambda *sizes: SimpleNamespace(sample=lambda: 2e9))
    told = run_of(0.1) | {"saves": 2}
    runs: list[str] = []

    def alone(work: partial[Any], place: str) -> dict[str, Any]:
        runs.append(work.args[0].contender)
        if len(runs) == 3:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            time.sleep(3600)
        return dict(told)

    monkeypatch.setattr("lastgood.benchmarks.train.sweep.run_alone", alone)
    words = ("--quick", "--contenders", "torch-save,dcp-thread", "--directory", str(tmp_path))
    assert cli.main([*TINY, *words]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["complete"] is False
    assert [cell["contender"] for cell in figures["cells"]] == runs[:2]
    assert figures["missing"] == [f"{runs[2]}, 1 MB every 2 (emulated)"]
    assert list(tmp_path.iterdir()) == []


def test_too_little_disk_is_told_beforehand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    assert cli.main([*TINY, "--directory", str(tmp_path)]) == 2
    assert "the benchmark needs 8" in one_line(capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["tune"], ["bench", "core"], ["bench", "state"], [*TINY]], ids=" ".join)
def test_a_directory_that_is_not_there_is_named(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of a random name was said to be missing in it."""
    assert cli.main([*words, "--directory", "/no/such"]) == 2
    assert one_line(capsys.readouterr().err) == "lastgood: /no/such: No such directory"


@pytest.mark.parametrize("what", ["core", "state"])
def test_what_only_the_sweep_has_is_refused_elsewhere(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`bench state --state-mb 64` measured 256 MB and said nothing."""
    assert cli.main(["bench", what, "--state-mb", "64"]) == 2
    assert f"unrecognized arguments: --state-mb 64 (see lastgood bench {what} --help)" in one_line(
        capsys.readouterr().err
    )


def test_a_figure_without_matplotlib_is_refused_before_the_sweep(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was noticed when it was to be drawn, hours later."""
    monkeypatch.delattr("lastgood.benchmarks.train.sweep.sweep")
    monkeypatch.setattr("lastgood.benchmarks.train.command.find_spec", lambda name: None)
    assert cli.main([*TINY, "--figure", "figure.svg"]) == 2
    assert "this command needs matplotlib: pip install 'lastgood[bench]'" in one_line(capsys.readouterr().err)


def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*TINY, "--contenders", "nobody"]) == 2
    assert "there is none of this name" in one_line(capsys.readouterr().err)


def test_the_bar_says_what_runs_and_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    plan = Plan(("none", "torch-save"), (64,), (5,), ("emulated",), repetitions=2)
    moments = iter([0.0, 60.0, 120.0, 180.0])
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("lastgood.benchmarks.train.report.time.monotonic", lambda: next(moments))
    bar = Bar(plan, 0.0)
    for name in ("none", "torch-save", "none"):
        bar(Cell(name, 64, 5, "emulated"), Samples())
    bar(None, Samples())
    lines = shown.getvalue().split("\r\033[K")
    assert lines[1].endswith("1/4 none, 64 MB every 5 (emulated)")
    assert lines[3].startswith("[###############...............] 3/4 none")
    assert lines[3].endswith(", 2 min left"), "two minutes for two cells: as much for the two that are left"
    assert lines[4] == ""


def test_a_log_has_one_line_for_each_block_with_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(("none", "torch-save"), (64,), (1, 5), ("emulated",), repetitions=2, limit_seconds=500.0)
    moments = iter([100.0 + 60.0 * cell for cell in range(9)])
    monkeypatch.setattr("lastgood.benchmarks.train.report.time.monotonic", lambda: next(moments))
    bar, samples = Bar(plan, 100.0), Samples()
    for number in range(8):
        samples.rounds = number // 4
        bar(Cell(("none", "torch-save")[number % 2], 64, (1, 5)[number // 2 % 2], "emulated"), samples)
    bar(None, samples)
    assert capsys.readouterr().err.splitlines() == [
        "round 1 of 2, block 1 of 2: 64 MB every 1 (emulated); 0 of 8 cells done, 8 min left",
        "round 1 of 2, block 2 of 2: 64 MB every 5 (emulated); 2 of 8 cells done, 6 min left",
        "round 2 of 2, block 1 of 2: 64 MB every 1 (emulated); 4 of 8 cells done, 4 min left",
        "round 2 of 2, block 2 of 2: 64 MB every 5 (emulated); 6 of 8 cells done, 2 min left",
    ]
