"""Stores of format 1, as this version writes them, kept so that every later version can show that it reads them.

    python -m tests.store.golden       packs new ones into format-1.tar.xz; only ever for a format that nobody has used yet

Four directories: `plain`, `one-persist` (persists=1), `grown` (a slot file still has its old size), and `unused`. Beside
each lies a list of what is in it, written by hand-written code from the tickets, not read back from the store.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from lastgood.core import Store
from tests.store.small import files_of

ARCHIVE = Path(__file__).with_name("format-1.tar.xz")
SIZES = {1: 0, 2: 1, 3: 4096, 4: 4097, 5: 9000}


def content_of(step: int, size: int) -> bytes:
    """Bytes that no two places of no two saves share, and that pack well."""
    return b"".join(b"%d:%d " % (step, index) for index in range(size // 4 + 1))[:size]


def saves(store: Store, steps: list[int]) -> list[dict[str, Any]]:
    """Save these steps (with odd sizes and odd meta); what a reader must find of each."""
    facts = []
    for step in steps:
        size = SIZES.get(abs(step), abs(step))
        record = store.save(content_of(step, size), step=step, meta=b"meta of %d\0" % step).wait(60)
        facts.append(
            {
                "step": step,
                "bytes": size,
                "sequence": record.sequence,
                "slot": record.slot,
                "run": store.run,
                "saved_at_ns": record.saved_at_ns,
                "meta": (b"meta of %d\0" % step).hex(),
            }
        )
    return facts


def make(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Write all stores below `path`; the facts of those saves that each one keeps, newest first."""
    options: dict[str, Any] = {"slot_bytes": 9000, "chunk_bytes": 4096, "meta_bytes": 64, "in_flight": 1, "keep": 2}
    facts = {"unused": []}
    with Store.create(path / "unused", **options):
        pass
    with Store.create(path / "plain", **options) as store:
        facts["plain"] = saves(store, [1, 2, 3, -4, 5])[:-3:-1]
    with Store.create(path / "one-persist", **{**options, "keep": 3}, persists=1) as store:
        facts["one-persist"] = saves(store, [5, 4, 1])[::-1]
    with Store.create(path / "grown", **options) as store:
        older = saves(store, [3])
        store.grow(14_000)
        facts["grown"] = [*saves(store, [13_999]), *older]
    return facts


def pack() -> None:
    """Make the archive."""
    with tempfile.TemporaryDirectory() as place, tarfile.open(ARCHIVE, "w:xz") as archive:
        facts = make(Path(place))
        contents = {"facts.json": json.dumps(facts, indent=1).encode()}
        for name in facts:
            for file, content in files_of(Path(place) / name).items():
                contents[f"{name}/{file}"] = content
        for file, content in contents.items():
            member = tarfile.TarInfo(file)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def unpack(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Put the stores below `path`; what is in them."""
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            target = path / member.name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content.read())
    facts: dict[str, list[dict[str, Any]]] = json.loads((path / "facts.json").read_text())
    return facts


if __name__ == "__main__":
    pack()
