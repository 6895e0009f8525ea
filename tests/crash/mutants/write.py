"""Explore every mutant on every medium anew, keep what was found, and write docs/mutants.md and its drawings from it.

    python -m tests.crash.mutants.write             everything: an hour on one core
    python -m tests.crash.mutants.write block pmem  these media only
    python -m tests.crash.mutants.write NAME        this mutant only, on every medium
    python -m tests.crash.mutants.write --page      only the page, from what is kept

Read the difference before you keep it.
"""

from __future__ import annotations

import sys
from functools import partial

from lastgood.crashsim.core_table import every_mutant, says, table
from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.mutant_table import page
from tests.crash.mutants.goldens import DRAWINGS, PAGE, drawing, keep, kept, published


def main(words: list[str]) -> None:
    mutants = [word for word in words if word in every_mutant()]
    media = [word for word in words if word in MEDIA]
    unknown = [word for word in words if word not in (*mutants, *media, "--page")]
    assert not unknown, f"neither a mutant nor a medium: {unknown}"
    for medium in [] if words == ["--page"] else media or MEDIA:
        found = table(mutants or every_mutant(), [medium], progress=partial(print, medium, flush=True))
        keep(medium, list(found))
    cells = kept()
    PAGE.write_text(page(cells, says()))
    DRAWINGS.mkdir(exist_ok=True)
    for cell in published(cells):
        (DRAWINGS / f"{cell.mutant}.html").write_text(drawing(cell))


if __name__ == "__main__":
    main(sys.argv[1:])
