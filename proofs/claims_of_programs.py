"""The ledger's rows about recovery and the save program, which CrossHair checks as well."""

from __future__ import annotations

from .claim import Claim, contract

STORE_OF_THREE = "3 slots, 2 kept, one save alone, any one device step failing"

RECOVERY = (
    contract(
        "newer-candidate-step",
        "One step of the scan keeps one of the two tags, and none is newer.",
        "newest-survives",
        "any tags; by induction any number of slots",
        "takes the last one looked at",
        weakens="newer_candidate",
        by="last_one_wins",
        module="recovery",
    ),
    contract(
        "newest-of-many",
        "The scan over up to six records finds the newest tag, or none when there is none.",
        "newest-survives",
        "up to 6 records, any tags",
        "takes the first one looked at",
        weakens="newer_candidate",
        by="first_one_wins",
        module="recovery",
        strength="bounded",
    ),
    contract(
        "next-sequence-step",
        "One step of counting never lowers the count, and the next sequence given out is above the one seen.",
        "monotone",
        "any sequences; by induction any number of slots",
        "goes on from the last record seen",
        weakens="next_sequence",
        by="counts_from_last",
        module="recovery",
    ),
    contract(
        "next-sequence-above-all",
        "After recovery the next sequence given out is above that of each of up to five records seen.",
        "monotone",
        "up to 5 records, any tags",
        "does not look at the records",
        weakens="next_sequence",
        by="forgets_records",
        module="recovery",
        strength="bounded",
    ),
    contract(
        "survey-finds-the-newest-whole",
        "`survey` over three slots answers the newest record whose payload is whole, or none when none is.",
        "newest-survives never-wrong",
        "3 slots, any sequences, any of them damaged",
        "takes the last one looked at",
        weakens="lastgood.core.recover.newer_candidate",
        by="last_one_wins",
        module="recovery",
        strength="bounded",
    ),
    contract(
        "make-ready-accounts-for-slots",
        "After `make_ready` over two slots the newest usable checkpoints are kept, and every other slot is free.",
        "no-leak no-reuse newest-survives",
        "2 slots, 1 or 2 kept, any sequences and verdicts",
        "keeps the last one looked at",
        weakens="lastgood.core.recover.newer_candidate",
        by="last_one_wins",
        module="recovery",
        strength="bounded",
    ),
    contract(
        "make-ready-persists-before-freeing",
        "`make_ready` frees no slot until what it keeps was persisted anew and all else was emptied for good, or frees none.",
        "newest-survives no-reuse",
        "2 slots, 1 or 2 kept, any device step broken",
        "trusts the cache: no persist of what it keeps",
        weakens="lastgood.core.recover.make_ready",
        by="make_ready_unpersisted",
        module="recovery",
        strength="bounded",
    ),
)

ALONE = tuple(
    contract(
        name,
        statement,
        promises,
        STORE_OF_THREE,
        twin,
        weakens=weakens,
        by=by,
        module="saving",
        strength="bounded",
        trusts="solvers machine-words",
    )
    for name, statement, promises, twin, weakens, by in (
        (
            "save-puts-one-slot-back",
            "Whatever fails in a save, afterwards each slot is free, quarantined or kept, and only one of these.",
            "no-leak no-reuse",
            "releases its own slot though it published",
            "lastgood.core.save.tag_displaced",
            "always_its_own",
        ),
        (
            "save-acknowledges-durable-only",
            "A save acknowledges only after payload and record were written and persisted, each before the next.",
            "newest-survives never-wrong",
            "acknowledges once the record is written",
            "lastgood.core.save.save",
            "save_record_unpersisted",
        ),
        (
            "failed-save-changes-nothing-kept",
            "A save either acknowledges, and is then the newest, or leaves the kept checkpoints as they were.",
            "no-harm loud newest-survives",
            "ends a failed save as a published one",
            "lastgood.core.save.FAILED",
            "FAILED_IS_PUBLISHED",
        ),
        (
            "doubtful-record-is-quarantined",
            "A save that asked for its record and did not acknowledge quarantines its slot; nobody is handed it.",
            "newest-survives no-reuse",
            "releases the slot whose record is in doubt",
            "lastgood.core.save.save",
            "save_releases_doubt",
        ),
    )
)

SIDE_BY_SIDE = contract(
    "saves-side-by-side-keep-the-newest",
    "When a whole other save runs between any two steps of one, the newest two are kept and no slot is lost.",
    "newest-survives monotone no-leak no-reuse",
    "4 slots, 2 kept, 2 saves, one switch, any persist broken",
    "takes whatever a cell is offered",
    weakens="lastgood.core.save.keeps_offered",
    by="takes_anything",
    module="saving",
    strength="bounded",
    trusts="solvers machine-words",
)

PROGRAMS: tuple[Claim, ...] = (*RECOVERY, *ALONE, SIDE_BY_SIDE)
