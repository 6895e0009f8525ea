"""`lastgood goodput`: what it prints, and its one line when the input is bad."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lastgood import cli
from lastgood.goodput.generate import KINDS
from lastgood.goodput.strategies import STRATEGIES
from tests.command.running import one_line

QUICK = ("--generate", "poisson", "--hours", "1", "--every", "600", "--intervals", "5,50")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["goodput", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_strategy_is_there_fixed_and_at_its_best(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, *QUICK, "--interval", "20")
    assert set(found["fixed"]) == set(found["best"]) == set(found["sweep"]) == set(STRATEGIES)
    for name, outcomes in found["sweep"].items():
        assert [outcome["interval_steps"] for outcome in outcomes] == [5, 20, 50]
        assert found["fixed"][name] in outcomes
        assert found["best"][name]["goodput"] == max(outcome["goodput"] for outcome in outcomes)
    assert {"goodput", "lost", "redone_steps", "bound_steps"} <= set(found["fixed"]["lastgood"])


def test_the_same_words_give_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, *QUICK) == told(capsys, *QUICK)
    assert told(capsys, *QUICK)["trace"] != told(capsys, *QUICK, "--seed", "1")["trace"]


def test_the_table_has_a_row_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["goodput"]) == 0
    printed = capsys.readouterr()
    assert all(f"\n{name} " in printed.out for name in STRATEGIES)
    assert "17 losses of 65 GPUs" in printed.out
    assert printed.err == ""


def test_the_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--formula", "artifact")
    assert found["formula"] == "artifact"
    assert found["intervals"] == [10, 25, 50]
    assert set(found["goodput"]) == {"checkfreq", "gpm", "pccheck", "ideal"}


def test_measured_costs_stand_in_for_the_shipped_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also from a file that `lastgood tune` wrote, where they are one part of it."""
    common = {"iteration_seconds": 0.1, "capture_seconds": 0.0, "write_seconds": 0.0, "load_seconds": 0.0}
    free = tmp_path / "free.json"
    free.write_text(json.dumps({"lastgood_tuned": 1, "interval_steps": 5, "costs": {"common": common}}))
    found = told(capsys, *QUICK, "--costs", str(free), "--restart", "0")
    assert found["costs"] == "free.json"
    assert found["best"]["lastgood"]["goodput"] == pytest.approx(1, abs=0.01)


def test_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    told(capsys, *QUICK, "--figure", str(tmp_path / "goodput.svg"))
    drawn = (tmp_path / "goodput.svg").read_text()
    assert drawn.startswith("<?xml")
    assert all(f"<!-- {name} -->" in drawn for name in STRATEGIES), "the legend names every line"


ABSURD = ("nan", "inf", "-inf", "0", "-1", "1e-9", "1e-300", "1e9", "1e18", "1e300", "1" * 30)


@pytest.mark.parametrize("option", ["--hours", "--every", "--away", "--gpus", "--restart", "--interval"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_number_makes_it_run_without_end(option: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--every 1e-9` was 43 thousand thousand million losses, each an entry of a list, until the machine had no memory."""
    for value in ABSURD:
        status = cli.main(["goodput", "--generate", kind, "--intervals", "100", f"{option}={value}"])
        printed = capsys.readouterr()
        assert status in (0, 2), value
        if status == 2:
            assert one_line(printed.err), value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "nowhere.csv"], "nowhere.csv: No such file"),
        (["--trace", "{columns}"], "columns.csv: the first line must name the columns Time and GPUs"),
        (["--trace", "{columns}", "--generate", "bulk"], "--trace and --generate: give one of the two"),
        (["--generate", "bulk", "--gpus", "0"], "--gpus 0: give 1 to 1,000,000"),
        (["--generate", "bulk", "--hours", "nan"], "--hours nan: give more than 0"),
        (["--gpus", "8"], "--gpus: this is for --generate: say which of bulk, poisson, single, spot"),
        (["--trace", "{gap}", "--every", "60"], "--every: this is for --generate"),
        (["--formula", "artifact", "--costs", "{few}"], "--costs: --formula has its own: give one of them"),
        (["--formula", "artifact", "--interval", "5"], "--interval: --formula has its own"),
        (["--intervals", "1,x"], "--intervals 1,x: give numbers of steps"),
        (["--intervals", "0,5"], "an interval of 0 steps: give 1 or more"),
        (["--interval", "-3"], "an interval of -3 steps"),
        (["--figure", "/no/such/folder/x.svg"], "--figure /no/such/folder/x.svg: No such file or directory: /no/such"),
        (["--figure", "figure.txt"], "--figure figure.txt: give a name that ends in .png"),
        (["--restart", "-1"], "restart_seconds: -1.0: give a number from 0 to 1e+09"),
        (["--restart", "1e300"], "restart_seconds: 1e+300: give a number from 0 to 1e+09"),
        (["--generate", "bulk", "--gpus", "1" * 30], "give 1 to 1,000,000"),
        (["--generate", "spot", "--hours", "1e9"], "--hours 1e+09: give 100,000 at most"),
        (["--generate", "poisson", "--every", "1e-9"], "--every 1e-09: more than 100,000 losses in 12 hours"),
        (
            ["--generate", "bulk", "--gpus", "1000000", "--every", "60"],
            "changes times GPUs are too many to be replayed",
        ),
        (["--intervals", "1" * 400], "an interval of more than 1,000,000,000 steps: give fewer"),
        (
            ["--trace", "{gap}"],
            "saves between two losses are too many to be replayed (at most 10,000,000): give larger",
        ),
        (["--trace", "{crowd}"], "crowd.csv: sample 2 has more than 1,000,000 GPUs: give fewer"),
        (["--costs", "{instant}"], "saves between two losses are too many"),
        (["--costs", "{eager}"], "a durable checkpoint every 1e-06 s (backstop_seconds) is too often"),
        (["--costs", "{many}"], "common: in_flight: 1000000: give 64 at most"),
        (["--costs", "{endless}"], "give a number from 0 to 1e+09"),
        (["--costs", "{columns}"], 'give a JSON object with a "common" entry'),
        (["--costs", "{unknown}"], "there is no cost 'speed'; the costs are backstop_seconds, "),
        (["--costs", "{few}"], "common: capture_seconds, write_seconds, load_seconds not given"),
        (["--costs", "{zero}"], "common: iteration_seconds: 0: give more than 0"),
        (["--costs", "{text}"], "lastgood: iteration_seconds: 'fast': give a number from 0 to 1e+09"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    all_costs = {"iteration_seconds": 1, "capture_seconds": 1, "write_seconds": 1, "load_seconds": 1}
    written = {
        "columns": ".csv\nA,B\n1,2",
        "unknown": '.json\n{"common": {"speed": 1}}',
        "few": '.json\n{"common": {"iteration_seconds": 1}}',
        "zero": ".json\n" + json.dumps({"common": all_costs | {"iteration_seconds": 0}}),
        "gap": ".csv\nTime,GPUs\n0,4\n1e9,2\n2e9,4",
        "crowd": ".csv\nTime,GPUs\n0,4\n1,1000000000000\n2,4",
        "instant": ".json\n" + json.dumps({"common": all_costs | {"iteration_seconds": 1e-300}}),
        "eager": ".json\n" + json.dumps({"common": all_costs | {"backstop_seconds": 1e-6}}),
        "many": ".json\n" + json.dumps({"common": all_costs | {"in_flight": 10**6}}),
        "endless": ".json\n" + json.dumps({"common": all_costs | {"load_seconds": 10**400}}),
        "text": ".json\n" + json.dumps({"common": all_costs, "lastgood": {"iteration_seconds": "fast"}}),
    }
    places = {}
    for name, content in written.items():
        suffix, _, text = content.partition("\n")
        places[name] = tmp_path / (name + suffix)
        places[name].write_text(text)
    assert cli.main(["goodput", *(word.format(**places) for word in words)]) == 2
    printed = capsys.readouterr()
    assert said in one_line(printed.err)
    assert printed.out == ""
