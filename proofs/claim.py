"""What a claim is, and what a tool that checked it answers. The types of the ledger; checked by nothing, so kept plain.

A *claim* is one sentence about the core, with the tool that checks it, the bound within which it does, what has to be
believed besides, and a *twin*: a deliberately weakened version that the same tool must refute with a concrete example.
A claim whose twin survives says nothing, however loudly it is confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PROMISES = (
    "newest-survives",
    "never-wrong",
    "monotone",
    "no-reuse",
    "no-leak",
    "loud",
    "no-harm",
    "bounded",
)
"""The promises of the package; every claim supports at least one of them."""

STRENGTHS = {
    "confirmed": "holds for every value that the bound names, by a proof that a tool found or checked",
    "bounded": "holds for every case up to the stated size; nothing is said beyond it",
    "tested": "held in every case that was tried",
    "assumed": "believed, for the reason given",
}
"""How strong a claim is, strongest first."""


@dataclass(frozen=True)
class Claim:
    """One row of the ledger."""

    name: str
    statement: str
    promises: tuple[str, ...]
    method: str
    """The tool: a name in `check.METHODS`."""
    module: str
    """Where it is stated; its function there is the name with underscores."""
    bound: str
    strength: str
    trusts: tuple[str, ...]
    """Names in `ledger.ASSUMPTIONS`."""
    twin: str
    """What the weakened version gets wrong, in a few words."""
    weakens: str = ""
    """What the twin takes the place of, dotted: it is looked up in `weakened` as `twin_name`."""
    twin_name: str = ""

    @property
    def function(self) -> str:
        """Name of the function that states the claim."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class Verdict:
    """What a tool said of one claim and of its twin."""

    name: str
    held: bool
    twin_refuted: bool
    seconds: float
    said: str
    """One line: what was confirmed, or what the tool said in its place."""
    example: str = ""
    """The values that refute the twin."""
    details: tuple[str, ...] = field(default=())
    """The tool's own lines, when it did not say what was expected."""
    skipped: bool = False
    """It cannot be checked on this machine, for the reason that was said; nothing was confirmed or refuted."""

    @property
    def ok(self) -> bool:
        """Whether the claim stands: the tool said the expected word, of both. One that was skipped does not fail."""
        return self.skipped or (self.held and self.twin_refuted)


RULES = "lastgood.core.rules"


def contract(
    name: str,
    statement: str,
    promises: str,
    bound: str,
    twin: str,
    *,
    weakens: str,
    by: str,
    module: str = "decisions",
    strength: str = "confirmed",
    trusts: str = "solvers use machine-words",
) -> Claim:
    """One row; `promises` and `trusts` are names with spaces between them."""
    return Claim(
        name=name,
        statement=statement,
        promises=tuple(promises.split()),
        method="crosshair",
        module=f"proofs.{module}",
        bound=bound,
        strength=strength,
        trusts=tuple(trusts.split()),
        twin=twin,
        weakens=weakens if "." in weakens else f"{RULES}.{weakens}",
        twin_name=by,
    )
