"""The wheel and the source distribution hold the tree, each file once, and work where nothing else of it is.

A wrong line in the build configuration shows in no other test: the tree goes on working while the wheel is empty, ships
every module twice through the links, or drops a package called `core` into everybody's site-packages.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("core", "models", "crashsim")
LINKS = {f"src/lastgood/{room}" for room in ROOMS}
CACHES = {"__pycache__", ".git", ".venv", ".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


class Distributions(NamedTuple):
    sdist: Path
    wheel_of_the_tree: Path
    wheel_of_the_sdist: Path


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Everything that a release would upload, built both ways: `build` alone makes the wheel from the sdist."""
    from_tree, from_sdist = tmp_path_factory.mktemp("from_tree"), tmp_path_factory.mktemp("from_sdist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", from_sdist)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", from_tree)
    (sdist,), (wheel,) = from_sdist.glob("*.tar.gz"), from_sdist.glob("*.whl")
    (direct,) = from_tree.glob("*.whl")
    return Distributions(sdist, direct, wheel)


@pytest.fixture(scope="module")
def installed(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel, and sees this one's third-party packages but not its lastgood.

    A `.pth` file is not followed from another `.pth` file, so the editable install here does not shine through.
    """
    environment = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--quiet", "--python", python,
        "install", "--no-deps", "--no-index", built.wheel_of_the_sdist,
    )  # fmt: skip
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    third_party = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "third_party.pth").write_text("\n".join(sorted(third_party)) + "\n")
    return python


def files_under(folder: Path) -> Iterator[str]:
    """Names from the root, without what tools left behind and without what the links to the rooms show."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(ROOT)
        if (
            path.is_file()
            and not CACHES & set(name.parts)
            and not LINKS & {parent.as_posix() for parent in name.parents}
        ):
            yield name.as_posix()


def package_of_the_tree() -> dict[str, Path]:
    """Where each file of the rooms belongs in the wheel -> where it lies in the tree."""
    package = {f"lastgood/{name}": ROOT / name for room in ROOMS for name in files_under(ROOT / room)}
    return package | {name.removeprefix("src/"): ROOT / name for name in files_under(ROOT / "src")}


def git(*arguments: str) -> set[str]:
    names = run("git", "ls-files", *arguments).splitlines()
    return {name for name in names if (ROOT / name).exists()}


@pytest.mark.parametrize("which", ["wheel_of_the_tree", "wheel_of_the_sdist"])
def test_the_wheel_holds_each_file_of_the_rooms_once_and_nothing_else(built: Distributions, which: str) -> None:
    with zipfile.ZipFile(getattr(built, which)) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
        contents = {name: wheel.read(name) for name in names}
    expected = package_of_the_tree()
    assert "lastgood/core/__init__.py" in expected
    assert sorted(names) == sorted(expected)
    assert {name for name, path in expected.items() if path.read_bytes() != contents[name]} == set()


def test_the_sdist_holds_everything_that_is_tracked_and_nothing_else(built: Distributions) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
    assert len(names) == len(set(names))
    if (ROOT / ".git").exists():
        tracked, present = git() - LINKS, git("--cached", "--others", "--exclude-standard")
    else:  # these tests came in an sdist themselves
        tracked, present = set(), set(files_under(ROOT))
    assert tracked - set(names) == set()
    assert set(names) - present == {"PKG-INFO"} - present


def test_an_installed_wheel_works_without_the_tree(installed: Path, tmp_path: Path) -> None:
    program = """if True:
        import importlib, pathlib, sys
        for name in ("lastgood", "lastgood.core", "lastgood.models", "lastgood.crashsim"):
            print(pathlib.Path(importlib.import_module(name).__file__).parent)
        import lastgood
        assert all(getattr(lastgood, name) for name in lastgood.__all__)
        assert not [entry for entry in sys.path if entry.endswith("/src")], sys.path
    """
    folders = run(installed, "-I", "-c", program, cwd=tmp_path).split()
    site = installed.parent.parent / "lib"
    assert len(folders) == 4
    assert all(Path(folder).is_relative_to(site) for folder in folders), folders


@pytest.mark.parametrize("name", [*ROOMS, "proofs", "tests"])
def test_an_installed_wheel_takes_no_other_name(installed: Path, tmp_path: Path, name: str) -> None:
    program = f"import importlib.util; print(importlib.util.find_spec({name!r}))"
    assert run(installed, "-I", "-c", program, cwd=tmp_path).strip() == "None"


def test_an_installed_wheel_brings_the_command(installed: Path, tmp_path: Path) -> None:
    assert "demo" in run(installed.parent / "lastgood", "--help", cwd=tmp_path)
    assert "demo" in run(installed, "-I", "-m", "lastgood", "--help", cwd=tmp_path)
