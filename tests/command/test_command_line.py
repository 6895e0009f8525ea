"""The contract of the command `lastgood`: one line for what goes wrong, the right exit status, nothing loaded early."""

from __future__ import annotations

import argparse
import subprocess
import sys
import types
from pathlib import Path

import pytest

from lastgood import __version__, cli
from tests.command.running import lastgood, one_line


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A subcommand `probe` whose `run` a test replaces."""
    module = types.ModuleType("lastgood_probe")
    module.add_arguments = lambda parser: parser.add_argument("--size", type=int)  # type: ignore[attr-defined]
    module.run = lambda arguments: 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lastgood_probe", module)
    monkeypatch.setitem(cli.COMMANDS, "probe", ("lastgood_probe", "a probe"))
    return module


def raising(problem: BaseException) -> object:
    def run(arguments: argparse.Namespace) -> int:
        raise problem

    return run


def test_alone_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    printed = capsys.readouterr()
    assert all(name in printed.out for name in cli.COMMANDS)
    assert printed.err == ""


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_answers_without_a_subcommand(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    printed = capsys.readouterr()
    assert "usage: lastgood" in printed.out or printed.out == f"lastgood {__version__}\n"


def test_python_dash_m_is_the_command() -> None:
    completed = lastgood("--version")
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, f"lastgood {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "there is no command 'nonsense'; choose one of demo, "),
        (["--nonsense"], "unrecognized arguments: --nonsense (see lastgood --help)"),
        (["probe", "--nonsense"], "unrecognized arguments: --nonsense (see lastgood probe --help)"),
        (["probe", "--size", "large"], "argument --size: invalid int value: 'large' (see lastgood probe --help)"),
        (["probe", "--siz", "1"], "unrecognized arguments: --siz 1"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(
    words: list[str], said: str, probe: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    printed = capsys.readouterr()
    assert said in one_line(printed.err)
    assert printed.out == ""


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_result_of_run_is_the_exit_status(status: int, probe: types.ModuleType) -> None:
    probe.run = lambda arguments: status  # type: ignore[attr-defined]
    assert cli.main(["probe"]) == status


def test_a_subcommand_knows_its_name(probe: types.ModuleType) -> None:
    names = []
    probe.run = lambda arguments: names.append(arguments.command) or 0  # type: ignore[attr-defined]
    assert cli.main(["probe", "--size", "3"]) == 0
    assert names == ["probe"]


@pytest.mark.parametrize(
    ("problem", "status", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "/a/b"), 2, "lastgood: /a/b: No such file or directory"),
        (OSError("the disk\nis on fire"), 2, "lastgood: the disk is on fire"),
        (KeyboardInterrupt(), 130, "lastgood: interrupted"),
        (ModuleNotFoundError(name="torch"), 2, "needs torch: pip install 'lastgood[torch]'"),
        (ModuleNotFoundError(name="rich.table"), 2, "needs rich: pip install 'lastgood[cli]'"),
        (ModuleNotFoundError(name="lastgood.crashsim"), 2, "this installation lacks lastgood.crashsim"),
        (ModuleNotFoundError(name="elsewhere"), 2, "needs the module elsewhere"),
    ],
)
def test_what_goes_wrong_is_one_line(
    problem: BaseException, status: int, said: str, probe: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    probe.run = raising(problem)  # type: ignore[attr-defined]
    assert cli.main(["probe"]) == status
    assert said in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(("kind", "status"), [("NoStore", 2), ("NothingUsable", 1)])
def test_a_complaint_of_the_store_is_one_line(
    kind: str, status: int, probe: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path is bad input; a store that has lost everything is a failed check."""
    from lastgood.core import errors

    probe.run = raising(getattr(errors, kind)("/a/b: what is wrong with it"))  # type: ignore[attr-defined]
    assert cli.main(["probe"]) == status
    assert one_line(capsys.readouterr().err) == "lastgood: /a/b: what is wrong with it"


def test_a_mistake_of_ours_is_not_hidden(probe: types.ModuleType) -> None:
    probe.run = raising(ValueError("a bug"))  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["probe"])


def test_help_loads_neither_numba_nor_torch() -> None:
    program = (
        "import sys; from lastgood.cli import main; main(['--help']); main(['demo', '--help']);"
        "sys.exit(sorted({'numba', 'torch', 'numpy', 'rich'} & set(sys.modules)) or 0)"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr


def test_without_torch_the_demo_names_the_extra() -> None:
    program = (
        "import sys, importlib.util; sys.modules['torch'] = None; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
        "from lastgood.cli import main; sys.exit(main(['demo']))"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert completed.returncode == 2
    assert one_line(completed.stderr) == "lastgood: this command needs torch: pip install 'lastgood[torch]'"


def test_a_reader_that_goes_away_is_not_an_error_message() -> None:
    command = f"{sys.executable} -m lastgood --help | true"
    completed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert completed.stderr == ""
