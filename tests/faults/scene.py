"""A job that opens a store, saves, closes, reopens and saves on, while the world refuses things; and what must hold.

Each act expects to succeed or to be told. Whatever happens, after every act:

    loud        a refused save fails at its ticket, and is told of once more: by the next save, which was started all the
                same, or by close; the first error is the one that is told, with its errno and path
    no-harm     what was kept before is kept, byte for byte, in the slot files too
    no-leak     every slot is free, kept or quarantined, and all staging memory is back
    bounded     no file grew, and none is new
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from lastgood.core import NoStore, SaveFailed, Store, StoreError
from lastgood.core.layout import slot_name
from tests.faults.refusing import Refusal
from tests.store.small import check_no_leak, create, is_payload_of, payload_of

SIZES = {1: 15_000, 2: 0, 3: 4096, 4: 20_000, 5: 9000, 6: 1, 7: 12_288}


class Scene:
    """One store in one directory; `contents` returns all its files."""

    def __init__(self, place: Callable[[], Any], contents: Callable[[], dict[str, bytes]], refusal: Refusal) -> None:
        self.place = place
        self.contents = contents
        self.refusal = refusal
        self.store: Store | None = None
        self.options: dict[str, Any] = {"writers": 1}
        self.geometry: dict[str, Any] = {}
        self.acknowledged: list[int] = []
        self.doubtful: list[int] = []
        self.untold: list[int] = []

    # --- acts ---------------------------------------------------------------------------------------------------------

    def opening(self, make: Callable[[], Store]) -> bool:
        """Create or open: the OSError is the caller's, and once the cause is gone it works."""
        for _ in range(1 + len(self.refusal.numbers)):
            before = self.contents()
            refused = len(self.refusal.refused)
            try:
                self.store = make()
            except (OSError, StoreError) as error:
                self.check_reason(error)
                assert len(self.refusal.refused) > refused, "nothing was refused, and yet it failed"
                self.check_files(before, "opening")
                if self.refusal.lasting:
                    return False
            else:
                return True
        raise AssertionError("it still fails though the cause is gone")

    def create(self) -> bool:
        return self.opening(lambda: create(self.place(), **self.options, **self.geometry))

    def open(self) -> bool:
        """A save that failed may be found now: whether its record became durable was in doubt, and from now on it counts."""
        is_open = self.opening(lambda: Store.open(self.place(), **self.options))
        if is_open:
            self.acknowledged += [step for step in self.kept() if step in self.doubtful]
        return is_open

    def read(self) -> None:
        """Restore: the newest that can be read. What cannot be read now is passed over with its reason."""
        assert self.store is not None
        refused = len(self.refusal.refused)
        try:
            record, found = self.store.read_with_record()
        except NoStore:
            assert not self.acknowledged
            return
        except StoreError as error:
            self.check_reason(error)
            assert len(self.refusal.refused) > refused
            return
        assert is_payload_of(record.step, found)
        if len(self.refusal.refused) == refused:
            assert record.step >= max(self.acknowledged), "newest-survives"
        elif record.step < max(self.acknowledged):
            assert any(os.strerror(self.refusal.error) in line for line in self.store.passed_over), "explained"

    def save(self, step: int) -> None:
        """One save, waited for. Afterwards nothing that was kept before is changed."""
        assert self.store is not None
        before, kept, was_ready = self.contents(), self.kept(), self.store._engine is not None
        refused = len(self.refusal.refused)
        ticket, told = None, False
        try:
            ticket = self.store.save(payload_of(step, SIZES[step]), step=step)
        except SaveFailed as error:
            ticket, told = error.ticket, True
            assert self.untold, "told of a failure that never was, or twice"
            self.check_reason(error, self.untold[0])
            self.untold.clear()
        except (OSError, StoreError) as error:  # the store could not be made ready: nothing was started
            self.check_reason(error)
            # What could not be read when the store was opened may be the newest: no save until it is opened again.
            could_not_read = any("read" in what.split()[0] for what in self.refusal.refused)
            assert len(self.refusal.refused) > refused or could_not_read
        if ticket is not None:
            assert told or not self.untold, "loud: the failure before was not told of"
            self.await_(ticket, refused)
        if was_ready and step not in self.acknowledged:
            assert self.kept() == kept, "no-harm: a save that failed evicted something"
        self.check_at_rest(before, kept)

    def await_(self, ticket: Any, refused: int) -> None:
        assert ticket.step not in self.acknowledged
        try:
            record = ticket.wait(60)
        except SaveFailed as error:
            assert ticket.outcome == "failed"
            assert len(self.refusal.refused) > refused, "nothing was refused, and yet it failed"
            self.check_reason(error, ticket.step)
            self.untold.append(ticket.step)
            self.doubtful.append(ticket.step)
        else:
            assert len(self.refusal.refused) == refused, "loud: acknowledged in spite of a refusal"
            assert record.step == ticket.step
            assert ticket.durable
            self.acknowledged.append(ticket.step)

    def close(self) -> None:
        """Tells what no save has told of; the store is closed all the same."""
        assert self.store is not None
        store, self.store = self.store, None
        try:
            store.close()
        except SaveFailed as error:
            assert self.untold, "told of a failure that never was, or twice"
            self.check_reason(error, self.untold[0])
        else:
            assert not self.untold, f"loud: step {self.untold} failed, and close says nothing"
        self.untold.clear()
        store.close()

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check_reason(self, error: BaseException, step: int | None = None) -> None:
        """One line with the reason: the save's step, the errno that was injected, and where."""
        message = str(error)
        assert "\n" not in message
        assert step is None or f"the save of step {step} " in message
        assert os.strerror(self.refusal.error) in message, message
        if isinstance(error, SaveFailed):
            assert isinstance(error.__cause__, OSError), f"{error!r} has no cause"
            assert error.__cause__.errno == self.refusal.error
        places = {what.split()[1] for what in self.refusal.refused}
        assert any(place in message for place in places), f"{message!r} does not say that it was one of {places}"

    def kept(self) -> dict[int, tuple[int, int]]:
        """Step -> (slot, sequence) of what the open store keeps."""
        assert self.store is not None
        return {record.step: (record.slot, record.sequence) for record in self.store.records()}

    def check_at_rest(self, before: dict[str, bytes], kept: dict[int, tuple[int, int]]) -> None:
        assert self.store is not None
        if self.store._engine is not None:
            check_no_leak(self.store)
        now = self.kept()
        newest_two = sorted(self.acknowledged, reverse=True)[: self.store.keep]
        if self.store._engine is not None:
            assert [step for step in now if step in self.acknowledged] == newest_two[: len(now)], "newest-survives"
        self.check_files(before, "saving", [slot for step, (slot, _) in kept.items() if step in now])

    def check_files(self, before: dict[str, bytes], what: str, slots: list[int] | None = None) -> None:
        """`no-harm`: these slots (or everything) have the bytes they had; `bounded`: the files have their sizes."""
        after = self.contents()
        untouched = list(before) if slots is None else [slot_name(slot) for slot in slots]
        for name in untouched:
            assert after.get(name) == before[name], f"no-harm: {what} changed {name}"
        if before:
            assert {name: len(content) for name, content in after.items()} == {
                name: len(content) for name, content in before.items()
            }, f"bounded: {what} changed the sizes of files"
        else:
            assert "header" not in after, f"{what} failed and left a store"
            assert after == {}, f"{what} failed and left {sorted(after)}"

    def check_end(self) -> None:
        """The world is well again: what was acknowledged is there, a save works, and nothing is damaged."""
        self.refusal.end()
        with Store.open(self.place(), read_only=True) as reader:
            if self.acknowledged:
                record, found = reader.read_with_record()
                assert is_payload_of(record.step, found)
                assert record.step >= max(self.acknowledged), "newest-survives"
                assert record.step in self.acknowledged + self.doubtful, "never-wrong"
        with Store.open(self.place(), new_run=True) as store:
            record = store.save(payload_of(9, 5000), step=9).wait(60)
            kept = [each.step for each in store.records()]
            assert kept[0] == 9
            assert not self.acknowledged or kept[1] >= max(self.acknowledged)
            check_no_leak(store)
            for each in store.records():
                assert is_payload_of(each.step, store.read(each))
            assert "damaged" not in {report.state for report in store.verify()}


def play(scene: Scene) -> None:
    """The whole job. With a lasting refusal it ends where it cannot go on."""
    if scene.create():
        for step in (1, 2, 3):
            scene.save(step)
        scene.close()
        if scene.open():
            scene.read()
            for step in (4, 5, 6, 7):
                scene.save(step)
            scene.close()
    if "header" in scene.contents():
        scene.check_end()


ERRORS = [errno.EIO, errno.ENOSPC, errno.EDQUOT]
