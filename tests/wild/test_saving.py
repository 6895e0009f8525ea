"""Saves that went wrong in other people's programs: torn, unheard, raced, out of room. One test a case.

Each docstring tells what happened to somebody. R1: what was reported durable is found. R2: what is loaded was saved, as a
whole. R3: what did not become durable is reported. R4: a failed save harms no older checkpoint.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import lastgood.models as lm
from lastgood.core import NotAStore, SaveFailed, Store, StoreError, WrongGeometry
from lastgood.core.memory import MemoryDirectory
from lastgood.models.encode import encode
from tests.models.states import assert_same
from tests.wild.scene import Halfway, Troubled, advance, marked, step_of


def full(number: int, operation: str, name: str) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", name)


def save(directory: Any, state: Any, step: int, keep: int = 1) -> None:
    lm.save(directory, state, step=step, keep=keep)


def crash_points(keep: int) -> list[tuple[str, str]]:
    directory = Troubled()
    save(directory, marked(1), 1, keep)
    before = len(directory.operations)
    save(directory, marked(2), 2, keep)
    return directory.operations[before:]


def killed_at(point: int, keep: int, kind: type[OSError]) -> MemoryDirectory:
    """Save step 1; die at some point of saving step 2 (for good: whatever the dying process tries fails as well)."""
    directory = Troubled()
    save(directory, marked(1), 1, keep)
    before = len(directory.operations)

    def dies(number: int, operation: str, name: str) -> None:
        if number >= before + point:
            raise kind if number == before + point else OSError(errno.EIO, "dead", name)

    directory.trouble = dies
    with pytest.raises((StoreError, OSError)):
        save(directory, marked(2), 2, keep)
    return directory.after_a_crash()


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("kind", [OSError, Halfway])
def test_o_01_and_o_12_killed_while_writing(keep: int, kind: type[OSError]) -> None:
    """O-01: a job killed while it wrote left a file that ends too early, under the final name.
    O-12: the old best model was deleted first, then the process died: none was left.

    At every step of the second save, whole or halfway, there is a whole checkpoint: the first or the second.
    """
    points = crash_points(keep)
    assert len(points) >= 3
    for point in range(len(points)):
        assert step_of(lm.load(killed_at(point, keep, kind))) in (1, 2)


def test_o_01_the_check_sees_a_save_in_place() -> None:
    """The same judge, given a save that overwrites the only copy, finds nothing whole: the check can fail."""
    directory = Troubled()
    save(directory, marked(1), 1)
    found = directory.after_a_crash()
    with Store.open(found, read_only=True) as store:
        record = store.records()[0]
    found.files[f"slot-{record.slot:04d}"].content[record.payload_offset :][:100] = 7
    with pytest.raises(StoreError):
        lm.load(found)


def test_o_03_parts_of_one_state_are_of_one_step() -> None:
    """O-03: model, optimizer, scheduler and metrics were four files; a crash between two of them could not be restored."""
    directory = Troubled()
    parts: dict[str, Any] = {name: marked(1, layers=1) for name in ("model", "optimizer", "scheduler", "metrics")}
    save(directory, parts, 1)
    before = len(directory.operations)
    for part in parts.values():
        advance(part)
    save(Troubled(), parts, 2)
    for point in range(6):

        def dies(number: int, operation: str, name: str, start: int = before, at: int = point) -> None:
            if number >= start + at:
                raise OSError(errno.EIO, "dead", name)

        directory.trouble = dies
        with pytest.raises((StoreError, OSError)):
            save(directory, parts, 2)
        found = lm.load(directory.after_a_crash())
        assert len({step_of(part) for part in found.values()}) == 1
        before = len(directory.operations)


def test_o_05_and_o_29_a_full_disk_in_the_middle(tmp_path: Path) -> None:
    """O-05: after a write failed the directory held finished, empty and half shards side by side.
    O-29: the last save of a long run met a full disk; its stump stayed and the run was lost.

    The reason is named, the older checkpoint is as it was, and the next save works in the same process.
    """
    directory = Troubled()
    save(directory, marked(1), 1, keep=2)
    names = directory.names()
    before = len(directory.operations)
    directory.trouble = lambda number, operation, name: full(0, "", name) if number == before else None
    with pytest.raises((SaveFailed, OSError), match="No space left"):
        save(directory, marked(2), 2, keep=2)
    assert step_of(lm.load(directory.after_a_crash())) == 1
    directory.trouble = lambda number, operation, name: None
    save(directory, marked(3), 3, keep=2)
    assert step_of(lm.load(directory)) == 3
    assert directory.names() == names, "nothing was left over"


def test_o_29_room_is_asked_for_before_a_byte_is_written() -> None:
    """All room is reserved when the store is made: a run that starts has the room for its last save."""
    directory = Troubled(lambda number, operation, name: full(0, "", name) if operation == "allocate" else None)
    with pytest.raises(OSError, match="No space left"):
        save(directory, marked(1), 1)
    assert ("write", "slot-0000") not in directory.operations


def test_o_30_the_first_error_is_the_one_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O-30: "disk full" was hidden by a second error, from closing the archive."""
    save(tmp_path / "store", {"w": torch.ones(100_000)}, 1)

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    import lastgood.models.torch_file as torch_file

    plain = torch.save
    monkeypatch.setattr(torch_file.torch, "save", lambda state, file: plain(state, Full(file)))
    with pytest.raises(OSError, match="No space left") as raised:
        lm.export(tmp_path / "store", tmp_path / "out.pt")
    assert raised.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("keep", [1, 2])
def test_o_13_a_limit_of_one_keeps_one(keep: int, tmp_path: Path) -> None:
    """O-13: with a limit of 1 every checkpoint was deleted. The newest remains, and the protected one, wherever it is."""
    from lastgood.models.retention import Keeper

    keeper = Keeper(tmp_path / "store")
    for step in range(1, 7):
        save(tmp_path / "store", marked(step), step, keep)
        if step == 3:
            with Store.open(tmp_path / "store", read_only=True) as store:
                best = keeper.pin(store, 3, "best")
    with Store.open(tmp_path / "store", read_only=True) as store:
        assert [record.step for record in store.records()] == [6, 5][:keep]
    assert step_of(lm.load(best)) == 3


def test_o_14_and_o_19_only_what_is_durable_counts() -> None:
    """O-14: the only complete checkpoint was pruned as soon as the next one was scheduled.
    O-19: the log said "saved" when the save was only asked for.

    While the writer is held, the newest is still the old one; accepted, durable and superseded are different words.
    """
    held, directory = threading.Event(), Troubled()
    with lm.Checkpointer(directory, {"s": marked(500)}, every=1, in_flight=1, keep=1, rng=False) as ckpt:
        ckpt.save(500).wait()
        directory.trouble = lambda number, operation, name: held.wait(5)  # type: ignore[assignment,return-value]
        ticket = ckpt.save(1000)
        assert (ticket.outcome, ticket.done, ticket.durable) == ("pending", False, False)
        with Store.open(directory.after_a_crash(), read_only=True) as store:
            assert [record.step for record in store.records()] == [500]
        assert ckpt.statistics().newest_durable_step == 500
        held.set()
        ticket.wait()
        assert (ticket.outcome, ticket.durable) == ("published", True)
        with Store.open(directory.after_a_crash(), read_only=True) as store:
            assert [record.step for record in store.records()] == [1000]
        assert ckpt.statistics().newest_durable_step == 1000


@pytest.mark.parametrize("keep", [0, -1])
def test_o_15_a_limit_that_keeps_nothing_is_refused(keep: int) -> None:
    """O-15: a limit of 0 was taken at its word and deleted everything; a stale higher number kept its place for ever."""
    with pytest.raises(WrongGeometry):
        save(MemoryDirectory(), {"a": 1}, 1, keep)


def test_o_15_the_checkpoint_just_written_is_never_the_one_to_go(tmp_path: Path) -> None:
    save(tmp_path / "store", marked(5000), 5000)
    for step in (200, 300):
        save(tmp_path / "store", marked(step), step)
        assert step_of(lm.load(tmp_path / "store")) == step


def test_o_16_a_failure_in_the_background_is_heard_and_the_rest_goes_on() -> None:
    """O-16: the background save failed, training went on, and the next save fell over what had never been there."""
    directory, broken = Troubled(), threading.Event()

    def trouble(number: int, operation: str, name: str) -> None:
        if broken.is_set() and operation == "write":
            broken.clear()
            raise OSError(errno.EIO, "Input/output error", name)

    directory.trouble = trouble
    heard = []
    with lm.Checkpointer(directory, state := {"s": marked(0)}, every=1, in_flight=1, keep=2, rng=False) as ckpt:
        for step in range(1, 6):
            advance(state["s"])
            broken.set() if step == 2 else None
            try:
                ticket = ckpt.step(step)
            except SaveFailed as failure:
                heard.append(str(failure))
                ticket = failure.ticket
            if step != 2 and ticket is not None:
                ticket.wait()
    assert len(heard) == 1
    assert "step 2" in heard[0]
    with Store.open(directory, read_only=True) as store:
        assert [record.step for record in store.records()] == [5, 4]


def test_o_17_a_directory_that_cannot_be_written_is_told_with_its_path(tmp_path: Path) -> None:
    """O-17: in a directory without write permission the save returned as if all were well, and wrote nothing."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises((OSError, NotAStore), match="file"):
        save(tmp_path / "file" / "store", {"a": 1}, 1)
    with pytest.raises((OSError, NotAStore), match="file"):
        save(tmp_path / "file", {"a": 1}, 1)


def test_o_18_a_save_as_the_last_statement(tmp_path: Path) -> None:
    """O-18: the last save of a run was lost since nobody waited for it, with exit status 0."""
    program = (
        "import sys, torch, lastgood.models as lm\n"
        "ckpt = lm.Checkpointer(sys.argv[1], {'w': torch.full((500_000,), 7.0)}, every=1)\n"
        "ckpt.step(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "store")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert lm.load(tmp_path / "store", step=7)["w"].eq(7.0).all()


@pytest.mark.parametrize("where", ["at once", "on another thread"])
def test_o_26_and_o_27_changes_after_save_are_not_in_it(where: str) -> None:
    """O-26: a parameter on the CPU that was updated after an asynchronous save returned was written with its new value.
    O-27: one checkpoint held some layers of step 1 and some of step 2.
    """
    directory = Troubled(lambda number, operation, name: threading.Event().wait(0.001) and None)
    state = {"s": marked(0)}
    with lm.Checkpointer(directory, state, every=1, in_flight=2, keep=2, rng=False) as ckpt:
        for step in range(1, 15):
            advance(state["s"])
            ticket = ckpt.save(step)
            thread = threading.Thread(target=advance, args=(marked(step),))
            if where == "at once":
                advance(state["s"])
            else:
                thread = threading.Thread(target=advance, args=(state["s"],))
                thread.start()
            ticket.wait()
            if where != "at once":
                thread.join()
            assert step_of(lm.load(directory, step=step)["s"]) == 2 * step - 1


def test_o_27_containers_that_change_after_save() -> None:
    directory, state = Troubled(), {"history": [1], "table": {"a": torch.ones(3)}}
    with lm.Checkpointer(directory, state, every=1, rng=False) as ckpt:
        ticket = ckpt.save(1)
        state["history"].append(2)  # type: ignore[attr-defined]
        state["table"] = {}
        ticket.wait()
    assert_same({"history": [1], "table": {"a": torch.ones(3)}}, lm.load(directory))


@pytest.mark.parametrize("capture", ["boundary", "lazy", "auto"])
def test_o_28_weights_and_the_optimizers_counter_are_of_one_step(capture: str) -> None:
    """O-28: handing tensors to a worker process shared their memory instead of copying it: weights of step 1, the
    optimizer's counter of step 2. Whichever thread copies here, all parts agree, and no live tensor becomes shared memory.
    """
    directory = Troubled(lambda number, operation, name: threading.Event().wait(0.002) and None)
    model = torch.nn.Linear(500, 300, bias=False)
    with torch.no_grad():
        model.weight.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0)
    state = {"model": model, "optimizer": optimizer}
    with lm.Checkpointer(directory, state, every=1, capture=capture, in_flight=2, keep=2, rng=False) as ckpt:
        for step in range(1, 15):
            model.weight.grad = torch.ones_like(model.weight)
            optimizer.step()
            with torch.no_grad():
                model.weight.add_(1.0)  # within the update: no copy is under way
            ckpt.step(step)
            model(torch.ones(2, 500)).sum().backward()
    for tensor in [model.weight, *optimizer.state[model.weight].values()]:
        assert not tensor.is_shared()
    for step in (13, 14):
        found = lm.load(directory, step=step)
        moments = found["optimizer"]["state"][0]
        assert found["model"]["weight"].eq(float(step)).all()
        assert int(moments["step"]) == step
        assert moments["exp_avg"].unique().numel() == 1


def test_o_31_and_o_32_nothing_grows(tmp_path: Path) -> None:
    """O-31: each save leaked a descriptor, so deleted checkpoints used the disk until it was full.
    O-32: host memory grew with each save until the job was killed.

    Also when a third of the saves fail, which is where the leak was.
    """
    state: dict[str, Any] = {"w": torch.ones(250_000), "bad": 1}
    with lm.Checkpointer(tmp_path / "store", state, every=1, in_flight=1, rng=False) as ckpt:
        for step in range(5):
            ckpt.save(step)
        descriptors, memory, disk = len(os.listdir("/proc/self/fd")), resident_bytes(), bytes_of(tmp_path)
        for step in range(5, 65):
            state["bad"] = (lambda: 1) if step % 3 == 0 else 1
            try:
                ckpt.save(step)
            except lm.NotPlainData:
                assert step % 3 == 0
        assert len(os.listdir("/proc/self/fd")) == descriptors
        assert resident_bytes() - memory < 8 * state["w"].nbytes
        assert bytes_of(tmp_path) == disk


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bytes_of(directory: Path) -> int:
    return sum(path.stat().st_blocks for path in directory.rglob("*"))


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_o_44_a_persist_that_failed_is_believed(code: int) -> None:
    """O-44: fsync failed and the program went on as if the bytes were on the disk."""
    directory = Troubled()
    save(directory, marked(1), 1)
    before = len(directory.operations)
    failed: list[int] = []

    def trouble(number: int, operation: str, name: str) -> None:
        if number >= before and operation == "persist" and name.startswith("slot") and not failed:
            failed.append(number)
            raise OSError(code, os.strerror(code), name)

    directory.trouble = trouble
    with pytest.raises((SaveFailed, OSError), match=os.strerror(code)):
        save(directory, marked(2), 2)
    assert failed
    assert step_of(lm.load(directory.after_a_crash())) == 1


def test_o_45_a_file_system_without_directory_persist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O-45: on some file systems fsync of a directory is not supported, and every save failed. A real failure is one."""
    plain, codes = os.fsync, [errno.EINVAL]

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(codes[0], os.strerror(codes[0]))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    save(tmp_path / "one", marked(1), 1)
    assert step_of(lm.load(tmp_path / "one")) == 1
    lm.export(tmp_path / "one", tmp_path / "out.lastgood")
    codes[0] = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        save(tmp_path / "two", marked(1), 1)


def test_o_55_files_persists_and_descriptors_do_not_grow_with_the_number_of_tensors() -> None:
    """O-55: saving was slow because each of thousands of tensors had a file and a persist of its own."""
    counts = []
    for number in (10, 3000):
        directory = Troubled()
        save(directory, {f"p{index}": torch.ones(3) for index in range(number)}, 1)
        persists = sum(operation == "persist" for operation, _ in directory.operations)
        counts.append((len(directory.names()), persists))
    assert counts[0] == counts[1]
    encoded = encode({f"p{index}": torch.ones(3) for index in range(3000)})
    assert len(list(encoded.buffers())) <= 2


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o007])
def test_o_57_files_get_the_mode_that_a_plain_open_gives(tmp_path: Path, mask: int) -> None:
    """O-57: files written beside their name and renamed were readable by their owner alone."""
    before = os.umask(mask)
    try:
        save(tmp_path / "store", {"a": 1}, 1)
        lm.export(tmp_path / "store", tmp_path / "out.safetensors")
        (tmp_path / "plain").write_text("")
    finally:
        os.umask(before)
    plain = (tmp_path / "plain").stat()
    for path in [tmp_path / "out.safetensors", *(tmp_path / "store").iterdir()]:
        assert (path.stat().st_mode, path.stat().st_gid) == (plain.st_mode, plain.st_gid)
