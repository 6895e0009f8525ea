"""What every test runs under: one profile, compiled code that belongs to this source, and one name per module."""

from __future__ import annotations

import faulthandler
import hashlib
import os
import signal
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# LASTGOOD_PROFILE: `dev` answers in seconds, `ci` is the same on every run, `nightly` looks for what nobody thought of.
# No deadlines: the first call of a kernel compiles it, and the machines of others are slow.
settings.register_profile("dev", max_examples=20, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "nightly", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
PROFILES = ("dev", "ci", "nightly")
PROFILE = os.environ.get("LASTGOOD_PROFILE", "ci")
STDERR = pytest.StashKey[int]()


class OneNamePerModule:
    """Refuses `import core` and its like, which the repository's root on the path would otherwise allow.

    A second copy of a module has a second copy of its exceptions, locks and compiled code: a test that imports it
    tests something that nobody runs.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in ("core", "models", "crashsim"):
            raise ModuleNotFoundError(f"import lastgood.{name}, not {name}", name=name)
        return None


def use_numba_cache_of_this_source() -> None:
    """Give each content of core/ its own cache of machine code, here and in every process that a test starts.

    numba notices a change in a kernel's own file only, not in the decisions that the kernel calls from other files:
    with one cache, an edited decision would be tested by the machine code of the old one.
    """
    digest = hashlib.sha256()
    for source in sorted((ROOT / "core").glob("*.py")):
        digest.update(source.read_bytes())
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba" / digest.hexdigest()))


def pytest_configure(config: pytest.Config) -> None:
    if PROFILE not in PROFILES:
        raise pytest.UsageError(f"LASTGOOD_PROFILE={PROFILE}: choose one of {', '.join(PROFILES)}")
    settings.load_profile(PROFILE)
    sys.meta_path.insert(0, OneNamePerModule())
    use_numba_cache_of_this_source()
    # A shell starts what it runs in the background with interrupts ignored, and every child inherits that: the tests
    # that send one would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[STDERR] = os.dup(2)  # the real one: while a test runs, pytest has another in its place


def pytest_report_header() -> str:
    jit = "off" if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0") else "on"
    return f"lastgood: profile {PROFILE}, JIT {jit}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {"dev": ("slow", "nightly"), "ci": ("nightly",), "nightly": ()}[PROFILE]
    unwanted = [item for item in items if any(item.get_closest_marker(marker) for marker in left_out)]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if item not in unwanted]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Set the watchdog again: pytest calls it off when a test fails, and one that failed can still hang afterwards."""
    limit = float(item.config.getini("faulthandler_timeout"))
    faulthandler.dump_traceback_later(limit, exit=True, file=item.config.stash[STDERR])
    return (yield)
