"""Mutants of the core's rules: each with one operator, comparison or number changed. "Confirmed, but of what?"

A contract that many wrong versions of a rule satisfy confirms little. So every rule is taken apart: one operator after
another is exchanged, every number moved by one, every name of an outcome exchanged for another; and for each mutant some
claim that uses the rule must be refuted with an example. `python -m proofs.mutants` prints those that survive.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lastgood.core import rules

from .claim import Claim
from .crosshair_tool import Job, Worker
from .ledger import CLAIMS
from .twins import find

SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv, ast.Add),
    ast.FloorDiv: (ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
}
OUTCOMES = ("PUBLISHED", "SUPERSEDED", "SKIPPED", "FAILED", "LOOK_AGAIN")
ENDLESS = "lowest_bit: mask = mask // 2 ->"
"""Mutants of the one loop's own progress may never end. No contract says that a function ends, so they are not tried."""
SECONDS = 4.0
"""For one condition of one mutant."""


@dataclass(frozen=True)
class Mutant:
    """One changed rule."""

    rule: str
    change: str
    source: str

    @property
    def name(self) -> str:
        """The rule and the change, for reports."""
        return f"{self.rule}: {self.change}"


def rule_names() -> list[str]:
    """Every rule of the core."""
    return [
        name for name, value in vars(rules).items() if inspect.isfunction(value) and value.__module__ == rules.__name__
    ]


def mutants_of(rule: str) -> Iterator[Mutant]:
    """Every mutant of one rule."""
    function = ast.parse(textwrap.dedent(inspect.getsource(getattr(rules, rule)))).body[0]
    assert isinstance(function, ast.FunctionDef), "rules are functions"
    function.decorator_list = []
    if ast.get_docstring(function):
        function.body = function.body[1:]
    places = list(ast.walk(function))
    for place, node in enumerate(places):
        for change in changes(node):
            mutant = copy.deepcopy(function)
            target = list(ast.walk(mutant))[place]
            before = ast.unparse(mutant.body)
            change(target)
            after = ast.unparse(mutant.body)
            shown = " | ".join(
                f"{old.strip()} -> {new.strip()}"
                for old, new in zip(before.splitlines(), after.splitlines(), strict=True)
                if old != new
            )
            yield Mutant(rule, shown, "from __future__ import annotations\n" + ast.unparse(mutant))


def changes(node: ast.AST) -> Iterator[Callable[[ast.AST], None]]:
    """The ways to change this one node."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in SWAPS.get(type(operator), ()):
                yield lambda target, place=place, other=other: target.ops.__setitem__(place, other())
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        for other in SWAPS.get(type(node.op), ()):
            yield lambda target, other=other: setattr(target, "op", other())
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield lambda target: setattr(target, "value", target.value + 1)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id in OUTCOMES:
        other_name = OUTCOMES[(OUTCOMES.index(node.value.id) + 1) % len(OUTCOMES)]
        yield lambda target: setattr(target.value, "id", other_name)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        yield lambda target: setattr(target.func, "id", "max" if target.func.id == "min" else "min")


def users_of(rule: str) -> list[Claim]:
    """The claims that CrossHair checks and whose functions, or helpers beside them, call this rule; simple ones first."""
    calling = {rule} | {name for name in rule_names() if f"{rule}(" in inspect.getsource(getattr(rules, name))}
    users = []
    for claim in CLAIMS:
        module, _ = find(f"{claim.module}.x")
        text = inspect.getsource(getattr(module, claim.function))
        helpers = [name for name, value in vars(module).items() if inspect.isfunction(value) and f"{name}(" in text]
        text += "".join(inspect.getsource(getattr(module, name)) for name in helpers)
        if claim.method == "crosshair" and any(f"rules.{name}(" in text for name in calling):
            users.append(claim)
    return sorted(users, key=lambda claim: (claim.strength != "confirmed", claim.module))


def refuted(worker: Worker, mutant: Mutant, users: list[Claim]) -> bool:
    """Whether some claim refutes the mutant with an example."""
    for claim in users:
        target = f"{claim.module}.{claim.function}"
        weakens = f"{rules.__name__}.{mutant.rule}"
        if worker.examine(Job(target, weakens=weakens, mutant=mutant.source, seconds=SECONDS)).refuted:
            return True
    return False


def survivors(rules_to_change: Sequence[str]) -> tuple[int, list[Mutant]]:
    """How many mutants of these rules were tried, and those that no claim notices."""
    count, surviving = 0, []
    with Worker() as worker:
        for rule in rules_to_change:
            users = users_of(rule)
            for mutant in mutants_of(rule):
                if not mutant.name.startswith(ENDLESS):
                    count += 1
                    if not refuted(worker, mutant, users):
                        surviving.append(mutant)
    return count, surviving


def main() -> int:
    """Print the survivors; 1 when there are any."""
    count, surviving = survivors(rule_names())
    for mutant in surviving:
        print(mutant.name)
    print(f"{count - len(surviving)} of {count} mutants refuted")
    return 1 if surviving else 0


if __name__ == "__main__":
    sys.exit(main())
