"""What the machine does to saves in other people's programs: kills, signals, forks, caches, lost writes. One test a case.

The rules R1 to R4 are those of `test_saving.py`. Here they are held against real processes and a real file system.
"""

from __future__ import annotations

import errno
import faulthandler
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lastgood.models as lm
from lastgood.core import NoStore, NothingUsable, SaveFailed, Store, StoreError
from lastgood.core.memory import MemoryDevice, MemoryDirectory
from tests.wild.scene import advance, marked, step_of

NIGHTLY = os.environ.get("LASTGOOD_PROFILE") == "nightly"


def in_a_child(work: Callable[[], None], seconds: float = 60) -> int:
    """Do the work in a forked process; its exit status, negative when a signal killed it. Fails when it hangs."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except SystemExit as ending:
            os._exit(int(ending.code or 0))
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(1)
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.002)


# --- killed for real ---------------------------------------------------------------------------------------------------

CALLS = ("open", "pwrite", "fsync", "fdatasync", "replace", "rename", "mkdir", "unlink", "posix_fallocate")


def killed_at(number: int, halfway: bool) -> None:
    """From now on this process dies of SIGKILL at its n-th call to the operating system, before or within it."""
    left, turn = [number], threading.Lock()

    def counted(name: str) -> Any:
        plain = getattr(os, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            with turn:
                left[0] -= 1
                if left[0] == 0:
                    if halfway and name == "pwrite":
                        plain(arguments[0], memoryview(arguments[1])[: len(arguments[1]) // 8192 * 4096], arguments[2])
                    os.kill(os.getpid(), signal.SIGKILL)
            return plain(*arguments, **keywords)

        return call

    for name in CALLS:
        setattr(os, name, counted(name))


@pytest.mark.parametrize("device", ["buffered", "auto"])
def test_o_01_and_o_12_killed_at_every_call_to_the_system(tmp_path: Path, device: str) -> None:
    """O-01: a job killed while it wrote left a file that ends too early, under the final name.
    O-12: with room for one checkpoint, the old one was deleted first; then the process died, and none was left.

    A process saves step 1, then dies at the first, second, … call of saving step 2, until it survives.
    """
    survived = 0
    for number in range(1, 200):
        path = tmp_path / f"store-{number}"
        lm.save(path, marked(1), step=1, keep=1)

        def work(path: Path = path, number: int = number) -> None:
            killed_at(number, halfway=number % 2 == 0)
            with lm.Checkpointer(path, state := marked(1), rng=False, device=device) as ckpt:
                ckpt.restore()
                advance(state)
                ckpt.save(2).wait()

        status = in_a_child(work)
        assert status in (0, -signal.SIGKILL)
        found = step_of(lm.load(path))
        assert found in (1, 2)
        assert found == 2 or status != 0
        shutil.rmtree(path)
        survived += status == 0
        if survived:
            break
    assert survived
    assert number > 5, "there were calls to die at"


def test_o_01_killed_at_every_call_of_the_first_save_ever(tmp_path: Path) -> None:
    """Nothing was acknowledged, so nothing, or the whole of it, is there; and the next save makes the store."""
    for number in range(1, 200):
        path = tmp_path / f"store-{number}"

        def work(path: Path = path, number: int = number) -> None:
            killed_at(number, halfway=False)
            lm.save(path, marked(1), step=1)

        status = in_a_child(work)
        try:
            assert step_of(lm.load(path)) == 1
        except NoStore:
            assert status != 0
        lm.save(path, marked(2), step=2)
        assert step_of(lm.load(path)) == 2
        if status == 0:
            break
    assert status == 0
    assert number > 10


# --- a file system that is not what it seems ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "code"),
    [("stat", errno.ENOENT), ("lstat", errno.ENOENT), ("open", errno.ESTALE),
     ("open", errno.ENOENT),
     ("mkdir", errno.EEXIST), ("mkdir", errno.ESTALE), ("rename", errno.ESTALE), ("replace", errno.ESTALE),
     ("fsync", errno.ESTALE), ("pwrite", errno.ESTALE)],
)  # fmt: skip
def test_o_41_a_directory_seen_through_a_stale_cache(
    tmp_path: Path, call: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O-41: on a shared NFS, a mkdir or a rename seemed not to have happened yet, and jobs died or lost checkpoints.

    Each call in turn is wrong once, while a store is made and while one is saved into: the save is done all the same, or
    says clearly what was wrong; what was there is there, and the next save works.
    """
    plain = getattr(os, call)
    for kind in ("new", "used"):
        for instant in range(12):
            path = tmp_path / f"{kind}-{instant}"
            if kind == "used":
                lm.save(path, marked(1), step=1)
            calls = iter(range(1000))

            def wrong(*arguments: Any, calls: Iterator[int] = calls, at: int = instant, **keywords: Any) -> Any:
                if next(calls) == at:
                    raise OSError(code, os.strerror(code), str(arguments[0]))
                return plain(*arguments, **keywords)

            with monkeypatch.context() as patch:
                patch.setattr(os, call, wrong)
                try:
                    lm.save(path, marked(2), step=2)
                    acknowledged = [2]
                except (OSError, StoreError) as problem:
                    assert "\n" not in str(problem)  # noqa: PT017
                    acknowledged = [1] if kind == "used" else []
            if acknowledged:
                assert step_of(lm.load(path)) >= acknowledged[0]
            lm.save(path, marked(3), step=3)
            assert step_of(lm.load(path)) == 3
            if next(calls) <= instant:  # there are not so many calls
                break


class Log(MemoryDirectory):
    """A directory in memory that notes what was written and persisted, and knows what a power loss may leave."""

    def __init__(self) -> None:
        super().__init__("logged")
        self.log: list[tuple[str, str, int, bytes]] = []
        self._turn = threading.Lock()

    def note(self, operation: str, name: str, offset: int = 0, data: bytes = b"") -> None:
        with self._turn:
            self.log.append((operation, name, offset, data))

    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self.note("create", name)
            self.files[name] = Noted(self, name)
        return super().open(name, writable=writable)

    def publish(self, name: str, content: bytes) -> None:
        super().publish(name, content)
        device = self.files[name] = Noted(self, name)
        device.content = np.frombuffer(content, np.uint8).copy()
        self.note("publish", name, data=content)

    def after_power_loss(self, length: int, keeps: Callable[[], bool]) -> MemoryDirectory:
        """What is left of the first operations when of what was not persisted each write stays, or goes, as `keeps` says."""
        found = MemoryDirectory("found")
        found.make()
        done = self.log[:length]
        for place, (operation, name, offset, data) in enumerate(done):
            if operation == "create":
                found.files[name] = MemoryDevice()
            elif operation == "publish":
                found.files[name] = MemoryDevice(np.frombuffer(data, np.uint8).copy())
            elif operation == "allocate":
                found.files[name].allocate(offset)
            elif operation == "write":
                persisted = any(later[:2] == ("persist", name) for later in done[place:])
                if persisted or keeps():
                    found.files[name].write(offset, np.frombuffer(data, np.uint8))
        return found


class Noted(MemoryDevice):
    def __init__(self, log: Log, name: str) -> None:
        super().__init__()
        self._log, self._name = log, name

    def write(self, offset: int, data: np.ndarray) -> None:
        super().write(offset, data)
        self._log.note("write", self._name, offset, data.tobytes())

    def persist(self) -> None:
        self._log.note("persist", self._name)

    def allocate(self, length: int) -> None:
        grows = length > self.content.size
        super().allocate(length)
        if grows:
            self._log.note("allocate", self._name, length)


def images(log: Log, length: int, draw: random.Random) -> Iterator[MemoryDirectory]:
    yield log.after_power_loss(length, lambda: False)
    yield log.after_power_loss(length, lambda: True)
    for _ in range(4):
        yield log.after_power_loss(length, lambda: draw.random() < 0.5)


def lost_by(log: Log, acknowledged: dict[int, int], draw: random.Random) -> int:
    """In how many images after a power loss the newest acknowledged step, or a newer one, is not found whole."""
    lost = 0
    for length in range(min(acknowledged), len(log.log) + 1):
        newest = max(step for at, step in acknowledged.items() if at <= length)
        for image in images(log, length, draw):
            try:
                lost += step_of(lm.load(image)) < newest
            except StoreError:
                lost += 1
    return lost


def three_saves(log: Log) -> dict[int, int]:
    acknowledged = {}
    for step in (1, 2, 3):
        lm.save(log, marked(step, layers=2, width=1500), step=step, keep=1)  # type: ignore[arg-type]
        acknowledged[len(log.log)] = step
    return acknowledged


def test_o_42_after_a_power_loss_the_newest_is_found_whatever_was_dropped() -> None:
    """O-42: after a power loss a file of the right name was empty or full of zeros: it was renamed before its data was on
    the disk. Here: at every moment of three saves, with any of what was not persisted gone."""
    log = Log()
    acknowledged = three_saves(log)
    assert lost_by(log, acknowledged, random.Random(1)) == 0


def test_o_42_the_check_sees_a_persist_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same judge finds checkpoints lost when nothing is persisted, and when only payloads are."""
    log = Log()
    acknowledged = three_saves(log)
    log.log = [entry for entry in log.log if entry[0] != "persist"]
    shorter = {min(at, len(log.log)): step for at, step in acknowledged.items()}
    assert lost_by(log, shorter, random.Random(1)) > 0


def test_o_43_names_are_durable_before_a_save_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O-43: the rename itself was lost: its directory, or a parent that was made for it, was never persisted.

    Every name that the first save into new nested directories makes is followed by an fsync of the directory it is in,
    before the save is acknowledged; an exported file's too.
    """
    names: dict[str, int] = {}
    persisted: dict[str, int] = {}
    clock = iter(range(10**6))
    plain = {name: getattr(os, name) for name in ("open", "mkdir", "replace", "rename", "fsync")}

    def opening(path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        is_new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        descriptor: int = plain["open"](path, flags, *arguments, **keywords)
        if is_new:
            names[os.path.abspath(path)] = next(clock)
        return descriptor

    def making(path: Any, *arguments: Any, **keywords: Any) -> None:
        plain["mkdir"](path, *arguments, **keywords)
        names[os.path.abspath(path)] = next(clock)

    def moving(name: str) -> Any:
        def move(source: Any, target: Any, **keywords: Any) -> None:
            plain[name](source, target, **keywords)
            names.pop(os.path.abspath(source), None)
            names[os.path.abspath(target)] = next(clock)

        return move

    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        plain["fsync"](descriptor)
        if os.path.isdir(path):
            persisted[path] = next(clock)

    with monkeypatch.context() as patch:
        for name, watched in (
            ("open", opening), ("mkdir", making), ("replace", moving("replace")), ("rename", moving("rename")),
            ("fsync", fsync),
        ):  # fmt: skip
            patch.setattr(os, name, watched)
        path = tmp_path / "new" / "and" / "nested" / "store"
        lm.save(path, marked(1), step=1)
        lm.export(path, tmp_path / "out.lastgood")
        with Store.open(path, read_only=True) as store:
            from lastgood.models.retention import Keeper

            Keeper(path).pin(store, 1, "best")
    made = {name for name in names if name.startswith(str(tmp_path)) and os.path.lexists(name)}
    assert {str(path), str(path / "header"), str(tmp_path / "out.lastgood")} <= made
    assert str(path / "pinned" / "best.lastgood") in made
    # the lock is no part of any checkpoint: it is made anew when it is not there
    late = [name for name in made - {str(path / "lock")} if persisted.get(os.path.dirname(name), -1) < names[name]]
    assert not late
    assert {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "and")} <= set(persisted)


# --- directories that say no --------------------------------------------------------------------------------------------


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory that a process without privileges can reach."""
    path = Path(tempfile.mkdtemp(dir="/tmp", prefix="lastgood-wild-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def without_privileges() -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def test_o_17_and_o_51_a_directory_without_permission(open_to_all: Path) -> None:
    """O-17: in a directory without write permission the save returned normally and wrote nothing.
    O-51: a store that could not be read was taken for a fresh start, and the run began from scratch.

    The OSError reaches the caller, with the path in it, from a save, a Checkpointer's step and a restore.
    """
    (open_to_all / "closed").mkdir(mode=0o555)
    lm.save(open_to_all / "secret" / "store", marked(1), step=1)
    (open_to_all / "secret").chmod(0o700)
    shutil.copytree(open_to_all / "secret" / "store", open_to_all / "unreadable")
    for each in (open_to_all / "unreadable").iterdir():
        each.chmod(0o600)

    def refused(work: Callable[[], object], path: Path) -> None:
        with pytest.raises((OSError, StoreError), match=str(path)) as told:
            work()
        assert not isinstance(told.value, NoStore)
        assert "ermission" in str(told.value)

    with lm.Checkpointer(open_to_all / "warm", {"a": 1}) as ckpt:  # imports what the child cannot read any more
        ckpt.restore()
        ckpt.save(1)
    with pytest.raises(NoStore):
        lm.load(open_to_all / "nothing")

    def work() -> None:
        without_privileges()
        closed, secret, unreadable = (open_to_all / name for name in ("closed", "secret", "unreadable"))
        refused(lambda: lm.save(closed / "store", {"a": 1}), closed)
        with lm.Checkpointer(closed / "store", {"a": 1}, every=1) as ckpt:
            refused(lambda: ckpt.step(1), closed)
        for path in (secret / "store", unreadable):
            refused(lambda path=path: lm.load(path), path)  # type: ignore[misc]
            with lm.Checkpointer(path, {"a": 1}) as ckpt:
                refused(ckpt.restore, path)

    assert in_a_child(work) == 0


def test_o_17_a_directory_that_is_removed_while_the_job_runs(tmp_path: Path) -> None:
    """The files are still open, so every save into them would "succeed", and all be gone with the process."""
    path = tmp_path / "store"
    with lm.Checkpointer(path, {"a": 1}, every=10) as ckpt:
        ckpt.save(1).wait()
        shutil.rmtree(path)
        ticket = ckpt.save(2)
        with pytest.raises(SaveFailed, match=r"step 2 did not become durable.*the file was removed"):
            ticket.wait()
        with pytest.raises(SaveFailed, match="step 2"):
            ckpt.step(3)


def test_o_51_nothing_usable_is_told_from_nothing_there(tmp_path: Path) -> None:
    """A store whose every slot was deleted is no fresh start; a mistyped path says that nothing is there."""
    path = tmp_path / "store"
    lm.save(path, marked(1), step=1)
    for slot in path.glob("slot-*"):
        slot.unlink()
    with lm.Checkpointer(path, {"a": 1}) as ckpt, pytest.raises(NothingUsable):
        ckpt.restore()
    with pytest.raises(NoStore, match="the path does not exist"):
        lm.load(tmp_path / "stroe")


# --- the end of a process -----------------------------------------------------------------------------------------------


def test_o_18_a_process_that_ends_without_a_word(tmp_path: Path) -> None:
    """O-18, at `os._exit`: nobody can wait for the save in flight; what was acknowledged before is there all the same."""

    def work() -> None:
        with lm.Checkpointer(tmp_path / "store", state := marked(1), every=1, rng=False) as ckpt:
            ckpt.save(1).wait()
            advance(state)
            ckpt.save(2)
            os._exit(7)

    assert in_a_child(work) == 7
    assert step_of(lm.load(tmp_path / "store")) in (1, 2)


def listened(path: Path, work: Callable[[], None]) -> tuple[int, str]:
    """Do the work in a forked process; its exit status and what it logged."""

    def logging_work() -> None:
        logging.basicConfig(filename=path / "log", level=logging.WARNING, force=True)
        faulthandler.enable(trace := (path / "trace").open("w"))
        assert trace.writable()
        torch.manual_seed(0)
        work()

    lm.save(path / "warm", marked(1))  # compiled code is loaded before anything interrupts
    return in_a_child(logging_work), (path / "log").read_text() + (path / "trace").read_text()


@pytest.mark.parametrize("how", ["careless", "preempt"])
def test_o_46_signals_while_saves_run(tmp_path: Path, how: str) -> None:
    """O-46: a save that was made inside the signal handler sometimes never ended, until the scheduler killed the job.

    Signals come at random times while saves run. A handler that saves is let through or refused, never held; one that
    calls `preempt`, which only takes note, gets its last save from the training's thread.
    """
    signals = 500 if NIGHTLY else 100

    def work() -> None:
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        state = {"model": model, "optimizer": optimizer}
        # a careless handler may save in the middle of an update, which lazy capture finds out and tells of
        capture = "lazy" if how == "preempt" else "boundary"
        ckpt = lm.Checkpointer(tmp_path / "store", state, every=1, capture=capture, in_flight=2)
        came, refused, step = 0, 0, 0

        def handler(number: int, frame: Any) -> None:
            nonlocal came, refused
            came += 1
            ckpt.statistics()
            if how == "preempt":
                ckpt.preempt("20s") if came == signals else None
                return
            try:
                ckpt.save(step)
            except StoreError as refusal:
                assert "preempt()" in str(refusal)  # noqa: PT017
                refused += 1

        def shower() -> None:
            draw = random.Random(1)
            while came < signals:
                time.sleep(draw.random() * 0.004)
                os.kill(os.getpid(), draw.choice((signal.SIGUSR1, signal.SIGTERM)))

        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, handler)
        threading.Thread(target=shower, daemon=True).start()
        while came < signals or how == "preempt":
            model(torch.ones(4, 64)).square().mean().backward()
            optimizer.step()
            step += 1
            ckpt.step(step)
        ckpt.close()
        logging.warning("%d came, %d refused, %d steps", came, refused, step)

    status, log = listened(tmp_path, work)
    assert status == (0 if how == "careless" else 143), log
    with Store.open(tmp_path / "store", read_only=True) as store:
        newest = store.newest()
    assert newest is not None
    if how == "careless":
        assert f", {newest.step} steps" in log
    else:
        assert f"step {newest.step} " in log
        assert "is durable" in log


class Rows(torch.utils.data.Dataset[torch.Tensor]):
    """A thousand rows, some of them slow to come."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, number: int) -> torch.Tensor:
        time.sleep(self.seconds if number % 40 == 39 else 0)
        return torch.full((8,), float(number))


@pytest.mark.parametrize("phase", ["warm-up", "long steps", "evaluation", "data loading"])
def test_o_47_sigterm_whatever_the_job_is_doing(tmp_path: Path, phase: str) -> None:
    """O-47: in six preemptions of six the save at SIGTERM never ran, because its flag was looked at in one place only.

    `step` and `poll` look; the state of the last completed update is durable when the process ends, within the grace.
    """

    def work() -> None:
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loading = phase == "data loading"
        loader = lm.ResumableLoader(Rows(0.4 * loading), 4, shuffle=False, num_workers=2 if loading else 0)
        state = {"model": model, "optimizer": optimizer, "data": loader}
        ckpt = lm.Checkpointer(tmp_path / "store", state, every=1000, sigterm_grace="30s")
        step = ckpt.restore()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()

        def long_work() -> None:
            while True:
                time.sleep(0.01)
                ckpt.poll()

        if phase == "warm-up":
            ckpt.save(1).wait()
            long_work()
        for batch in loader:
            model(batch).square().mean().backward()
            optimizer.step()
            step += 1
            ckpt.step(step)
            time.sleep(0.2 if phase == "long steps" else 0.01)
            if phase == "evaluation" and step == 3:
                long_work()

    status, log = listened(tmp_path, work)
    assert status == 143
    state = lm.load(tmp_path / "store")
    with Store.open(tmp_path / "store", read_only=True) as store:
        newest = store.newest()
    assert newest is not None
    if phase == "warm-up":
        assert newest.step == 1
        return
    assert f"step {newest.step} " in log
    assert "is durable" in log
    assert state["data"]["position"] == 4 * newest.step


def test_o_48_children_forked_while_saves_run(tmp_path: Path) -> None:
    """O-48: a worker forked while another thread held a lock hung for ever.

    Children are forked while the writers are busy; each imports, allocates, and ends by `sys.exit` with everything that
    runs at a process's end. None hangs, and none writes to its parent's checkpoints or removes anything of them.
    """
    children = 300 if NIGHTLY else 60
    state = marked(0, width=30_000)
    with lm.Checkpointer(tmp_path / "store", state, every=1, in_flight=3, keep=2, rng=False) as ckpt:
        for step in range(1, children + 1):
            advance(state)
            ckpt.step(step)

            def work() -> None:
                import colorsys  # noqa: F401  something that was not imported yet

                torch.ones(1000).sum()
                with pytest.raises(StoreError):
                    ckpt.save(10**6)
                ckpt.close()

            assert in_a_child(work, 30) == 0
        loader = torch.utils.data.DataLoader(
            [torch.tensor(float(number)) for number in range(32)], num_workers=2, multiprocessing_context="fork"
        )
        for _ in range(2):
            advance(state)
            ckpt.step(int(state["step"]))
            assert len(list(loader)) == 32
    assert step_of(lm.load(tmp_path / "store")) == children + 2
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert all(report.state != "damaged" for report in store.verify())
