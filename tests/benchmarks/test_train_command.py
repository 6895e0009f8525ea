"""`lastgood bench train` from outside: one object, nothing left behind, and what an interrupt leaves."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import time
from pathlib import Path

import pytest

from lastgood import cli
from lastgood.benchmarks.train.loop import Cell
from lastgood.benchmarks.train.report import Bar
from lastgood.benchmarks.train.sweep import Plan, Samples
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
    assert completed.stderr == ""
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


def test_nothing_is_left_behind_but_the_figure(measured: tuple[dict[str, object], Path]) -> None:
    pytest.importorskip("matplotlib")
    _, place = measured
    assert list((place / "here").iterdir()) == []
    assert "lastgood-lazy-1" in (place / "figure.svg").read_text()


def test_an_interrupt_shows_what_was_measured_and_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a sweep of hours: the cells that were done are printed, files and processes are gone."""
    words = (*TINY, "--repetitions", "1000", "--contenders", "torch-save", "--directory", str(tmp_path))
    with started(*words, temporary=tmp_path) as (process, mark):
        begun: set[int] = set()
        end = time.monotonic() + 120
        while len(begun) < 3 and time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                begun |= {cell.stat().st_ctime_ns for cell in tmp_path.glob("lastgood-bench-*/cell")}
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 130, errors
        figures = json.loads(output)
        assert figures["complete"] is False
        assert figures["cells"], "what was measured so far"
        assert list(tmp_path.iterdir()) == []
        assert wait_until_gone(mark) == []


def test_an_interrupt_of_tune_leaves_nothing(tmp_path: Path) -> None:
    """The interrupt comes as a measurement is being forked, when Python swallows exceptions of those who registered."""
    sizes = ("--state-mb", "1", "--step-ms", "1", "--output", str(tmp_path / "tuned.json"))
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


def test_too_little_disk_is_told_beforehand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    assert cli.main([*TINY, "--directory", str(tmp_path)]) == 2
    assert "the benchmark needs 8" in one_line(capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*TINY, "--contenders", "nobody"]) == 2
    assert "there is none of this name" in one_line(capsys.readouterr().err)


def test_the_bar_says_what_runs_and_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    plan = Plan(("none", "torch-save"), (64,), (5,), ("emulated",), repetitions=2)
    moments = iter([0.0, 60.0, 120.0, 180.0, 240.0])
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("lastgood.benchmarks.train.report.time.monotonic", lambda: next(moments))
    bar = Bar(plan)
    for name in ("none", "torch-save", "none"):
        bar(Cell(name, 64, 5, "emulated"), Samples())
    bar(None, Samples())
    lines = shown.getvalue().split("\r\033[K")
    assert lines[1].endswith("1/4 none, 64 MB every 5 (emulated)")
    assert lines[3].startswith("[###############...............] 3/4 none")
    assert lines[3].endswith(", 3 min left"), "three minutes for two cells: as much for the two that are left"
    assert lines[4] == ""
