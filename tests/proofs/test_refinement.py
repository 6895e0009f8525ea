"""The link from code to protocol: the core's programs are followed, and a program that departs is noticed."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from lastgood.core import recover, save, steps
from proofs import follower, refinement, weakened
from proofs.protocol import steps_of
from proofs.twins import in_place_of


def rewritten(old: str, new: str, of: types.ModuleType = save) -> Any:
    """A program of the core with one place of its source changed."""
    source = inspect.getsource(of)
    assert source.count(old) == 1
    module = types.ModuleType(f"rewritten_{of.__name__.rpartition('.')[2]}")
    module.__package__ = of.__package__
    exec(compile(source.replace(old, new), module.__name__, "exec"), vars(module))
    return module


MAKE_READY = recover.make_ready


def leaves_ghosts(*arguments: Any) -> Iterator[int]:
    """Recovery as it was once: it believed an empty record in the cache."""
    return (step for step in MAKE_READY(*arguments) if step != steps.PERSIST_EMPTY_RECORD)


PERSISTS_NO_PAYLOAD = ("            yield PERSIST_PAYLOAD\n", "            pass\n")
ACKNOWLEDGES_EARLY = ("    yield WRITE_RECORD\n", "    yield ACKNOWLEDGE\n    yield WRITE_RECORD\n")
MARKS_UNPERSISTED = ("                        yield PERSIST_MARK\n", "                        pass\n")
OFFERS_TO_THE_LAST = ("range(KEPT, KEPT + keep - 1):", "range(KEPT + keep - 2, KEPT + keep - 1):")
MARK_TRUSTED = ("    if cells[MARKED] == MARK_DURABLE:\n        yield", "    if False:\n        yield")
SAVE, READY = "lastgood.core.save.save", "lastgood.core.recover.make_ready"
DEPARTURES = {
    "releases its own slot": ("lastgood.core.save.tag_displaced", weakened.always_its_own),
    "releases what it saw": ("lastgood.core.save.tag_displaced", weakened.always_the_seen),
    "gives up": ("lastgood.core.save.publish_outcome", weakened.gives_up),
    "compares slots": ("lastgood.core.save.publish_outcome", weakened.compares_slots),
    "keeps anything": ("lastgood.core.save.keeps_offered", weakened.takes_anything),
    "offers to the last cell only": (SAVE, rewritten(*OFFERS_TO_THE_LAST).save),
    "gives way to older": ("lastgood.core.save.is_overtaken", weakened.overtaken_by_any),
    "persists no record": (SAVE, weakened.save_record_unpersisted),
    "releases doubt": (SAVE, weakened.save_releases_doubt),
    "persists no payload": (SAVE, rewritten(*PERSISTS_NO_PAYLOAD).save),
    "persists no mark": (SAVE, rewritten(*MARKS_UNPERSISTED).save),
    "acknowledges early": (SAVE, rewritten(*ACKNOWLEDGES_EARLY).save),
    "trusts the cache": (READY, weakened.make_ready_unpersisted),
    "trusts the mark": (READY, rewritten(*MARK_TRUSTED, of=recover).make_ready),
    "leaves ghosts": (READY, leaves_ghosts),
    "recovers the last": ("lastgood.core.recover.newer_candidate", weakened.last_one_wins),
    "counts from nothing": ("lastgood.core.recover.next_sequence", weakened.forgets_records),
}


def test_programs_are_followed_through_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps of the protocol were taken: a step that no program ever takes would follow nothing."""
    taken: Counter[str] = Counter()
    attempt = follower.Follower.attempt

    def counted(self: follower.Follower, name: str, *about: Any) -> Any:
        after = attempt(self, name, *about)
        taken[name] += after is not None
        return after

    monkeypatch.setattr(follower.Follower, "attempt", counted)
    assert refinement.programs_follow_the_protocol() == refinement.SEEDS * refinement.MOVES
    assert {name for name, count in taken.items() if count} == {action.name for action in steps_of(frozenset())}


@pytest.mark.parametrize("departure", DEPARTURES)
def test_a_program_that_departs_is_noticed(departure: str) -> None:
    with in_place_of(*DEPARTURES[departure]), pytest.raises(refinement.Departure):
        refinement.programs_follow_the_protocol()
