"""The contracts are strong: every mutant of every rule breaks one of them. "Confirmed, but of what?" """

from __future__ import annotations

import ast
import os

import pytest

from proofs import mutants


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="the worker turns the JIT off by itself")
@pytest.mark.parametrize("rule", mutants.rule_names())
def test_every_mutant_of_a_rule_is_refuted(rule: str) -> None:
    count, surviving = mutants.survivors([rule])
    assert [mutant.name for mutant in surviving] == []
    assert count >= 1


def test_mutants_are_different_programs() -> None:
    for rule in mutants.rule_names():
        sources = [mutant.source for mutant in mutants.mutants_of(rule)]
        assert len(sources) == len(set(sources))
        assert all(ast.parse(source) for source in sources)


def test_a_rule_that_no_claim_uses_is_noticed() -> None:
    """Else a new rule would come in unproved, and nobody would see it."""
    assert all(mutants.users_of(rule) for rule in mutants.rule_names())
