"""Who may import whom, what a module begins with, and that the project speaks of itself alone."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.tidy.tree import PACKAGE, PROSE, ROOMS, ROOT, files, name_of

EVERYTHING = files(*PACKAGE, "proofs", "tests")
MARKDOWN = files(*PROSE, *ROOMS, "proofs", "tests", "docs", suffix=".md")
UNFINISHED = re.compile(r"\b([T]ODO|[F]IXME|[X]XX|[H]ACK)\b")  # the brackets: this line is read too
ELSEWHERE = re.compile(r"/(home|root|work|farm|Users)/\w|(\.\./)+shared\b")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)")


def imports(source: str) -> Iterator[tuple[int, str]]:
    """(level, module) of every import statement, also those inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def imported_packages(source: str) -> set[str]:
    """Top-level names of the absolute imports."""
    return {module.partition(".")[0] for level, module in imports(source) if level == 0}


@pytest.mark.parametrize("path", files("core"), ids=name_of)
def test_core_can_be_vendored_by_copying_it(path: Path) -> None:
    """Relative imports within one flat folder; nothing from outside but numpy, numba and the standard library."""
    assert path.parent == ROOT / "core"
    assert imported_packages(path.read_text()) <= {"numpy", "numba", "llvmlite", *sys.stdlib_module_names}
    assert {level for level, _ in imports(path.read_text())} <= {0, 1}


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_the_rooms_are_imported_by_their_full_names(path: Path) -> None:
    """`import core` would load a second copy, with locks and exceptions of its own."""
    assert not imported_packages(path.read_text()) & set(ROOMS)


def test_the_import_contracts_see_every_module_through_the_links() -> None:
    """The linter is only as good as its view: a graph that misses a room would keep every contract."""
    graph = grimp.build_graph("lastgood", cache_dir=None)
    expected = set()
    for path in files(*PACKAGE):
        parts = Path("lastgood") / name_of(path).removeprefix("src/lastgood/")
        expected.add(".".join(parts.with_suffix("").parts).removesuffix(".__init__"))
    assert graph.modules == expected
    assert graph.direct_import_exists(importer="lastgood.core.save", imported="lastgood.core.rules")


@pytest.mark.parametrize("path", files(*PACKAGE), ids=name_of)
def test_a_modules_first_words_are_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring
    assert docstring.splitlines()[0].endswith((".", ":")), "the first line is a sentence"
    assert path.stem not in ("utils", "util", "base", "common", "helpers", "misc"), "name it after what it is"


@pytest.mark.parametrize("path", [*EVERYTHING, *MARKDOWN, ROOT / "Makefile", ROOT / "pyproject.toml"], ids=name_of)
def test_nothing_is_left_to_do_and_nothing_points_outside(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [line for line in lines if UNFINISHED.search(line)] == []
    assert [line for line in lines if ELSEWHERE.search(line)] == []


@pytest.mark.parametrize("path", MARKDOWN, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(path: Path) -> None:
    targets = [(path.parent / link).resolve() for link in LINK.findall(path.read_text())]
    assert [target for target in targets if not target.exists() or not target.is_relative_to(ROOT)] == []


def test_each_of_these_checks_can_fail() -> None:
    inside_a_function = "def f():\n    from core.rules import tag_of\n    import models.x as y"
    assert imported_packages(inside_a_function) == {"core", "models"}
    assert imported_packages("from .rules import tag_of\nfrom . import core") == set()
    assert UNFINISHED.search(f"# {'todo'.upper()}: later")
    assert ELSEWHERE.search("see " + 2 * "../" + "shared/notes")
    assert ELSEWHERE.search("/".join(["", "home", "me"]))
    assert not ELSEWHERE.search("a shared lock in tests/process/")
    assert LINK.findall("[a](docs/x.md#part) [b](https://x.org) [c](#here)") == ["docs/x.md"]
