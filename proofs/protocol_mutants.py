"""Mistakes that the protocol must not make: every persist left out, every order exchanged, every guard dropped.

Each row is refuted three times: the induction fails and z3 shows a state that breaks it; the search finds the shortest
run from a new store to a broken theorem; and that run, kept in `traces/`, is replayed step by step in plain Python. In
the protocol without the mistake the same run is harmless or cannot be taken.

How published systems are written: `slot-compared` and `pointer-believed` (the PCcheck listing: Strati et al., ASPLOS'25),
`record-unpersisted`, `cache-trusted` (most code that reads a checkpoint after a restart and goes on from there).

    python -m proofs.protocol_mutants       search again, and write every trace anew
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from .protocol_search import Arena, Trace, shortest_break

TRACES = Path(__file__).resolve().parent / "traces"
RACES = frozenset(
    (
        *("load", "count", "acquire", "begin_payload", "end_payload", "persist_payload", "write_record"),
        *("persist_record", "find_mark", "claim_mark", "write_mark", "persist_mark", "settle_mark", "acknowledge"),
        *("publish", "look_again", "superseded", "overtaken", "pass_on", "exchange", "release"),
    )
)
"""The steps of saves that do not fail, in a store that does not crash: enough for the races."""
WRITING = RACES | {"write_back_record", "write_back_payload", "tear_payload"}
"""And a cache that writes back."""


@dataclass(frozen=True)
class Mutant:
    """One mistake, or several made together, the theorem that it breaks, and how much of a store that takes."""

    name: str
    mistake: str
    theorem: str
    slots: int = 2
    savers: int = 1
    sequences: int = 2
    cells: int = 1
    steps: frozenset[str] | None = None

    @property
    def path(self) -> Path:
        """Where its trace is kept."""
        return TRACES / f"{self.name.replace(' ', '+')}.{self.theorem}.txt"

    @property
    def trace(self) -> Trace:
        """The shortest run to the break, step by step."""
        return tuple(self.path.read_text(encoding="utf-8").splitlines())

    def arena(self, *, with_mistake: bool = True) -> Arena:
        """Where the trace is taken."""
        named = frozenset(self.name.split())
        variant = named if with_mistake else named & {"one-persist"}
        return Arena(self.slots, self.savers, self.sequences, self.cells, variant, self.steps)


WHOLE, SURVIVES, HONEST = "recovered-is-whole", "acknowledged-survives", "fresh-start-is-honest"
ABOVE, GIVEN_UP, BACK = "sequences-go-on-above", "only-older-are-given-up", "root-never-goes-back"

MUTANTS: tuple[Mutant, ...] = (
    # a save: each persist, and each order
    Mutant("payload-unpersisted", "The payload is not persisted.", WHOLE),
    Mutant("record-first", "The record is written before the payload is durable.", WHOLE),
    Mutant("unjoined", "The payload is persisted before all its writers are joined.", WHOLE),
    Mutant("record-unpersisted", "The record is not persisted.", SURVIVES),
    Mutant("record-unpersisted", "The record is not persisted.", "never-stuck"),
    Mutant("persisted-unwritten", "The persist that the record needs comes before it is written.", SURVIVES),
    Mutant("acknowledged-early", "A save is acknowledged before its record is durable.", SURVIVES),
    Mutant("published-early", "The root is swapped before the record is durable.", WHOLE, sequences=3, steps=WRITING),
    Mutant(
        "released-before-swap", "The slot seen is released before the swap.", "slot-has-one-user", 3, 2, 3, steps=RACES
    ),
    Mutant("slot-compared", "The root is compared by slot, whatever the sequence (ABA).", BACK, 3, 2, 4, steps=RACES),
    Mutant("count-first no-guard", "Counts before it looks, and swaps over a newer tag.", BACK, 3, 2, 2, steps=RACES),
    Mutant("own-released", "A save that publishes releases its own slot.", "slot-has-one-user", steps=RACES),
    Mutant("own-released", "A save that publishes releases its own slot.", "kept-are-not-touched", steps=RACES),
    Mutant("failure-leaks", "A save that fails early keeps its slot.", "every-slot-is-accounted-for", 1, 1, 1),
    # the row of kept checkpoints
    Mutant("displaced-released", "What the swap displaced is released, not kept.", GIVEN_UP, 3, 1, 2, 2, RACES),
    Mutant("superseded-released", "A superseded save is released, not kept.", GIVEN_UP, 3, 2, 2, 2, RACES),
    Mutant(
        "takes-anything", "A cell takes what it is offered, older or not.", "row-never-goes-back", 4, 2, 3, 2, RACES
    ),
    Mutant(
        "overtaken-by-newest", "One newer checkpoint is enough to give up.", "abandoned-is-older", 3, 2, 2, 2, RACES
    ),
    # slots in doubt
    Mutant("doubt-freed", "A slot whose record failed to persist is released.", WHOLE),
    Mutant("doubt-reused", "A quarantined slot is used again without being emptied.", WHOLE, sequences=3),
    Mutant(
        "empty-unpersisted", "A quarantined slot is used again before its empty record is durable.", WHOLE, sequences=3
    ),
    # the mark
    Mutant("acknowledged-unmarked", "A save is acknowledged without a mark.", HONEST),
    Mutant("mark-unpersisted", "The mark is not persisted.", HONEST),
    Mutant("mark-by-many", "Several saves make the mark at once.", HONEST, 2, 2, 2, steps=RACES | {"fail_mark"}),
    Mutant("mark-trusted", "Recovery believes a mark in the cache.", HONEST),
    Mutant("mark-not-rewritten", "Recovery persists the mark without writing it again.", HONEST),
    # recovery: each persist, and each order
    Mutant("cache-trusted", "Recovery hands out slots before what it read is durable.", SURVIVES),
    Mutant("cache-trusted", "Recovery hands out slots before what it read is durable.", "row-survives"),
    Mutant("persisted-not-rewritten", "Recovery persists what it read without writing it again.", SURVIVES),
    Mutant("ghosts-left", "Recovery believes an empty record in the cache.", ABOVE, sequences=3),
    Mutant("ghosts-left", "Recovery believes an empty record in the cache.", WHOLE, sequences=3),
    Mutant("emptied-unpersisted", "Recovery does not persist the empty records it writes.", ABOVE, sequences=3),
    Mutant("counter-restarts", "Recovery counts from nothing.", ABOVE),
    # what the protocol has in place of other designs
    Mutant(
        "pointer-believed",
        "Recovery follows a pointer that is written after the swap and not persisted before the old slot is released.",
        WHOLE,
        sequences=3,
        steps=WRITING | {"write_back_pointer"},
    ),
    Mutant("one-persist digests-ignored", "One persist, and recovery does not look at digests.", WHOLE),
    Mutant("one-persist payload-not-rewritten", "One persist, and recovery writes only records again.", SURVIVES),
)

HARMLESS = {
    "no-guard": "Looking at the root before counting is a second defence: what was seen is always older.",
    "count-first": "The guard alone is enough as well.",
    "acquire-first": "A slot may be taken before the sequence.",
    "marked-first": "The mark may be made before the record is durable.",
}
"""Orders that may be exchanged, and one defence dropped while the other stands: proved, as the protocol is."""


def mutants_named(name: str) -> tuple[Mutant, ...]:
    """The rows of this mistake."""
    return tuple(mutant for mutant in MUTANTS if mutant.name == name)


def main() -> int:
    """Write every trace anew."""
    TRACES.mkdir(exist_ok=True)
    for mutant in MUTANTS:
        trace = shortest_break(mutant.theorem, mutant.arena())
        if trace is None:
            print(f"{mutant.name}: no run breaks {mutant.theorem}")
            return 1
        mutant.path.write_text("\n".join(trace) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
