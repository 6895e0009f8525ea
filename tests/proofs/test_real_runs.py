"""Traces of the real Store, real threads and machine code: the protocol follows them, and not those of broken drivers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest

from lastgood.core import engine, flight, steps
from proofs import follower, recording
from proofs.follower import Departure
from proofs.protocol import steps_of

PERFORM = flight.Flight._perform
WRITE = recording.RecordingDevice.write
NEVER_SEEN = {
    *("kill", "lose_power", "survey", "survey_nothing", "take", "persist_taken", "rewrite_mark", "persist_mark_again"),
    *("empty", "persist_emptied", "ready", "fail_ready", "write_back_record", "tear_record", "write_back_payload"),
    *("tear_payload", "write_back_mark"),
}
"""What these runs do not do: crash, recover, and write back."""


def skipping(*left_out: int) -> Callable[[], AbstractContextManager[Any]]:
    def perform(self: Any, step: int) -> None:
        if step not in left_out:
            PERFORM(self, step)

    return lambda: mock.patch.object(flight.Flight, "_perform", perform)


def swallows_failures() -> AbstractContextManager[Any]:
    return mock.patch.object(flight.Flight, "_stop", return_value=None)


def acknowledges_early() -> AbstractContextManager[Any]:
    def perform(self: Any, step: int) -> None:
        PERFORM(self, step)
        if step == steps.WRITE_RECORD:
            self.ticket.acknowledge(self._record())

    return mock.patch.object(flight.Flight, "_perform", perform)


def persists_another_slot() -> AbstractContextManager[Any]:
    def perform(self: Any, step: int) -> None:
        if step == steps.PERSIST_RECORD:
            self.engine.devices[(self._slot + 1) % self.layout.slot_count].persist()
        else:
            PERFORM(self, step)

    return mock.patch.object(flight.Flight, "_perform", perform)


def does_not_join_writers() -> AbstractContextManager[Any]:
    def later(self: Any, offset: int, data: Any) -> None:
        if self.slot == recording.HEADER or offset < self.recorder.area_bytes:
            WRITE(self, offset, data)
            return
        kept = data.copy()

        def write() -> None:
            time.sleep(0.05)
            self.content[offset : offset + kept.size] = kept
            with self.recorder.lock:
                self.recorder.done.setdefault(self.slot, recording.Done()).payload_bytes += kept.size

        threading.Thread(target=write).start()

    return mock.patch.object(recording.RecordingDevice, "write", later)


def releases_from_outside() -> AbstractContextManager[Any]:
    finished = engine.Engine.finished

    def meddling(self: Any, ended: Any, outcome: int) -> None:
        self.cells[1] += 1  # a sequence that no save took
        finished(self, ended, outcome)

    return mock.patch.object(engine.Engine, "finished", meddling)


MUTANTS = {
    "no persist of the payload": skipping(steps.PERSIST_PAYLOAD),
    "no persist of the record": skipping(steps.PERSIST_RECORD),
    "no persist of the mark": skipping(steps.PERSIST_MARK),
    "no record": skipping(steps.WRITE_RECORD),
    "no acknowledgement": skipping(steps.ACKNOWLEDGE),
    "failures swallowed": swallows_failures,
    "acknowledged early": acknowledges_early,
    "another slot persisted": persists_another_slot,
    "writers not joined": does_not_join_writers,
    "words changed from outside": releases_from_outside,
}


def test_real_runs_are_followed_through_every_step_of_a_save(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: Counter[str] = Counter()
    attempt = follower.Follower.attempt

    def counted(self: follower.Follower, name: str, *about: Any) -> Any:
        after = attempt(self, name, *about)
        taken[name] += after is not None
        return after

    monkeypatch.setattr(follower.Follower, "attempt", counted)
    assert recording.real_runs_are_accepted(200) > 10_000
    by_luck = {
        "look_again",
        "overtaken",
        "superseded",
        "pass_on",
        "fail_empty_record",
        "fail_mark",
    }  # threads must meet
    every = {action.name for action in steps_of(frozenset())} - NEVER_SEEN
    assert every - by_luck <= {name for name, count in taken.items() if count}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_driver_that_does_less_or_tells_more_is_noticed(mutant: str) -> None:
    with pytest.raises(Departure):
        recording.real_runs_are_accepted(60, MUTANTS[mutant])


@pytest.mark.nightly
def test_thousands_of_real_runs_are_accepted() -> None:
    assert recording.real_runs_are_accepted(3000) > 300_000
