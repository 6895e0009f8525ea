"""The link from code to protocol: the core's programs are followed, and a program that departs is noticed."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from lastgood.core import recover, save, steps
from proofs import refinement, weakened
from proofs.protocol_steps import STEPS
from proofs.twins import in_place_of


def rewritten(old: str, new: str) -> Any:
    """The core's save program with one place of its source changed."""
    source = inspect.getsource(save)
    assert source.count(old) == 1
    module = types.ModuleType("rewritten_save")
    module.__package__ = save.__package__
    exec(compile(source.replace(old, new), "rewritten_save", "exec"), vars(module))
    return module.save


MAKE_READY = recover.make_ready


def leaves_ghosts(*arguments: Any) -> Iterator[int]:
    """Recovery as it was once: it believed an empty record in the cache."""
    return (step for step in MAKE_READY(*arguments) if step != steps.PERSIST_EMPTY_RECORD)


PERSISTS_NO_PAYLOAD = ("            yield PERSIST_PAYLOAD\n", "            pass\n")
SEES_LATE = (
    "    outcome = LOOK_AGAIN if may_publish",
    "    seen = load(cells, ROOT)\n    yield STEP\n    outcome = LOOK_AGAIN if may_publish",
)
ACKNOWLEDGES_EARLY = ("    yield WRITE_RECORD\n", "    yield ACKNOWLEDGE\n    yield WRITE_RECORD\n")
DEPARTURES = {
    "releases its own slot": ("lastgood.core.save.tag_displaced", weakened.always_its_own),
    "releases what it saw": ("lastgood.core.save.tag_displaced", weakened.always_the_seen),
    "gives up": ("lastgood.core.save.publish_outcome", weakened.gives_up),
    "compares slots": ("lastgood.core.save.publish_outcome", weakened.compares_slots),
    "keeps anything": ("lastgood.core.save.keeps_offered", weakened.takes_anything),
    "gives way to older": ("lastgood.core.save.is_overtaken", weakened.overtaken_by_any),
    "persists no record": ("lastgood.core.save.save", weakened.save_record_unpersisted),
    "releases doubt": ("lastgood.core.save.save", weakened.save_releases_doubt),
    "persists no payload": ("lastgood.core.save.save", rewritten(*PERSISTS_NO_PAYLOAD)),
    "sees late": ("lastgood.core.save.save", rewritten(*SEES_LATE)),
    "acknowledges early": ("lastgood.core.save.save", rewritten(*ACKNOWLEDGES_EARLY)),
    "trusts the cache": ("lastgood.core.recover.make_ready", weakened.make_ready_unpersisted),
    "leaves ghosts": ("lastgood.core.recover.make_ready", leaves_ghosts),
    "recovers the last": ("lastgood.core.recover.newer_candidate", weakened.last_one_wins),
    "counts from nothing": ("lastgood.core.recover.next_sequence", weakened.forgets_records),
}


def test_programs_are_followed_through_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps of the protocol were taken: a step that no program ever takes would follow nothing."""
    taken: Counter[str] = Counter()
    take = refinement.Model.take

    def counted(self: refinement.Model, name: str, *about: Any) -> None:
        taken[name] += 1
        take(self, name, *about)

    monkeypatch.setattr(refinement.Model, "take", counted)
    assert refinement.programs_follow_the_protocol() == refinement.SEEDS * refinement.MOVES
    assert set(taken) == {action.name for action in STEPS}


@pytest.mark.parametrize("departure", DEPARTURES)
def test_a_program_that_departs_is_noticed(departure: str) -> None:
    with in_place_of(*DEPARTURES[departure]), pytest.raises(refinement.Departure):
        refinement.programs_follow_the_protocol()
