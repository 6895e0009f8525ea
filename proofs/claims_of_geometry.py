"""The ledger's rows about geometry: where bytes lie. CrossHair checks them in `geometry`."""

from __future__ import annotations

from .claim import contract

ANY_BYTES = "any sizes"

GEOMETRY = (
    contract(
        "align-up-is-least",
        "Aligning rounds up to whole pages, by less than one page.",
        "bounded",
        ANY_BYTES,
        "adds a page to whole pages",
        weakens="align_up",
        by="page_too_much",
        module="geometry",
    ),
    contract(
        "chunks-tile-the-payload",
        "Each chunk begins where the one before ends, none is empty or too long, and the last ends with the payload.",
        "never-wrong bounded",
        ANY_BYTES,
        "makes the last chunk as long as the others",
        weakens="chunk_length",
        by="never_short",
        module="geometry",
    ),
    contract(
        "no-payload-no-chunks",
        "A payload has chunks exactly when it has bytes.",
        "never-wrong",
        ANY_BYTES,
        "adds an empty chunk at the end",
        weakens="chunk_count",
        by="chunk_too_many",
        module="geometry",
    ),
    contract(
        "chunks-stay-in-the-slot",
        "Every chunk, rounded up to whole pages as it is written, lies aligned between record area and end of file.",
        "no-harm bounded",
        "any sizes; record area and chunks in whole pages",
        "ends the slot file at the last byte, not at a page",
        weakens="slot_file_bytes",
        by="unaligned_end",
        module="geometry",
    ),
    contract(
        "record-fits-its-area",
        "The record area holds the fixed part, the meta and every digest, and is whole pages.",
        "never-wrong no-harm",
        ANY_BYTES,
        "forgets the meta bytes",
        weakens="record_area_bytes",
        by="forgets_meta",
        module="geometry",
    ),
)
