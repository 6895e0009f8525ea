"""Explore every mutant on every medium anew, keep what was found, and write docs/mutants.md from it.

    python -m tests.crash.mutants.write             everything: an hour on one core
    python -m tests.crash.mutants.write block pmem  these media only
    python -m tests.crash.mutants.write --page      only the page, from what is kept

Read the difference before you keep it.
"""

from __future__ import annotations

import sys

from lastgood.crashsim.core_table import every_mutant, says, table
from lastgood.crashsim.media import MEDIA
from lastgood.crashsim.mutant_table import page
from tests.crash.mutants.goldens import PAGE, keep, kept


def main(words: list[str]) -> None:
    media = [] if words == ["--page"] else words or list(MEDIA)
    for medium in media:
        found = table(every_mutant(), [medium], progress=lambda line: print(line, flush=True))
        keep(medium, list(found))
    PAGE.write_text(page(kept(), says()))


if __name__ == "__main__":
    main(sys.argv[1:])
