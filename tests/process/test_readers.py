"""Readers beside a running writer: never a mix, never older than what was acknowledged before the read began."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastgood.core import Store, Ticket
from lastgood.core.files import BufferedFile
from lastgood.core.jit import JIT
from tests.process.ledger import Ledger
from tests.process.nursery import Nursery
from tests.process.test_kills import skip_unless_possible

READS = 10_000 if JIT else 200


def read_beside_a_writer(nursery: Nursery, place: Path, device: str, reads: int) -> None:
    skip_unless_possible(nursery, place, device)
    ledger = Ledger(place / "ledger")
    writer = nursery.start("continuous", path=place / "store", device=device, ledger=ledger.path)
    deadline = time.monotonic() + 60
    while not ledger.acknowledged():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first = ledger.newest_step()
    arguments: dict[str, Any] = {"path": place / "store", "device": device, "ledger": ledger.path, "count": reads}
    readers = [nursery.start("read_on", **arguments) for _ in range(2)]
    different = [reader.result() for reader in readers]
    assert writer.poll() is None, writer.stderr
    written = ledger.newest_step() - first
    writer.kill()
    assert written > 5, "the writer has hardly written anything meanwhile"
    assert max(different) > 5, f"the readers saw {different} different checkpoints only"


@pytest.mark.slow
@pytest.mark.parametrize("device", ["direct", "buffered"])
def test_thousands_of_reads_beside_a_writer(nursery: Nursery, swift: Path, device: str) -> None:
    """`never-wrong`, `newest-survives`, `monotone`, where saves follow each other as fast as memory."""
    read_beside_a_writer(nursery, swift, device, READS)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["direct", "buffered"])
def test_reads_beside_a_writer_on_the_real_disk(nursery: Nursery, tmp_path: Path, device: str) -> None:
    read_beside_a_writer(nursery, tmp_path, device, READS // 2)


def test_a_record_that_is_being_written_makes_a_reader_look_again(swift: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest checkpoint lies in slot 1, slot 2 holds an older one, whole, and slot 0 an even older record.

    The reader has passed slot 0 when two more saves go through: step 6 is published in slot 0, and step 7 takes slot 1.
    At this instant its record is half there. A reader that merely passes it over returns step 3 from slot 2, though step
    5 was acknowledged before the read began.
    """
    path = swift / "store"
    writer = Store.create(path, slot_bytes=100, in_flight=2, keep=1, device="buffered")
    write, read = BufferedFile.write, BufferedFile.read

    def save(step: int) -> Ticket:
        return writer.save(np.full(100, step, np.uint8), step=step)

    def overtake(older: int, newer: int) -> None:
        """The older save is held in the middle of its payload until the newer one is published, and gives up then."""
        held, go_on = threading.Event(), threading.Event()

        def held_write(device: BufferedFile, offset: int, data: Any) -> None:
            if data[0] == older:
                held.set()
                go_on.wait(60)
            write(device, offset, data)

        with monkeypatch.context() as patch:
            patch.setattr(BufferedFile, "write", held_write)
            overtaken = save(older)
            assert held.wait(60)
            save(newer).wait()
            go_on.set()
            assert overtaken.wait().step == newer

    save(1).wait()  # into slot 0
    overtake(2, 3)  # 3 into slot 2
    overtake(4, 5)  # 5 into slot 1
    with Store.open(path, read_only=True, device="buffered") as reader:
        steps = {report.slot: report.record.step for report in reader.verify() if report.record is not None}
    assert steps == {0: 1, 1: 5, 2: 3}

    torn: list[int] = []

    def read_amid_a_write(device: BufferedFile, offset: int, into: Any) -> None:
        if device.path.endswith("slot-0001") and offset == 0 and not torn:
            torn.append(save(6).wait().step)
            read(device, offset, into)
            into[56:100] ^= 255  # what step 7 has written so far
        else:
            read(device, offset, into)

    reader = Store.open(path, read_only=True, device="buffered")
    monkeypatch.setattr(BufferedFile, "read", read_amid_a_write)
    record, payload = reader.read_with_record()
    assert torn == [6]
    assert record.step >= 5, f"newest-survives: read step {record.step}, 5 was acknowledged before the read began"
    assert np.all(payload == record.step)
    reader.close()
    writer.close()
