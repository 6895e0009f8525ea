"""What a signal does to a measurement, wherever it comes. Every signal here is sent at a known place, by the work itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastgood.benchmarks.stopping import Stopped, check, postponed, scratch, stoppable
from lastgood.benchmarks.train import process
from lastgood.benchmarks.train.process import run_alone
from tests.command.running import one_line


def send(number: int) -> None:
    """To this process; Python looks for it before the next line."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGALRM, 142)]
)
def test_a_signal_ends_the_work_with_the_status_a_shell_would_give(
    number: int, status: int, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    done = []
    if signal.getsignal(number) == signal.SIG_IGN:  # the tests may themselves run under nohup
        signal.signal(number, signal.SIG_DFL)
        request.addfinalizer(lambda: signal.signal(number, signal.SIG_IGN))

    def work() -> int:
        send(number)
        done.append("went on")
        return 0

    assert stoppable(work) == status
    assert done == []
    assert one_line(capsys.readouterr().err) in ("lastgood: interrupted", "lastgood: out of time")


def test_nothing_remains_of_an_end_in_the_next_work() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)]
    assert stoppable(lambda: send(signal.SIGTERM) or 0) == 143
    assert [
        signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    ] == before

    def work() -> int:
        check()
        return 7

    assert stoppable(work) == 7


def test_who_has_interrupts_ignored_is_heard_and_who_has_hang_ups_ignored_is_not() -> None:
    """The first is a command in the background of a script, the second one under `nohup`."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        assert stoppable(lambda: send(signal.SIGINT) or 0) == 130
        assert stoppable(lambda: send(signal.SIGHUP) or 0) == 0
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_second_signal_does_not_disturb_the_end() -> None:
    """`timeout` sends one to the command and one to its group."""
    ended = []

    def work() -> int:
        try:
            send(signal.SIGTERM)
        finally:
            send(signal.SIGTERM)
            send(signal.SIGINT)
            ended.append("in order")
        return 0

    assert stoppable(work) == 143
    assert ended == ["in order"]


def test_what_must_happen_whole_does_and_then_it_ends() -> None:
    happened = []

    def work() -> int:
        with postponed():
            with postponed():
                send(signal.SIGTERM)
                happened.append("inside")
            happened.append("still inside")
        happened.append("after")
        return 0

    assert stoppable(work) == 143
    assert happened == ["inside", "still inside"]


def test_a_signal_that_was_dropped_is_asked_for() -> None:
    """Python swallows what is raised in a finalizer."""

    def work() -> int:
        with contextlib.suppress(Stopped):
            send(signal.SIGTERM)
        check()
        return 0

    assert stoppable(work) == 143


def test_a_limit_ends_what_never_would() -> None:
    def work() -> int:
        while True:
            time.sleep(60)

    assert stoppable(work, 0.01) == 142


@pytest.mark.parametrize("moment", ["it is made", "the work goes on", "it is removed"])
def test_a_scratch_folder_is_gone_whenever_the_signal_comes(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_signal(function: Callable[..., Any]) -> Callable[..., Any]:
        def both(*words: Any, **named: Any) -> Any:
            send(signal.SIGTERM)
            result = function(*words, **named)
            send(signal.SIGTERM)
            return result

        return both

    if moment == "it is made":
        monkeypatch.setattr(tempfile, "mkdtemp", with_signal(tempfile.mkdtemp))
    if moment == "it is removed":
        monkeypatch.setattr(shutil, "rmtree", with_signal(shutil.rmtree))

    def work() -> int:
        with scratch("lastgood-bench-", str(tmp_path)) as directory:
            (Path(directory) / "file").write_text("x")
            if moment == "the work goes on":
                send(signal.SIGTERM)
        return 0

    assert stoppable(work) == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["it is forked", "it works", "it is ended"])
def test_a_process_of_its_own_is_ended_whenever_the_signal_comes(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child never ends by itself, but where it is already being ended."""
    children = []
    fork, end = os.fork, process._end

    def forking() -> int:
        if moment == "it is forked":
            send(signal.SIGTERM)
        child = fork()
        children.append(child)
        return child

    def ending(child: int) -> None:
        if moment == "it is ended":
            send(signal.SIGTERM)
        end(child)

    monkeypatch.setattr(os, "fork", forking)
    monkeypatch.setattr(process, "_end", ending)
    parent = os.getpid()

    def alone() -> dict[str, Any]:
        if moment == "it works":
            os.kill(parent, signal.SIGTERM)
        if moment != "it is ended":
            time.sleep(3600)
        return {}

    assert stoppable(lambda: len(run_alone(alone, str(tmp_path)))) == 143
    assert len(children) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)
