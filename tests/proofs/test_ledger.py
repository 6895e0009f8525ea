"""The ledger says what is checked, the README says what the ledger says, and no contract stands outside it."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from proofs import claims_of_trials, decisions, geometry, recovery, saving, weakened, weakened_machine, words
from proofs.check import METHODS
from proofs.claim import PROMISES, STRENGTHS, Claim
from proofs.ledger import ASSUMPTIONS, CLAIMS, GUARANTEE, NOT_PROVED
from proofs.protocol.theorems import STATE_THEOREMS, STEP_THEOREMS
from proofs.protocol_mutants import MUTANTS
from proofs.protocol_tool import twins
from proofs.readme import README, with_ledger
from proofs.twins import find, weakened_version

CONTRACT_MODULES = (decisions, geometry, recovery, saving)
POST = re.compile(r"^\s*post:", re.MULTILINE)


def named(claim: Claim) -> str:
    return claim.name


def test_names_are_unique() -> None:
    names = [claim.name for claim in CLAIMS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_a_row_is_complete(claim: Claim) -> None:
    assert claim.promises
    assert set(claim.promises) <= set(PROMISES)
    assert claim.strength in STRENGTHS
    assert claim.method in METHODS
    assert claim.trusts
    assert set(claim.trusts) <= set(ASSUMPTIONS)
    assert claim.bound
    assert claim.twin


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_a_row_says_what_its_function_says(claim: Claim) -> None:
    function = getattr(importlib.import_module(claim.module), claim.function)
    assert (inspect.getdoc(function) or "").split("\n")[0] == claim.statement


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.weakens], ids=named)
def test_a_twin_takes_the_place_of_something_else(claim: Claim) -> None:
    holder, attribute = find(claim.weakens)
    assert getattr(holder, attribute) is not weakened_version(claim.twin_name)


def test_every_contract_is_in_the_ledger() -> None:
    """A contract outside the ledger would be checked by nobody, while its reader thinks that it is."""
    claimed = {(claim.module, claim.function) for claim in CLAIMS if claim.method == "crosshair"}
    written = {
        (module.__name__, name)
        for module in CONTRACT_MODULES
        for name, value in vars(module).items()
        if inspect.isfunction(value) and POST.search(value.__doc__ or "")
    }
    assert written == claimed
    for module in CONTRACT_MODULES:
        functions = [getattr(module, name) for owner, name in claimed if owner == module.__name__]
        in_functions = sum(len(POST.findall(function.__doc__)) for function in functions)
        assert len(POST.findall(inspect.getsource(module))) == in_functions


def test_every_word_claim_is_in_the_ledger() -> None:
    claimed = {claim.function for claim in CLAIMS if claim.module == words.__name__}
    assert {name for name in vars(words) if name.startswith("word_")} == claimed


def test_every_theorem_is_in_the_ledger() -> None:
    claimed = {claim.name for claim in CLAIMS if claim.module == "proofs.protocol.theorems"}
    assert claimed == {*STATE_THEOREMS, *STEP_THEOREMS}


def test_every_twin_and_assumption_is_used() -> None:
    twins = {claim.twin_name.rpartition(".")[2] for claim in CLAIMS}
    for module in (weakened, weakened_machine):
        there = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
        assert there <= twins
    mistakes = {mistake for claim in CLAIMS if not claim.weakens for mistake in claim.twin_name.split(", ")}
    assert mistakes == {mutant.name for mutant in MUTANTS}
    assert {name for claim in CLAIMS for name in claim.trusts} == set(ASSUMPTIONS)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if not claim.weakens], ids=named)
def test_every_mistake_of_a_row_breaks_its_claim(claim: Claim) -> None:
    assert all(twins(claim, mistake) for mistake in claim.twin_name.split(", "))


def test_every_promise_is_supported() -> None:
    assert {promise for claim in CLAIMS for promise in claim.promises} == set(PROMISES)


def test_the_readme_shows_the_ledger() -> None:
    text = README.read_text(encoding="utf-8")
    assert with_ledger(text) == text, "run: python -m proofs.readme"


def test_what_is_not_proved_is_as_prominent_as_what_is() -> None:
    text = README.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert "What is NOT proved" in headings
    assert "Claims" in headings
    assert headings.index("What is NOT proved") == headings.index("Claims") + 1
    assert len(NOT_PROVED) >= 5


def test_the_readme_begins_with_the_guarantee() -> None:
    assert README.read_text(encoding="utf-8").split("<!-- end -->")[0].endswith(f"{GUARANTEE}\n")
    assert "tested" in GUARANTEE
    assert "not proved" in GUARANTEE


def test_the_package_says_no_more_than_the_ledger() -> None:
    """The README's sentence on guarantees is the ledger's, word for word."""
    package = README.parent.parent / "README.md"
    assert GUARANTEE in " ".join(package.read_text(encoding="utf-8").split())


def test_what_is_tried_is_not_called_confirmed() -> None:
    assert {claim.strength for claim in claims_of_trials.TRIALS} == {"tested"}


def test_at_least_twelve_claims_are_confirmed_over_all_paths() -> None:
    confirmed = [claim for claim in CLAIMS if claim.method == "crosshair" and claim.strength == "confirmed"]
    assert len(confirmed) >= 12
