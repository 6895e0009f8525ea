"""The demo itself, with a small model: what it prints, and that it notices a resume that is wrong on purpose."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from lastgood.cli import main
from tests.command.running import lastgood, one_line, started, wait_until_gone

SMALL = ["demo", "--size", "tiny", "--steps", "80", "--kills", "3"]
PYTHONPATH = os.environ.get("PYTHONPATH", "")
PROMISED = {
    "identical": bool,
    "kills": int,
    "resumes": int,
    "saves": int,
    "steps_redone": int,
    "staleness_median": (int, float),
    "stalled_seconds": float,
    "seconds": float,
}


def test_json_is_one_object_and_the_end_is_identical(tmp_path: Path) -> None:
    completed = lastgood(*SMALL, "--json", "--in-flight", "2", environment={"TMPDIR": str(tmp_path)})
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stderr == ""
    facts = json.loads(completed.stdout)
    assert all(isinstance(facts[key], kind) for key, kind in PROMISED.items())
    assert facts["identical"] is True
    assert facts["kills"] == 3
    assert facts["digests"] == facts["undisturbed_digests"]
    assert {"parameters", "moments", "random streams", "samples"} <= facts["digests"].keys()
    assert facts["in_flight"] == 2
    assert facts["saves"] >= 40
    assert list(tmp_path.iterdir()) == [], "temporary files are left"


def test_lines_off_the_terminal_and_a_store_that_is_kept(tmp_path: Path) -> None:
    from lastgood import Store

    where = tmp_path / "new" / "store"
    completed = lastgood(*SMALL, "--directory", str(where), "--keep-directory", "--every", "7", "--seed", "3")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stderr == ""
    lines = completed.stdout.splitlines()
    assert [line.split()[:2] for line in lines if "kill " in line] == [["kill", f"{number}:"] for number in (1, 2, 3)]
    assert "\x1b" not in completed.stdout
    assert any(line.split() == ["identical", "yes,", "bit", "for", "bit"] for line in lines)
    assert lines[-1] == f"the store is kept: {where}"
    with Store.open(where, read_only=True) as store:
        newest = store.newest()
        assert newest is not None
        assert newest.step == 80


def test_without_kills_it_compares_all_the_same(tmp_path: Path) -> None:
    completed = lastgood(
        "demo", "--size", "tiny", "--steps", "10", "--kills", "0", "--json", "--directory", str(tmp_path)
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert json.loads(completed.stdout)["kills"] == 0
    assert list(tmp_path.iterdir()) == [], "a directory that was empty before is empty again"


@pytest.mark.parametrize(
    ("sabotage", "said"),
    [
        ("random", "the killed run differs"),
        ("sampler", "the killed run differs"),
        ("older", "newest-survives is broken"),
    ],
)
def test_a_resume_that_is_wrong_on_purpose_is_noticed(sabotage: str, said: str) -> None:
    completed = lastgood(*SMALL, "--sabotage", sabotage, "--json")
    assert completed.returncode == 1, completed.stdout + completed.stderr
    assert said in one_line(completed.stderr)
    assert json.loads(completed.stdout)["identical"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kills", "-1"], "argument --kills: -1 is not between 0 and"),
        (["--kills", "many"], "'many' is not a whole number"),
        (["--steps", "3"], "argument --steps: 3 is not between 10 and"),
        (["--every", "0"], "argument --every: 0 is not between 1 and"),
        (["--in-flight", "0"], "argument --in-flight: 0 is not between 1 and"),
        (["--seed", "-5"], "argument --seed: -5 is not between 0 and"),
        (["--steps", "20", "--every", "21"], "--every is larger than --steps"),
        (["--directory", "{file}"], "{file} is a file: --directory needs a new or empty directory"),
        (["--directory", "{full}"], "{full} is not empty: --directory needs a new or empty directory"),
        (["--directory", "{file}/below"], "{file}"),
    ],
)
def test_bad_input_is_one_line(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"file": tmp_path / "file", "full": tmp_path / "full"}
    places["file"].write_text("somebody's")
    places["full"].mkdir()
    (places["full"] / "thesis.tex").write_text("years of work")
    assert main(["demo", *[word.format(**places) for word in words]]) == 2
    printed = capsys.readouterr()
    assert said.format(**places) in one_line(printed.err)
    assert printed.out == ""
    assert (places["full"] / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("moment", ["while PyTorch loads", "undisturbed run", "run with kills"])
def test_ctrl_c_is_one_line_and_leaves_nothing(moment: str, tmp_path: Path) -> None:
    with started("demo", "--size", "tiny", "--steps", "400", temporary=tmp_path) as (process, mark):
        assert process.stdout is not None
        if moment == "while PyTorch loads":
            time.sleep(0.5)
        else:
            assert any(line.strip() == moment for line in process.stdout)
            time.sleep(0.3 if moment == "run with kills" else 2.5)
        process.send_signal(2)
        _, errors = process.communicate(timeout=20)
        assert one_line(errors) == "lastgood: interrupted"
        assert process.returncode == 130
        assert wait_until_gone(mark, seconds=1.0) == []
    assert list(tmp_path.iterdir()) == []


def test_a_polite_kill_leaves_nothing_either(tmp_path: Path) -> None:
    with started("demo", "--size", "tiny", "--steps", "3000", temporary=tmp_path) as (process, mark):
        assert process.stdout is not None
        assert process.stdout.readline() == "undisturbed run\n"
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 143
        assert wait_until_gone(mark, seconds=1.0) == []
    assert list(tmp_path.iterdir()) == []


def test_the_training_dies_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with started("demo", "--size", "tiny", "--steps", "100", temporary=tmp_path) as (process, mark):
        assert process.stdout is not None
        assert any(line.strip() == "run with kills" for line in process.stdout)
        os.kill(process.pid, 9)
        process.communicate(timeout=20)
        assert wait_until_gone(mark) == []


def test_a_pytorch_that_does_not_load_is_one_line_with_its_reason(tmp_path: Path) -> None:
    broken = tmp_path / "torch"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')")
    completed = lastgood("demo", "--json", environment={"PYTHONPATH": os.pathsep.join([str(tmp_path), PYTHONPATH])})
    assert completed.returncode == 2
    assert one_line(completed.stderr).endswith("ImportError: libgomp.so.1: cannot open shared object file")
