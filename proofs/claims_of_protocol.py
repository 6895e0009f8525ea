"""The ledger's rows about the protocol: proved for any number of slots, savers, saves, crashes and kept checkpoints."""

from __future__ import annotations

from .claim import Claim

UNBOUNDED = "any number of slots, savers, saves, crashes, kept"
ALL = "newest-survives never-wrong monotone no-reuse no-leak no-harm"


def row(
    name: str,
    statement: str,
    promises: str,
    twin: str,
    mistakes: str,
    *,
    module: str = "protocol.theorems",
    trusts: str = "solvers model medium",
) -> Claim:
    """One theorem; `mistakes` are names in `protocol_mutants`, with commas between them."""
    return Claim(
        name=name,
        statement=statement,
        promises=tuple(promises.split()),
        method="induction",
        module=f"proofs.{module}",
        bound=UNBOUNDED,
        strength="confirmed",
        trusts=tuple(trusts.split()),
        twin=twin,
        twin_name=mistakes,
    )


PROTOCOL = (
    row(
        "invariant-is-inductive",
        "The protocol's invariant holds of a new store, and every step of saves, recovery, cache and crashes keeps it.",
        ALL,
        "releases a slot whose record is in doubt",
        "doubt-freed",
        module="protocol_proof",
    ),
    row(
        "recovered-is-whole",
        "At every moment, what recovery would choose after a kill or a power loss is what one save was given, whole.",
        "never-wrong newest-survives",
        "each persist and order of the payload, doubtful slots released or reused, ghosts left, a pointer believed",
        "payload-unpersisted, record-first, unjoined, published-early, doubt-freed, doubt-reused, empty-unpersisted, "
        "ghosts-left, pointer-believed",
    ),
    row(
        "acknowledged-survives",
        "At every moment, recovery after a kill or a power loss finds a checkpoint as new as every acknowledged one.",
        "newest-survives",
        "each persist and order of the record; recovery trusts the cache, or persists without writing again",
        "record-unpersisted, persisted-unwritten, acknowledged-early, cache-trusted, persisted-not-rewritten",
    ),
    row(
        "row-survives",
        "At every moment, each kept checkpoint is durable and whole, newest first: after a crash all of them are there.",
        "newest-survives never-wrong",
        "recovery trusts the cache",
        "cache-trusted",
    ),
    row(
        "only-older-are-given-up",
        "A slot that is free, or is being overwritten, holds no record, or one older than each of `keep` that are kept.",
        "newest-survives no-reuse",
        "what the swap displaced, or a superseded save, is released at once",
        "displaced-released, superseded-released",
    ),
    row(
        "abandoned-is-older",
        "A save that was given up for newer checkpoints is older than each of `keep` that are kept.",
        "newest-survives loud",
        "one newer checkpoint is enough to give up",
        "overtaken-by-newest",
    ),
    row(
        "never-stuck",
        "A store that acknowledged something never finds itself without a record.",
        "newest-survives",
        "record not persisted",
        "record-unpersisted",
    ),
    row(
        "fresh-start-is-honest",
        "Once a save was acknowledged, the mark that says so is there, after a kill and after a power loss.",
        "newest-survives loud",
        "each persist and order of the mark, several savers making it, recovery that believes it",
        "acknowledged-unmarked, mark-unpersisted, mark-by-many, mark-trusted, mark-not-rewritten",
    ),
    row(
        "root-never-goes-back",
        "No step puts an older checkpoint in the place of a newer one; a restart begins at least where it was.",
        "monotone",
        "compares slots only (ABA); counts before it looks, without the guard",
        "slot-compared, count-first no-guard",
    ),
    row(
        "row-never-goes-back",
        "No step, crash or restart puts an older checkpoint into any place of the row.",
        "monotone newest-survives",
        "a cell takes what it is offered",
        "takes-anything",
    ),
    row(
        "sequences-go-on-above",
        "While savers run, the next sequence is above every record there is, readable now or after a power loss.",
        "monotone newest-survives",
        "recovery believes an empty record, does not persist its own, or counts from nothing",
        "ghosts-left, emptied-unpersisted, counter-restarts",
    ),
    row(
        "slot-has-one-user",
        "No two saves work with one slot, and no save works with a slot whose checkpoint is kept.",
        "no-reuse",
        "releases its own slot though it published; releases what it saw before the swap",
        "own-released, released-before-swap",
    ),
    row(
        "kept-are-not-touched",
        "No step changes a kept checkpoint, in the cache or on the medium, while it is kept.",
        "no-harm no-reuse",
        "releases its own slot though it published",
        "own-released",
    ),
    row(
        "every-slot-is-accounted-for",
        "Each slot is free, kept, quarantined, or one save's, which will put it back; at rest, nobody's.",
        "no-leak",
        "a save that fails early keeps its slot",
        "failure-leaks",
    ),
    row(
        "one-persist-keeps-the-promises",
        "With one persist a save, and recovery that believes a record only when its digest is right, all the same holds.",
        ALL,
        "digests ignored; recovery writes records again and not payloads",
        "one-persist digests-ignored, one-persist payload-not-rewritten",
        module="protocol_tool",
        trusts="solvers model medium digests",
    ),
    row(
        "other-orders-are-as-good",
        "The proof also holds without the guard, counting or acquiring first, and with the mark before the record.",
        ALL,
        "counts first and drops the guard as well",
        "count-first no-guard",
        module="protocol_tool",
    ),
    Claim(
        name="every-reachable-state",
        statement="Every state that a small store can reach satisfies each clause of the invariant and each theorem.",
        promises=tuple(ALL.split()),
        method="search",
        module="proofs.protocol_tool",
        bound="1 saver, 2 slots, 1 kept, sequences to 2, any crashes; two persists and one",
        strength="bounded",
        trusts=("model", "medium"),
        twin="trusts the cache after a restart",
        twin_name="cache-trusted",
    ),
)
