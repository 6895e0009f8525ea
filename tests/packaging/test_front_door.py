"""`import lastgood` costs next to nothing: each name is fetched from its room on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import lastgood
import lastgood.core


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own: this one has loaded everything long ago."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


def test_importing_the_package_loads_none_of_what_it_is_made_of() -> None:
    program = "import sys; before = set(sys.modules); import lastgood; print(*sorted(set(sys.modules) - before))"
    loaded = run_python(program).stdout.split()
    assert "lastgood" in loaded
    heavy = {"numpy", "numba", "llvmlite", "torch", "rich", "hypothesis"}
    assert not [name for name in loaded if name.partition(".")[0] in heavy or name.startswith("lastgood.")]


@pytest.mark.parametrize("name", lastgood.__all__)
def test_every_name_of_the_front_door_is_the_one_in_its_room(name: str) -> None:
    home = "lastgood.models" if name == "Checkpointer" else "lastgood.core"
    if home == "lastgood.models":
        pytest.importorskip("torch")
    assert getattr(lastgood, name) is getattr(importlib.import_module(home), name)
    assert name in dir(lastgood)


def test_everything_public_in_the_core_is_at_the_front_door() -> None:
    assert set(lastgood.core.__all__) | {"Checkpointer"} == set(lastgood.__all__)


def test_the_rooms_are_reached_without_importing_them_by_name() -> None:
    done = run_python("import lastgood; print(lastgood.core.__name__, lastgood.crashsim.__name__)")
    assert done.stdout.split() == ["lastgood.core", "lastgood.crashsim"], done.stderr


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Stroe'"):
        _ = lastgood.Stroe  # type: ignore[attr-defined]
    assert not hasattr(lastgood, "numpy")


def test_without_torch_one_line_says_what_to_install() -> None:
    # None in sys.modules is how the import system itself remembers "not to be had".
    done = run_python("import sys; sys.modules['torch'] = None; import lastgood; lastgood.Checkpointer")
    assert done.returncode == 1
    advice = "lastgood.Checkpointer needs PyTorch: pip install 'lastgood[torch]'"
    assert done.stderr.splitlines()[-1] == f"ImportError: {advice}"
    assert done.stderr.count("Traceback") == 1


def test_without_torch_the_store_is_there() -> None:
    done = run_python("import sys; sys.modules['torch'] = None; from lastgood import Store; print(Store.__name__)")
    assert done.stdout.split() == ["Store"], done.stderr


@pytest.mark.parametrize("room", ["core", "models", "crashsim"])
def test_a_room_has_one_name_only(room: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"import lastgood.{room}, not {room}"):
        importlib.import_module(room)
