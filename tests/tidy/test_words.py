"""One word, one meaning: what the glossary bans stays out of the code and the docs.

*commit* and *flush* mean three different things each in this field, so neither says whether bytes are durable. A bare
*atomic* or *safe* does not say against what. *sync* is something one does, not a thing.
"""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tidy.tree import PACKAGE, ROOMS, files, name_of

BANNED = {
    # Within identifiers too: `flush_all`, `CommitRecord`.
    r"(?<![a-z])(commit(s|ted|ting)?|flush(es|ed|ing)?)(?![a-z])": "say publish, acknowledge, write back or persist",
    # `atomics`, `thread-safe` and `atomic_rmw` say what they mean.
    r"(?<![-\w])(atomic|safe|safely)(?![-\w])": "say against what: torn writes, other threads, a power loss",
    r"\b(a|an|the|each|every|one|no|per|this|that) syncs?\b": "say persist, or which call is meant",
}
ABBREVIATIONS = {"ckpt", "ckpts", "mgr", "cfg", "buf", "bufs", "idx", "seqno", "ptr", "tmp", "util", "utils"}


class Allowed(NamedTuple):
    """A place where a banned word is somebody else's name."""

    path: str
    fragment: str
    reason: str


ALLOWED = [
    Allowed("core/atomics.py", "`load atomic`", "LLVM's name of the instruction"),
    Allowed("core/at_exit.py", ".flush()", "Python's own name for emptying a text stream"),
    Allowed("core/mapped.py", "_map.flush()", "mmap's own name for msync"),
    Allowed("crashsim/media/block.py", "FLUSH", "the disk standards' name of the command"),
]


def text_of(path: Path) -> str:
    """A file's text without the fragments that are allowed in it."""
    text = path.read_text()
    for allowed in ALLOWED:
        if fnmatch(name_of(path), allowed.path):
            text = text.replace(allowed.fragment, "")
    return text


def words_of(text: str) -> str:
    """The text in lower case, with `CamelCase` taken apart."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()


def banned_words(text: str) -> list[str]:
    """Each use of a banned word, with what to say instead."""
    findings = []
    for number, line in enumerate(text.splitlines(), start=1):
        findings += [
            f"line {number}: {found.group()!r}: {instead}"
            for pattern, instead in BANNED.items()
            for found in re.finditer(pattern, words_of(line))
        ]
    return findings


def abbreviated_names(source: str) -> list[str]:
    """Names that a file gives and that have a shortened word in them; names of others' things are theirs."""
    given: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            given.add(node.name)
        elif isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            given.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            given.add(node.attr)
    return sorted(name for name in given if ABBREVIATIONS & set(words_of(name).replace("_", " ").split()))


CODE = files(*PACKAGE, "proofs")
DOCS = files("README.md", "CHANGELOG.md", *ROOMS, "proofs", "docs", suffix=".md")


@pytest.mark.parametrize("path", [*CODE, *DOCS], ids=name_of)
def test_words(path: Path) -> None:
    assert banned_words(text_of(path)) == []


@pytest.mark.parametrize("path", files(*PACKAGE), ids=name_of)
def test_names_are_whole_words(path: Path) -> None:
    assert abbreviated_names(path.read_text()) == []


@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: f"{allowed.path}:{allowed.fragment}")
def test_what_is_allowed_is_still_needed(allowed: Allowed) -> None:
    matching = [path for path in (*CODE, *DOCS) if fnmatch(name_of(path), allowed.path)]
    assert allowed.reason
    assert any(allowed.fragment in path.read_text() for path in matching)
    assert banned_words(allowed.fragment)


@pytest.mark.parametrize(
    "text",
    ["file.flush()", "def flush_all():", "class CommitRecord:", "# committed", "COMMIT_MARK = 1", "an atomic rename",
     "it is safe.", "is safely stored", "after each sync", "the sync"],
)  # fmt: skip
def test_a_banned_word_is_seen(text: str) -> None:
    assert banned_words(text)


@pytest.mark.parametrize(
    "text",
    ["from .atomics import load", "safetensors", "thread-safe", "builder.atomic_rmw()", "os.fdatasync(descriptor)",
     "sync_file_range", "they sync the directory", "committee", "unsafe"],
)  # fmt: skip
def test_a_word_that_says_what_it_means_is_not(text: str) -> None:
    assert banned_words(text) == []


def test_an_abbreviated_name_is_seen_where_it_is_given_not_where_it_is_used() -> None:
    assert abbreviated_names("def f(buf, /): self.cfg = 1\nclass CkptMgr: pass\nfor idx in x: pass") == [
        "CkptMgr", "buf", "cfg", "idx",
    ]  # fmt: skip
    assert abbreviated_names("import utils\nprint(module.buf, idx)") == []
