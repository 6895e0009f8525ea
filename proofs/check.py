"""The gate: run every claim and its twin, print what the tools said, and fail unless each said the expected word.

    python -m proofs.check                  every claim; exit status 0 when all stand, 1 when one does not
    python -m proofs.check --only NAME      one claim (may be given again)
    python -m proofs.check --json           one JSON object on stdout and nothing else

Exit status 2: an unknown name, or a tool that is missing or has another version than `constraints.txt` says. A version
matters: a newer solver may answer "not confirmed" to what an older one confirmed, and the other way round.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
METHODS = {
    "crosshair": ("proofs.crosshair_tool", ("crosshair-tool", "z3-solver")),
    "words": ("proofs.z3_tool", ("z3-solver", "cvc5")),
    "induction": ("proofs.protocol_tool", ("z3-solver", "cvc5")),
    "search": ("proofs.protocol_tool", ("z3-solver", "cvc5")),
    "exhaustive": ("proofs.trial_tool", ("numba", "llvmlite")),
    "refinement": ("proofs.trial_tool", ("z3-solver",)),
    "comparison": ("proofs.trial_tool", ("numba", "llvmlite")),
    "litmus": ("proofs.trial_tool", ("numba", "llvmlite")),
    "instructions": ("proofs.trial_tool", ("numba", "llvmlite")),
}
"""Each method's module, which has `check(claims)` and yields one verdict a claim, and the packages that it needs."""


class CannotCheck(Exception):
    """Nothing was checked, for the reason given in one line."""


def pinned_versions(constraints: Path = ROOT / "constraints.txt") -> dict[str, str]:
    """The exact versions that the project is checked with."""
    try:
        lines = constraints.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CannotCheck(f"cannot read the versions to check with: {constraints}: {error.strerror}") from error
    return dict(found.groups() for line in lines if (found := re.match(r"([\w.-]+)==([\w.+!-]+)", line)))  # type: ignore[misc]


def require(packages: Iterable[str], pinned: dict[str, str]) -> None:
    """Refuse to go on without these packages in the versions of `constraints.txt`."""
    for package in packages:
        wanted = pinned.get(package)
        if wanted is None:
            raise CannotCheck(f"constraints.txt names no version of {package}")
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            raise CannotCheck(f"{package} is not installed; run: pip install {package}=={wanted}") from None
        if version != wanted:
            raise CannotCheck(f"{package} {version} is installed; the claims need: pip install {package}=={wanted}")


def require_this_tree() -> None:
    """Refuse to check another `lastgood` than the one beside this folder."""
    if str(ROOT / "src") not in sys.path:
        sys.path.insert(0, str(ROOT / "src"))
    try:
        rules = importlib.import_module("lastgood.core.rules")
    except ImportError as error:
        raise CannotCheck(f"the core cannot be imported: {error}") from error
    found = Path(rules.__file__ or "").resolve()
    if found != (ROOT / "core" / "rules.py").resolve():
        raise CannotCheck(f"the core is imported from {found.parent}; run this from the root of the repository")


def chosen(names: Sequence[str]) -> list[Any]:
    """The claims with these names, or all of them."""
    from .ledger import CLAIMS, claim_named

    for name in names:
        if claim_named(name) is None:
            known = ", ".join(claim.name for claim in CLAIMS)
            raise CannotCheck(f"there is no claim named {name}; there are: {known}")
    return [claim for claim in CLAIMS if not names or claim.name in names]


def verdicts(claims: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Each claim with its verdict, method by method. A tool that says nothing about a claim has not confirmed it."""
    from .claim import Verdict

    for method, (module, _) in METHODS.items():
        of_method = [claim for claim in claims if claim.method == method]
        said = importlib.import_module(module).check(of_method) if of_method else iter(())
        for claim in of_method:
            verdict = next(said, None)
            if verdict is None or verdict.name != claim.name:
                verdict = Verdict(claim.name, False, False, 0.0, "the tool said nothing")
            yield claim, verdict


def as_json(results: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """The results as one object."""
    return {
        "ok": all(verdict.ok for _, verdict in results),
        "claims": [
            {
                "name": claim.name,
                "statement": claim.statement,
                "promises": list(claim.promises),
                "method": claim.method,
                "bound": claim.bound,
                "strength": claim.strength,
                "twin": claim.twin,
                "twin_refuted": verdict.twin_refuted,
                "example": verdict.example,
                "seconds": round(verdict.seconds, 3),
                "said": verdict.said,
                "skipped": verdict.skipped,
                "ok": verdict.ok,
            }
            for claim, verdict in results
        ],
    }


def run(names: Sequence[str], json_wanted: bool) -> int:
    """Check the claims and print the results; the exit status."""
    claims = chosen(names)
    pinned = pinned_versions()
    for claim in claims:
        if claim.method not in METHODS:
            raise CannotCheck(f"{claim.name} names the tool {claim.method}, and there are only: {', '.join(METHODS)}")
        require(METHODS[claim.method][1], pinned)
    require_this_tree()
    from .table import print_table, progress

    results: list[tuple[Any, Any]] = []
    with progress(len(claims)) as step:
        for claim, verdict in verdicts(claims):
            results.append((claim, verdict))
            step(claim.name)
    if json_wanted:
        print(json.dumps(as_json(results)))
    else:
        print_table(results)
    return 0 if results and all(verdict.ok for _, verdict in results) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the gate as a command."""
    parser = argparse.ArgumentParser(prog="python -m proofs.check", description="Check every claim about the core.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="check this claim only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        return run(options.only, options.json)
    except CannotCheck as error:
        print(f"lastgood: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("lastgood: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
