"""Write the ledger into `proofs/README.md`, between its marks: `python -m proofs.readme`. A test says when it is due."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .ledger import ASSUMPTIONS, CLAIMS, GUARANTEE, NOT_PROVED
from .table import sections

README = Path(__file__).resolve().parent / "README.md"


def with_ledger(text: str) -> str:
    """The README's text with the ledger of now between its marks; each mark must be there once."""
    for name, content in sections(GUARANTEE, CLAIMS, ASSUMPTIONS, NOT_PROVED).items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        text, count = marks.subn(lambda found, content=content: found[1] + content + found[2], text)
        assert count == 1, f"README.md has no place, or several, for {name}"
    return text


def main() -> int:
    """Bring the README up to date."""
    README.write_text(with_ledger(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
