"""However a program leaves, what it was promised holds: saves in flight are waited for, failures are told.

Only `os._exit` and signals end a process without asking anybody; then the promises for a process crash hold.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lastgood.core import Store
from tests.process.nursery import PROGRAMS, Nursery, environment

WELL = ["return", "kept"]


def newest_step(path: Path) -> int:
    """The step that is found, all of its bytes right."""
    with Store.open(path, read_only=True) as store:
        record, payload = store.read_with_record()
    assert np.all(payload == record.step)
    assert payload.size == 50_000
    return record.step


def leave(nursery: Nursery, path: Path, how: str, disk: str) -> tuple[int, str]:
    """Exit status, and standard error."""
    child = nursery.program("leaving", path, how, disk)
    status = child.wait(60)
    assert child.stdout == "left\n", child.stderr
    return status, child.stderr


@pytest.mark.parametrize("how", WELL)
def test_returning_without_close_waits_until_durable(nursery: Nursery, swift: Path, how: str) -> None:
    assert leave(nursery, swift / "store", how, "well") == (0, "")
    assert newest_step(swift / "store") == 3


def test_a_whole_interpreter_does_the_same(swift: Path) -> None:
    """The other tests run in children of a warm interpreter; this one says that they speak of a cold one too."""
    command = [sys.executable, str(PROGRAMS / "leaving.py"), str(swift / "store"), "return"]
    done = subprocess.run([*command, "well"], capture_output=True, text=True, timeout=120, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")
    assert newest_step(swift / "store") == 3


@pytest.mark.parametrize("how", WELL)
def test_returning_with_a_failed_save_is_not_a_success(nursery: Nursery, swift: Path, how: str) -> None:
    """`loud`: one line on standard error that says what failed, and a status that scripts see."""
    status, errors = leave(nursery, swift / "store", how, "broken")
    assert status == 1
    assert len(errors.splitlines()) == 1
    assert errors.startswith("lastgood: ")
    assert "step 2" in errors
    assert "Input/output error" in errors
    assert newest_step(swift / "store") == 1


@pytest.mark.parametrize("how", ["without-stderr", "closed-stderr", "full-stderr", "without-stdout"])
def test_a_failed_save_shows_in_the_status_where_no_line_can_be_written(
    nursery: Nursery, swift: Path, how: str
) -> None:
    """A daemon has closed what it was started with: the job ended with status 0, and its last checkpoint was not there."""
    status, _ = leave(nursery, swift / "store", how, "broken")
    assert status == 1
    assert newest_step(swift / "store") == 1


def test_an_exit_status_stays(nursery: Nursery, swift: Path) -> None:
    assert leave(nursery, swift / "store", "exit", "well") == (3, "")
    assert newest_step(swift / "store") == 3


def test_an_exit_with_a_failed_save_tells_of_it(nursery: Nursery, swift: Path) -> None:
    status, errors = leave(nursery, swift / "store", "exit", "broken")
    assert status != 0
    assert "lastgood: " in errors
    assert "Input/output error" in errors


@pytest.mark.parametrize("disk", ["well", "broken"])
def test_an_uncaught_exception_keeps_its_traceback(nursery: Nursery, swift: Path, disk: str) -> None:
    status, errors = leave(nursery, swift / "store", "raise", disk)
    assert status == 1
    assert "Traceback (most recent call last)" in errors
    assert "RuntimeError: a mistake of the user's" in errors
    assert ("Input/output error" in errors) == (disk == "broken")
    assert newest_step(swift / "store") == (3 if disk == "well" else 1)


@pytest.mark.parametrize("disk", ["well", "broken"])
def test_an_interrupt_is_waited_out(nursery: Nursery, swift: Path, disk: str) -> None:
    """Ctrl-C in the user's own code: the traceback, a status that is not 0, and the saves in flight are not lost."""
    status, errors = leave(nursery, swift / "store", "interrupt", disk)
    assert status != 0
    assert "KeyboardInterrupt" in errors
    assert ("Input/output error" in errors) == (disk == "broken")
    assert newest_step(swift / "store") == (3 if disk == "well" else 1)


@pytest.mark.parametrize(("how", "expected"), [("os-exit", 0), ("kill", -9)])
def test_leaving_without_asking_is_a_process_crash(nursery: Nursery, swift: Path, how: str, expected: int) -> None:
    """`newest-survives`: at least what was acknowledged is found, and the store opens again."""
    assert leave(nursery, swift / "store", how, "well") == (expected, "")
    assert newest_step(swift / "store") >= 1
    with Store.open(swift / "store") as store:
        store.read()
        assert store.save(b"after", step=9).wait().step == 9


@pytest.mark.parametrize("how", ["close-in-finally", "with"])
@pytest.mark.parametrize("disk", ["well", "broken"])
def test_close_never_hides_the_users_own_exception(nursery: Nursery, swift: Path, how: str, disk: str) -> None:
    """The exception that ends the program is the user's; a failed save is told beside it, not in its place."""
    status, errors = leave(nursery, swift / "store", how, disk)
    assert status == 1
    last = [line for line in errors.splitlines() if line.startswith(("RuntimeError", "lastgood.core"))]
    assert last == ["RuntimeError: a mistake of the user's"]
    assert ("Input/output error" in errors) == (disk == "broken")


def test_other_stores_are_waited_for_when_one_cannot_be_closed(nursery: Nursery, swift: Path) -> None:
    """`loud`: whatever one store's end raises, every other store's saves are waited for and told of."""
    child = nursery.program("leaving_two", swift / "first", swift / "second")
    assert child.wait(60) != 0
    assert "a surprise" in child.stderr
    for name in ("first", "second"):
        with Store.open(swift / name, read_only=True) as store:
            assert store.read_with_record()[0].step == 1


@pytest.mark.parametrize("how", ["end", "raise", "close", "interrupt"])
def test_a_save_that_was_begun_and_left_unfinished_does_not_hold_up_the_end(
    nursery: Nursery, swift: Path, how: str
) -> None:
    """A mistake between begin and finish ends a job; it must not keep it, and its machine, waiting for ever."""
    child = nursery.program("unfinished", swift / "store", how)
    status = child.wait(30)
    assert status != 0
    assert "step 2" in child.stderr, "loud: the unfinished save is told of"
    expected = {"end": "lastgood: ", "interrupt": "KeyboardInterrupt"}.get(how, "RuntimeError: a mistake of the user's")
    assert expected in child.stderr
    with Store.open(swift / "store") as store:
        assert bytes(store.read()) == b"one"
        store.save(b"three", step=3).wait()
