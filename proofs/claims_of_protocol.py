"""The ledger's rows about the protocol: proved by z3 for any number of slots, savers, saves, crashes and kept cells."""

from __future__ import annotations

from .claim import Claim

UNBOUNDED = "any number of slots, savers, saves, crashes"


def row(name: str, statement: str, promises: str, twin: str, mistakes: str, module: str = "protocol_theorems") -> Claim:
    """One theorem; `mistakes` are names in `protocol_mutants`, with commas between them."""
    return Claim(
        name=name,
        statement=statement,
        promises=tuple(promises.split()),
        method="z3 induction",
        module=f"proofs.{module}",
        bound=UNBOUNDED,
        strength="confirmed",
        trusts=("solvers", "model", "medium"),
        twin=twin,
        twin_name=mistakes,
    )


PROTOCOL = (
    row(
        "invariant-is-inductive",
        "The protocol's invariant holds of a new store, and every step of saves, recovery, cache and crashes keeps it.",
        "newest-survives never-wrong monotone no-reuse no-leak no-harm",
        "releases a slot whose record is in doubt",
        "doubt-freed",
        module="protocol_proof",
    ),
    row(
        "recovered-is-whole",
        "At every moment, what recovery would choose after a kill or a power loss is whole, digests ignored.",
        "never-wrong newest-survives",
        "payload not persisted first; doubtful slot released, reused unemptied, or emptied without persist; ghosts left",
        "payload-unpersisted, doubt-freed, doubt-reused, empty-unpersisted, ghosts-left",
    ),
    row(
        "acknowledged-survives",
        "At every moment, recovery after a kill or a power loss finds a record at least as new as every acknowledged one.",
        "newest-survives",
        "record not persisted; recovery trusts the cache; recovery persists without writing again",
        "record-unpersisted, cache-trusted, persisted-not-rewritten",
    ),
    row(
        "never-stuck",
        "A store that acknowledged something never finds itself without a record.",
        "newest-survives",
        "record not persisted",
        "record-unpersisted",
    ),
    row(
        "root-never-goes-back",
        "No step puts an older checkpoint in the place of a newer one; a restart begins at least where it was.",
        "monotone",
        "compares slots only (ABA); counts before it looks, without the guard",
        "slot-compared, count-first no-guard",
    ),
    row(
        "sequences-go-on-above",
        "While savers run, the next sequence is above every record there is, readable now or after a power loss.",
        "monotone newest-survives",
        "recovery believes an empty record in the cache",
        "ghosts-left",
    ),
    row(
        "slot-has-one-user",
        "No two saves work with one slot, and no save works with a slot that is published or kept.",
        "no-reuse",
        "releases its own slot though it published",
        "own-released",
    ),
    row(
        "root-is-not-touched",
        "No step changes the newest published checkpoint, in the cache or on the medium, while it is that.",
        "no-harm no-reuse",
        "releases its own slot though it published",
        "own-released",
    ),
    row(
        "every-slot-is-accounted-for",
        "Each slot is free, published, kept, quarantined, or one save's, which will put it back; at rest, nobody's.",
        "no-leak",
        "a save that fails early keeps its slot",
        "failure-leaks",
    ),
    Claim(
        name="every-reachable-state",
        statement="Every state that a small store can reach satisfies each clause of the invariant and each theorem.",
        promises=("newest-survives", "never-wrong", "monotone", "no-reuse", "no-leak", "no-harm"),
        method="search",
        module="proofs.protocol_search",
        bound="1 saver, 2 slots, sequences to 2, any crashes",
        strength="bounded",
        trusts=("model", "medium"),
        twin="trusts the cache after a restart",
        twin_name="cache-trusted",
    ),
    Claim(
        name="programs-follow-the-protocol",
        statement="The core's save and recovery programs do, step by step, only what the protocol allows; so random runs show.",
        promises=("newest-survives", "never-wrong", "monotone", "no-reuse", "no-leak", "no-harm"),
        method="refinement",
        module="proofs.refinement",
        bound="100 stores, 2 or 3 savers, 1 to 3 kept, 40,000 moves",
        strength="tested",
        trusts=("model",),
        twin="releases its own slot though it published",
        weakens="lastgood.core.save.tag_displaced",
        twin_name="always_its_own",
    ),
)
