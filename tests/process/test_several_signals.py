"""Signals that come together, and at the instant where a save stops or begins to hold them back: none is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lastgood.core import Store, interrupt, scan, steps
from lastgood.core.interrupt import Shield
from lastgood.core.memory import MemoryDirectory


@pytest.fixture
def terminations() -> Iterator[list[int]]:
    """How often the user's own handler of SIGTERM was called; Ctrl-C raises, as always."""
    calls: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    interrupts = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield calls
    signal.signal(signal.SIGTERM, before)
    signal.signal(signal.SIGINT, interrupts)


@pytest.mark.parametrize("numbers", [(signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)])
@pytest.mark.parametrize("leave", [Shield.down, Shield.check])
def test_the_second_is_handled_though_the_first_one_raises(
    terminations: list[int], numbers: tuple[int, int], leave: Callable[[Shield], None]
) -> None:
    """Ctrl-C and a pre-emption's SIGTERM during one wait: the job was interrupted and never told of the pre-emption."""
    shield = Shield()
    shield.up()
    for number in numbers:
        signal.raise_signal(number)
    assert terminations == []
    with pytest.raises(KeyboardInterrupt):
        leave(shield)
    assert terminations == [signal.SIGTERM]
    shield.down()
    signal.raise_signal(signal.SIGTERM)
    assert len(terminations) == 2


@pytest.mark.parametrize("moment", ["up", "down"])
def test_one_that_arrives_while_handlers_are_changed(
    terminations: list[int], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception fell out of the middle of the change: what had not been put back swallowed SIGTERM from then on."""
    armed = [signal.SIGTERM if moment == "up" else signal.SIGINT]
    set_handler = interrupt.set_handler

    def arrives(number: int, handler: object) -> object:
        found = set_handler(number, handler)
        if armed and number == armed[0] and (moment == "up" or handler is signal.default_int_handler):
            armed.clear()
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(interrupt, "set_handler", arrives)
    monkeypatch.setattr(interrupt, "SIGNALS", (signal.SIGTERM, signal.SIGINT) if moment == "up" else interrupt.SIGNALS)
    with pytest.raises(KeyboardInterrupt), Shield():
        assert moment == "down"
    assert armed == []
    monkeypatch.undo()
    for count in (1, 2):
        with Shield():
            signal.raise_signal(signal.SIGTERM)
        assert terminations == [signal.SIGTERM] * count
    signal.raise_signal(signal.SIGTERM)
    assert len(terminations) == 3


def test_one_that_falls_into_the_survey_of_a_store_ends_only_this_reading(
    terminations: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of steps had been ended by it: from then on every reading and every save was a bare StopIteration."""
    directory = MemoryDirectory()
    with Store.create(directory, slot_bytes=100) as store:
        store.save(b"one", step=1).wait()
    survey, armed = scan.survey, [True]

    def interrupted(*arguments: Any) -> Iterator[int]:
        for step in survey(*arguments):
            yield step
            if armed and step == steps.VERIFY_PAYLOAD:
                armed.clear()
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(scan, "survey", interrupted)
    with Store.open(directory) as store:
        with pytest.raises(KeyboardInterrupt):
            store.read()
        assert bytes(store.read()) == b"one"
        store.save(b"two", step=2).wait()
