"""SIGTERM: the last state is durable within the grace, whatever the training was doing when it came."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

import lastgood.models as lm
from lastgood.core import SaveFailed, Store
from tests.models.test_background import BrittleDirectory, newest

JOB = """
import logging, sys, time, torch
import lastgood.models as lm

logging.basicConfig(level=logging.WARNING)
phase, capture = sys.argv[2], sys.argv[3]
model = torch.nn.Linear(300, 300)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
ckpt = lm.Checkpointer(sys.argv[1], {"model": model, "optimizer": optimizer}, every=3, capture=capture, sigterm_grace="20s")
step = ckpt.restore()
print("ready", flush=True)
while True:
    if phase == "warm-up":
        time.sleep(0.01)
        ckpt.poll()
        continue
    model(torch.randn(4, 300)).square().mean().backward()
    optimizer.step()
    step += 1
    ckpt.step(step)
    print(step, flush=True)
    if phase == "evaluation" and step == 4:
        while True:
            time.sleep(0.01)
            ckpt.poll()
"""


@pytest.mark.parametrize(
    ("phase", "capture"),
    [("warm-up", "boundary"), ("training", "boundary"), ("training", "lazy"), ("evaluation", "lazy")],
    ids=["warm-up", "training", "training-lazily", "evaluation-lazily"],
)
def test_the_last_step_is_durable(quick_path: Path, phase: str, capture: str) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", JOB, str(quick_path / "store"), phase, capture]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        if phase != "warm-up":
            assert "4\n" in iter(child.stdout.readline, ""), "it ended before its time"
        child.send_signal(signal.SIGTERM)
        assert child.stderr is not None
        out, errors = child.stdout.read(), child.stderr.read()  # not `communicate`: it would miss what was read ahead
    assert child.returncode == 143, errors
    if phase == "warm-up":
        assert not (quick_path / "store").exists()
        return
    last = max([4, *(int(line) for line in out.split())])
    assert "is durable" in errors
    assert "before the end of the grace" in errors
    with Store.open(quick_path / "store", read_only=True) as store:
        record = store.newest()
        assert record is not None
        assert record.step in (last, last + 1)
    state = {"model": torch.nn.Linear(300, 300)}
    with lm.Checkpointer(quick_path / "store", state) as ckpt:
        assert ckpt.restore(strict=False) == record.step


def interrupted(ckpt: lm.Checkpointer) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    while not ckpt._preemption.is_asked:
        time.sleep(0.001)


def test_a_medium_that_is_too_slow_is_told_and_the_process_still_ends(caplog: pytest.LogCaptureFixture) -> None:
    directory = BrittleDirectory()
    ckpt = lm.Checkpointer(directory, {"w": torch.zeros(())}, sigterm_grace=0.2)
    ckpt.save(1).wait()
    directory.may_persist.clear()
    interrupted(ckpt)
    with pytest.raises(lm.Preempted) as ending:
        ckpt.step(2)
    assert ending.value.code == 143
    assert "is not durable after the grace of 0.2 s" in caplog.text
    directory.may_persist.set()
    ckpt.close()


def test_a_last_save_that_fails_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    directory = BrittleDirectory()
    ckpt = lm.Checkpointer(directory, {"w": torch.zeros(())}, sigterm_grace=20)
    ckpt.save(1).wait()
    directory.broken = True
    interrupted(ckpt)
    with pytest.raises(SaveFailed, match="step 2"):
        ckpt.step(2)
    assert "failed with" in caplog.text
    directory.broken = False
    with pytest.raises(SaveFailed):
        ckpt.close()
    assert newest(directory) == 0.0


def test_a_save_of_this_step_that_is_under_way_is_waited_for_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    directory = BrittleDirectory()
    with lm.Checkpointer(directory, {"w": torch.zeros(())}, every=1, sigterm_grace=20) as ckpt:
        ckpt.step(1)
        interrupted(ckpt)
        with caplog.at_level(logging.WARNING, "lastgood"), pytest.raises(lm.Preempted):
            ckpt.poll()
        assert ckpt.statistics().saves == 1


def test_the_earlier_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with lm.Checkpointer(BrittleDirectory(), {"w": 1}, sigterm_grace=5):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
    with lm.Checkpointer(BrittleDirectory(), {"w": 1}):
        assert signal.getsignal(signal.SIGTERM) == before, "only who asks for it"


def test_a_handler_that_interrupts_our_own_code_does_nothing_there() -> None:
    """SIGTERM again and again while saves run: no deadlock, no lost save."""
    directory, state = BrittleDirectory(), {"w": torch.zeros(20_000)}
    stop = threading.Event()

    def shoot() -> None:
        while not stop.wait(0.002):
            os.kill(os.getpid(), signal.SIGTERM)

    with lm.Checkpointer(directory, state, sigterm_grace=30) as ckpt:
        shooter = threading.Thread(target=shoot)
        shooter.start()
        try:
            for step in range(1, 150):
                ckpt.save(step)
        finally:
            stop.set()
            shooter.join()
        assert ckpt._preemption.is_asked
        with pytest.raises(lm.Preempted):
            ckpt.step(150)
        assert ckpt.statistics().newest_durable_step == 150


@pytest.mark.parametrize("grace", [0, -1, "soon"])
def test_a_grace_that_is_none(grace: float | str) -> None:
    with pytest.raises(ValueError, match="give"):
        lm.Checkpointer("x", {"w": 1}, sigterm_grace=grace)


def test_all_checkpointers_of_a_process_hear_of_it() -> None:
    """Two of them, for a generator and a critic: only the newer heard of SIGTERM, the older went on without a last save.

    Closed in the order in which they were made, they left the handler of a closed one behind, which swallowed SIGTERM.
    """
    before = signal.getsignal(signal.SIGTERM)
    one = lm.Checkpointer(BrittleDirectory(), {"w": 1}, every=100, sigterm_grace=20)
    two = lm.Checkpointer(BrittleDirectory(), {"w": 2}, every=100, sigterm_grace=20)
    interrupted(one)
    for ckpt in (one, two):
        with pytest.raises(lm.Preempted):
            ckpt.step(3)
        assert ckpt.statistics().newest_durable_step == 3
    one.close()
    assert signal.getsignal(signal.SIGTERM) != before, "the other one still listens"
    two.close()
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_programs_own_handler_is_called_as_well() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        own = signal.getsignal(signal.SIGTERM)
        with lm.Checkpointer(BrittleDirectory(), {"w": 1}, sigterm_grace=20) as ckpt:
            interrupted(ckpt)
            assert heard == [signal.SIGTERM]
            ours = signal.getsignal(signal.SIGTERM)

            def later(number: int, frame: object) -> None:
                heard.append(0)
                ours(number, frame)  # type: ignore[operator, misc, arg-type]

            signal.signal(signal.SIGTERM, later)
            with lm.Checkpointer(BrittleDirectory(), {"w": 1}, sigterm_grace=20) as newer:
                interrupted(newer)
                assert heard == [signal.SIGTERM, 0, signal.SIGTERM], "each once, the newest first"
        assert signal.getsignal(signal.SIGTERM) is later, "one that was installed since stays where it is"
        os.kill(os.getpid(), signal.SIGTERM)
        while len(heard) < 5:
            time.sleep(0.001)
        assert heard[3:] == [0, signal.SIGTERM], "and reaches the one that was there before"
        assert own is not later
    finally:
        signal.signal(signal.SIGTERM, before)


DROPPED = """
import gc, os, signal, sys, time
import lastgood.models as lm
from lastgood.core.memory import MemoryDirectory
def child(end):
    number = os.fork()
    if number == 0:
        end()
        time.sleep(60)
        os._exit(7)
    return os.waitpid(number, 0)[1]
def term():
    os.kill(os.getpid(), signal.SIGTERM)
def own():
    with lm.Checkpointer(MemoryDirectory(), {"w": 1}, sigterm_grace=5):
        pass
    term()
ckpt = lm.Checkpointer(MemoryDirectory(), {"w": 1}, sigterm_grace=5)
ours = signal.getsignal(signal.SIGTERM)
print(child(term), child(own))
signal.signal(signal.SIGTERM, lambda *both: ours(*both))
del ckpt
gc.collect()
print("dropped", flush=True)
term()
time.sleep(60)
"""


def test_a_handler_without_checkpointers_swallows_nothing() -> None:
    """A checkpointer was dropped without `close`: its handler stayed, and the job could not be ended by SIGTERM any more.

    So it was with a forked child, a worker of a loader for example, which had inherited the handler.
    """
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], stdout=subprocess.PIPE, text=True, env=environment, timeout=50
    )
    assert done.stdout == "15 15\ndropped\n"
    assert done.returncode == -signal.SIGTERM
