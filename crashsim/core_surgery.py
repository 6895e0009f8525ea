"""Every small cut into the save program, made by a machine: each persist left out, each two neighbouring steps swapped.

Nobody has to think of these mutants, so nobody can forget one. A *step* is what a program does up to its next yield;
an `if` or a loop with yields in it is one step of the block around it, and its own blocks have steps too:

    drop-every-persist   none of them asks for anything: the saboteur that every harness must catch
    without-…        one `yield PERSIST_…` asks for nothing
    swapped-…        two neighbouring steps of one block change places
    exchanged-…      two yields that follow each other in the source, in whatever blocks, ask for each other's thing

What cannot run at all, because it reads a variable that it only then sets, is no mutant and is left out.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from .core_target import PRIMITIVES, save
from .mutants import Mutant

QUIET = ("STEP", "WAIT")
SABOTEUR = "drop-every-persist"


@cache
def cuts() -> dict[str, Mutant]:
    """Every cut into the save program by its name, in the order of the source."""
    text = source()
    found = {SABOTEUR: Mutant(SABOTEUR, "nothing is ever persisted", "", "", save=((text, _silenced(text)),))}
    seen = {text}
    for name, says, edit in candidates():
        changed = text.replace(*edit)
        if changed in seen or not can_run(changed):
            continue
        seen.add(changed)
        number = sum(each == name or each.startswith(f"{name}-again") for each in found)
        unique = name + ("" if not number else "-again" + (str(number) if number > 1 else ""))
        found[unique] = Mutant(unique, says, "", "", save=(edit,))
    return found


def source() -> str:
    """The text of the save program."""
    return inspect.getsource(getattr(save.save, "py_func", save.save))


def candidates() -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Every cut that can be made, also those that could not run and those that are made twice: name, words, edit."""
    text = source()
    tree = ast.parse(text)
    for name, says, first, last, lines in (*_removals(text, tree), *_swaps(text, tree), *_exchanges(text, tree)):
        yield name, says, _edit(text, first, last, lines)


def _silenced(text: str) -> str:
    return re.sub(r"yield PERSIST_\w+", "yield STEP", text)


_Cut = tuple[str, str, int, int, list[str]]
"""A name, what it says, and the lines (first, behind the last) that are replaced by others."""


def _removals(text: str, tree: ast.Module) -> Iterator[_Cut]:
    lines = text.splitlines(keepends=True)
    for line, asked in _yields(tree):
        if asked.startswith("PERSIST"):
            replaced = lines[line - 1].replace(asked, "STEP", 1)
            yield f"without-{_slug(asked)}", f"`yield {asked}` asks for nothing", line - 1, line, [replaced]


def _exchanges(text: str, tree: ast.Module) -> Iterator[_Cut]:
    lines = text.splitlines(keepends=True)
    for (line, asked), (other_line, other) in pairwise(_yields(tree)):
        changed = lines[line - 1 : other_line]
        changed[0] = changed[0].replace(asked, other, 1)
        changed[-1] = changed[-1].replace(other, asked, 1)
        says = f"`yield {asked}` and `yield {other}` ask for each other's thing"
        yield f"exchanged-{_slug(asked)}-and-{_slug(other)}", says, line - 1, other_line, changed


def _swaps(text: str, tree: ast.Module) -> Iterator[_Cut]:
    lines = text.splitlines(keepends=True)
    for block in _blocks(tree):
        for (start, middle, first), (_, end, second) in pairwise(_steps(block)):
            names = _name_of(first), _name_of(second)
            changed = lines[middle:end] + lines[start:middle]
            says = f"what begins with {names[1]} is done before what begins with {names[0]}"
            yield f"swapped-{_slug(names[0])}-and-{_slug(names[1])}", says, start, end, changed


def _yields(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and name of each thing that the program asks for, in the order of the source."""
    found = [
        (node.lineno, node.value.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Name) and node.value.id not in QUIET
    ]
    return sorted(found)


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Every list of statements, the docstring left out."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, ast.Module):
                yield block[1:] if isinstance(node, ast.FunctionDef) else block


def _steps(block: list[ast.stmt]) -> list[tuple[int, int, list[ast.stmt]]]:
    """The steps of a block: first line and the one behind the last, counted from zero, and their statements.

    What follows the last yield is a step too when it touches a shared word.
    """
    steps: list[tuple[int, int, list[ast.stmt]]] = []
    waiting: list[ast.stmt] = []
    start = block[0].lineno - 1 if block else 0
    for statement in block:
        waiting.append(statement)
        if any(isinstance(node, ast.Yield) for node in ast.walk(statement)):
            assert statement.end_lineno is not None
            steps.append((start, statement.end_lineno, waiting))
            start, waiting = statement.end_lineno, []
    return steps


def _name_of(step: list[ast.stmt]) -> str:
    """What a step does first that anybody else could notice."""
    for statement in step:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PRIMITIVES:
                return f"{node.func.id} {ast.unparse(node.args[1]).split(' ')[0]}"
            if isinstance(node, ast.Yield) and isinstance(node.value, ast.Name) and node.value.id not in QUIET:
                return node.value.id
    return "STEP"


def _edit(text: str, first: int, last: int, changed: list[str]) -> tuple[str, str]:
    """The replacement as a text that occurs once: with as many lines before it as that takes."""
    lines = text.splitlines(keepends=True)
    for start in range(first, -1, -1):
        old = "".join(lines[start:last])
        if text.count(old) == 1:
            return old, "".join([*lines[start:first], *changed])
    raise AssertionError("the whole text occurs once")


def can_run(text: str) -> bool:
    """Whether every local variable is set, at the top of the program, before anything reads it."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    local = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    known = {argument.arg for argument in function.args.args}
    for statement in function.body:
        names = sorted(
            (node for node in ast.walk(statement) if isinstance(node, ast.Name)),
            key=lambda node: (node.lineno, isinstance(node.ctx, ast.Store), node.col_offset),
        )
        for node in names:
            if isinstance(node.ctx, ast.Store):
                known.add(node.id)
            elif node.id in local and node.id not in known:
                return False
    return True


def _slug(name: str) -> str:
    return "-".join(name.lower().replace("_", " ").split())
