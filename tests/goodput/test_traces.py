"""Reading, refusing and generating failure traces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastgood.goodput.generate import KINDS, generate, spot
from lastgood.goodput.trace import BadInput, Trace, as_csv, parse_trace, read_trace, shipped_trace


def test_the_columns_are_found_by_name() -> None:
    trace = parse_trace("t.csv", [",GPUs,Zone,Time", "0,4,a,100.5", "1,2,a,163.5", "2,3,b,226.5"])
    assert (trace.seconds, trace.gpus) == ((100.5, 163.5, 226.5), (4, 2, 3))
    assert [(change.seconds, change.lost) for change in trace.changes()] == [(63.0, 2), (126.0, 0)]
    assert [change.lost for change in trace.losses()] == [2]
    assert trace.available_gpu_seconds == 63 * 4 + 63 * 2


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "the first line must name the columns Time and GPUs"),
        (["Time,Nodes", "0,1", "1,1"], "the first line must name the columns Time and GPUs"),
        (["Time,GPUs", "0,1", "1,"], "line 3: give a Time in seconds and a whole number of GPUs"),
        (["Time,GPUs", "0,1", "1"], "line 3: give a Time"),
        (["Time,GPUs", "0,1", "soon,1"], "line 3: give a Time"),
        (["Time,GPUs", "0,1", "nan,1"], "line 3: give a Time"),
        (["Time,GPUs", "0,1", "inf,1"], "line 3: give a Time"),
        (["Time,GPUs", "0,1.5", "1,1"], "line 2: give a Time in seconds and a whole number of GPUs"),
        (["Time,GPUs", "0,1", "5,1", "4,1"], "sample 3 is not later than the one before: sort the trace by Time"),
        (["Time,GPUs", "0,1", "0,2"], "sample 2 is not later"),
        (["Time,GPUs", "0,1", "1,-2"], "sample 2 has -2 GPUs: give counts of 0 or more"),
        (["Time,GPUs", "0,0", "1,0"], "there is never a GPU"),
        (["Time,GPUs", "0,1"], "needs two samples or more, this one has 1"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(lines: list[str], said: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse_trace("bad.csv", lines)
    assert str(raised.value).startswith("bad.csv: ")
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@given(st.lists(st.tuples(st.integers(1, 9999), st.integers(0, 99)), min_size=2, max_size=20))
def test_a_trace_survives_its_file(samples: list[tuple[int, int]]) -> None:
    times = tuple(sum(gap for gap, _ in samples[: number + 1]) / 4 for number in range(len(samples)))
    trace = Trace("t.csv", times, (1 + samples[0][1], *(gpus for _, gpus in samples[1:])))
    read = parse_trace("t.csv", as_csv(trace).splitlines())
    assert read.gpus == trace.gpus
    assert read.seconds == pytest.approx(trace.seconds, rel=1e-5)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_trace(tmp_path / "none.csv")


def test_the_shipped_trace_is_what_the_generator_makes() -> None:
    assert (shipped_trace().seconds, shipped_trace().gpus) == (spot().seconds, spot().gpus)
    losses = [loss.lost for loss in shipped_trace().losses()]
    assert min(losses) <= 2
    assert max(losses) >= 12, "single ones and bulks"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_generated_traces_lose_what_they_say(kind: str) -> None:
    sizes = {"gpus": 16, "hours": 6.0, "every": 1200.0, "away": 300.0, "seed": 3}
    trace = generate(kind, **sizes)  # type: ignore[arg-type]
    generate("poisson", **sizes | {"seed": 4})  # type: ignore[arg-type]
    assert generate(kind, **sizes) == trace, "the same arguments, the same trace"  # type: ignore[arg-type]
    assert trace.duration_seconds == pytest.approx(6 * 3600)
    assert trace.most_gpus == 16
    lost = [loss.lost for loss in trace.losses()]
    if kind == "bulk":
        assert lost == [8] * 18
    elif kind == "single":
        assert lost == [1] * 18
    else:
        assert 8 <= len(lost) <= 32, "18 are expected"


@pytest.mark.parametrize(
    ("option", "value"),
    [("gpus", 0), ("hours", 0.0), ("hours", float("inf")), ("every", -1.0), ("away", 0.0), ("every", float("nan"))],
)
def test_numbers_that_make_no_trace(option: str, value: float) -> None:
    sizes = {"gpus": 16, "hours": 6.0, "every": 1200.0, "away": 300.0, "seed": 3} | {option: value}
    with pytest.raises(BadInput, match=f"--{option}"):
        generate("poisson", **sizes)  # type: ignore[arg-type]
