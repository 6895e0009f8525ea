"""A checkpoint is of one moment: whatever training does once `save` has returned is not in it (`never-wrong`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lastgood.models as lm
from lastgood.core import Damaged, Store, Ticket
from lastgood.core.memory import MemoryDevice, MemoryDirectory
from lastgood.models.decode import decode


class SlowDevice(MemoryDevice):
    """Takes its time to write, so that training is far ahead before the bytes are read from staging."""

    def write(self, offset: int, data: np.ndarray) -> None:
        time.sleep(0.002)
        super().write(offset, data)


class SlowDirectory(MemoryDirectory):
    def open(self, name: str, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self.files[name] = SlowDevice()
        return self.files[name]


def marked_state(step: int) -> dict[str, Any]:
    """Every leaf holds the step."""
    state: dict[str, Any] = {f"layer{number}": torch.full((6000,), float(step)) for number in range(8)}
    for number in range(8):
        state[f"bias{number}"] = torch.full((3,), float(step))
    state["turned"] = torch.full((40, 30), float(step)).t()
    state["holes"] = torch.full((40, 30), float(step))[:, ::2]
    state["array"] = np.full(5000, float(step))
    state["bytes"] = bytearray([step] * 20_000)
    state["number"] = step
    state["nested"] = {"count": [step], "more": []}
    return state


def advance(state: dict[str, Any], step: int) -> None:
    """Move every leaf to `step` in place, one after another, as an optimizer does."""
    for value in state.values():
        if isinstance(value, torch.Tensor):
            value.fill_(float(step))
    state["array"].fill(float(step))
    state["bytes"][:] = bytes([step]) * 20_000
    state["number"] = step
    state["nested"]["count"][0] = step
    state["nested"]["more"].append(step)


def steps_in(state: dict[str, Any]) -> set[int]:
    """Every step that some leaf is of."""
    found = {state["number"], state["nested"]["count"][0]}
    for value in state.values():
        if isinstance(value, torch.Tensor):
            found |= {int(number) for number in value.unique()}
    return found | set(state["bytes"]) | {int(number) for number in np.unique(state["array"])}


def test_changes_right_after_save_never_get_into_it() -> None:
    directory = SlowDirectory()
    state = marked_state(1)
    with lm.Checkpointer(directory, state, every=1, in_flight=3, keep=2, rng=False) as ckpt:
        for step in range(1, 40):
            ticket = ckpt.save(step)
            advance(state, step + 1)
            if step % 7 == 0:
                ticket.wait()
                check_all(directory)
    check_all(directory)


def check_all(directory: MemoryDirectory) -> None:
    with Store.open(directory, read_only=True) as store:
        records = store.records()
        assert records
        for record in records:
            try:
                payload = store.read(record)
            except Damaged:  # its slot was used again meanwhile
                continue
            assert steps_in(decode(payload).state) == {record.step}


class ReadsLater:
    """A capture as it is written for other devices: reads live memory on a thread, after `begin` has returned."""

    def begin(self, store: Store, snapshot: Any, *, step: int, meta: bytes) -> Ticket:
        buffers = list(snapshot.buffers())

        def slowly() -> Iterator[Any]:
            for buffer in buffers:
                time.sleep(0.001)
                yield buffer

        self.thread = threading.Thread(target=lambda: store.save(slowly(), step=step, meta=meta).wait())
        self.thread.start()
        return Ticket(step, lambda: None)


def test_the_check_sees_a_capture_that_reads_too_late() -> None:
    directory = MemoryDirectory()
    state, capture = marked_state(1), ReadsLater()
    ckpt = lm.Checkpointer(directory, state, capture=capture, rng=False)
    ckpt.save(1)
    advance(state, 2)
    capture.thread.join()
    ckpt.close()
    with Store.open(directory, read_only=True) as store:
        assert steps_in(decode(store.read()).state) == {1, 2}


def test_another_thread_that_starts_when_save_returns() -> None:
    """One checkpoint held some layers of one step and some of the next: live memory was written by another thread."""
    directory = SlowDirectory()
    state = marked_state(1)
    with lm.Checkpointer(directory, state, every=1, rng=False) as ckpt:
        for step in range(1, 20):
            ticket = ckpt.save(step)
            thread = threading.Thread(target=advance, args=(state, step + 1))
            thread.start()
            ticket.wait()
            thread.join()
            with Store.open(directory, read_only=True) as store:
                assert steps_in(decode(store.read(step=step)).state) == {step}


def test_containers_that_change_after_save(tmp_path: Path) -> None:
    state: dict[str, Any] = {"history": [1], "table": {"a": 1}}
    with lm.Checkpointer(tmp_path / "store", state, every=1) as ckpt:
        ticket = ckpt.save(1)
        state["history"].append(2)
        state["table"] = {"b": 2}
        ticket.wait()
    assert lm.load(tmp_path / "store") == {"history": [1], "table": {"a": 1}}


def test_live_tensors_are_left_as_they_are(tmp_path: Path) -> None:
    tensor = torch.nn.Parameter(torch.ones(10_000))
    pointer, version = tensor.data_ptr(), tensor._version
    lm.save(tmp_path / "store", {"t": tensor})
    assert (tensor.data_ptr(), tensor._version, tensor.is_shared(), tensor.grad) == (pointer, version, False, None)
