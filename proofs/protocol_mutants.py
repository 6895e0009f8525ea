"""Mistakes that the protocol must not make, each with the shortest way from a new store to what it breaks.

Every row is refuted twice: z3 cannot show that the invariant survives the mistake, and the trace, replayed step by step
in plain Python, ends in a break of the theorem. In the protocol without the mistake the same trace is harmless or cannot
be taken. Three of these are how published systems are written: `slot-compared`, `record-unpersisted`, `cache-trusted`.

A trace is a list of steps; the numbers are savers and slots, `y` and `n` are answers (does a page stay dirty?).
"""

from __future__ import annotations

from dataclasses import dataclass

from .protocol_search import Arena, Trace

ROUND = frozenset(
    [
        "load",
        "count",
        "acquire",
        "begin_payload",
        "end_payload",
        "persist_payload",
        "write_record",
        "persist_record",
        "acknowledge",
        "publish",
        "look_again",
        "superseded",
        "release",
    ]
)
"""The steps of saves that do not fail, in a store that does not crash: enough for the races."""


@dataclass(frozen=True)
class Mutant:
    """One mistake, or several made together, and what is broken by it."""

    name: str
    mistake: str
    theorem: str
    slots: int
    savers: int
    sequences: int
    steps: str
    races_only: bool = False

    @property
    def trace(self) -> Trace:
        """The steps to the break."""
        return tuple(" ".join(self.steps.split()).split("; "))

    def arena(self, *, with_mistake: bool = True) -> Arena:
        """Where the trace is taken."""
        wrong = frozenset(self.name.split()) if with_mistake else frozenset()
        return Arena(self.slots, self.savers, self.sequences, wrong, ROUND if self.races_only else None)


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "payload-unpersisted",
        "The record is written before the payload is durable.",
        "recovered-is-whole",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0
        """,
    ),
    Mutant(
        "record-unpersisted",
        "A save acknowledges, and publishes, once its record is written.",
        "acknowledged-survives",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; acknowledge 0
        """,
    ),
    Mutant(
        "record-unpersisted",
        "A save acknowledges, and publishes, once its record is written.",
        "never-stuck",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; acknowledge 0; lose_power
        """,
    ),
    Mutant(
        "slot-compared",
        "The root is swapped when its slot is the one that was seen, whatever the sequence (ABA).",
        "root-never-goes-back",
        3,
        2,
        4,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; acknowledge 0; publish 0; load 0; load 1; count 0; count 1; acquire 0 1; acquire 1
        2; begin_payload 0; begin_payload 1; end_payload 0; end_payload 1; persist_payload 0;
        persist_payload 1; write_record 0; write_record 1; persist_record 0; persist_record 1; acknowledge
        0; acknowledge 1; publish 0; release 0; load 0; count 0; acquire 0 0; begin_payload 0; end_payload
        0; persist_payload 0; write_record 0; persist_record 0; acknowledge 0; publish 0; publish 1
        """,
        races_only=True,
    ),
    Mutant(
        "count-first no-guard",
        "The sequence is taken before the root is seen, and the swap is tried over a newer tag.",
        "root-never-goes-back",
        3,
        2,
        3,
        """
        count 0; count 1; load 1; acquire 1 0; begin_payload 1; end_payload 1; persist_payload 1;
        write_record 1; persist_record 1; acknowledge 1; publish 1; load 0; acquire 0 1; begin_payload 0;
        end_payload 0; persist_payload 0; write_record 0; persist_record 0; acknowledge 0; publish 0
        """,
        races_only=True,
    ),
    Mutant(
        "cache-trusted",
        "Recovery hands out slots before what it read is durable.",
        "acknowledged-survives",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        kill; survey 0 nn; make_ready
        """,
    ),
    Mutant(
        "persisted-not-rewritten",
        "Recovery persists what it read without writing it again: a clean page stays as it is.",
        "acknowledged-survives",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        fail_record 0 0 0; kill; survey 0 nn; make_ready
        """,
    ),
    Mutant(
        "ghosts-left",
        "Recovery takes an empty record in the cache for an empty record on the medium.",
        "sequences-go-on-above",
        2,
        1,
        3,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; fail_record 0 0 0; load 0; count 0; acquire_doubtful 0 0; write_empty_record 0;
        kill; survey_nothing; make_ready
        """,
    ),
    Mutant(
        "ghosts-left",
        "Recovery takes an empty record in the cache for an empty record on the medium.",
        "recovered-is-whole",
        2,
        1,
        3,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; fail_record 0 0 0; load 0; count 0; acquire_doubtful 0 0; write_empty_record 0;
        kill; survey_nothing; make_ready; load 0; count 0; acquire 0 0; begin_payload 0; write_back_payload
        0
        """,
    ),
    Mutant(
        "doubt-freed",
        "A slot whose record failed to persist is released.",
        "recovered-is-whole",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        fail_record 0 0 0; load 0; count 0; acquire 0 0; begin_payload 0
        """,
    ),
    Mutant(
        "doubt-reused",
        "A quarantined slot is used again without being emptied.",
        "recovered-is-whole",
        2,
        1,
        3,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        fail_record 0 0 0; load 0; count 0; acquire_doubtful 0 0; begin_payload 0
        """,
    ),
    Mutant(
        "empty-unpersisted",
        "A quarantined slot is used again before its empty record is durable.",
        "recovered-is-whole",
        2,
        1,
        3,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; fail_record 0 0 0; load 0; count 0; acquire_doubtful 0 0; write_empty_record 0;
        begin_payload 0; write_back_payload 0
        """,
    ),
    Mutant(
        "own-released",
        "A save that publishes releases its own slot.",
        "slot-has-one-user",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; acknowledge 0; publish 0; load 0; count 0; acquire 0 0
        """,
    ),
    Mutant(
        "own-released",
        "A save that publishes releases its own slot.",
        "root-is-not-touched",
        2,
        1,
        2,
        """
        load 0; count 0; acquire 0 0; begin_payload 0; end_payload 0; persist_payload 0; write_record 0;
        persist_record 0; acknowledge 0; publish 0; load 0; count 0; acquire 0 0; begin_payload 0
        """,
    ),
    Mutant(
        "failure-leaks",
        "A save that fails early keeps its slot.",
        "every-slot-is-accounted-for",
        1,
        1,
        1,
        "load 0; count 0; acquire 0 0; fail_payload 0 0",
    ),
)

HARMLESS = {
    "no-guard": "Looking at the root before counting is a second defence: what was seen is always older.",
    "count-first": "The guard alone is enough as well.",
}
"""One defence dropped while the other stands: the search must find nothing."""


def mutants_named(name: str) -> tuple[Mutant, ...]:
    """The rows of this mistake."""
    return tuple(mutant for mutant in MUTANTS if mutant.name == name)
