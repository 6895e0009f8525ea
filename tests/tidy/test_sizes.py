"""A module fits into a reader's head, a function onto the screen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tidy.tree import PACKAGE, files, name_of

MODULE_LINES = 300
FUNCTION_LINES = 60

# Who may be longer, and why. An entry that is no longer needed fails too.
LONG_FUNCTIONS = {
    "core/save.py": {"save"},
    "core/recover.py": {"make_ready"},  # a compiled program yields in its outermost function only
}


def long_functions(source: str) -> list[str]:
    """Names of the functions, methods and inner functions that take more than the limit, docstring included."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in nodes if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES]


@pytest.mark.parametrize("path", files(*PACKAGE), ids=name_of)
def test_sizes(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) <= MODULE_LINES
    assert set(long_functions(source)) == LONG_FUNCTIONS.get(name_of(path), set())


def test_a_long_function_is_seen_wherever_it_stands() -> None:
    body = "\n        x = 1" * (FUNCTION_LINES - 1)
    assert long_functions(f"class A:\n    def fits(self):{body}") == []
    assert long_functions(f"class A:\n    async def grown(self):{body}\n        y = 2") == ["grown"]
