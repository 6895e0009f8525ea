"""The promises that a checkpoint store is judged by, and a broken one. Names as in the project's contract.

An oracle never says just "wrong": it names one of these.
"""

from __future__ import annotations

from typing import NamedTuple

NEWEST_SURVIVES = "newest-survives"
NEVER_WRONG = "never-wrong"
MONOTONE = "monotone"
NO_REUSE = "no-reuse"
NO_LEAK = "no-leak"
LOUD = "loud"
NO_HARM = "no-harm"
BOUNDED = "bounded"

PROMISES: dict[str, str] = {
    NEWEST_SURVIVES: "after a crash, recovery returns a checkpoint at least as new as every acknowledged one",
    NEVER_WRONG: "what recovery returns is byte for byte what one save was given, or it raises",
    MONOTONE: "the published sequence never goes back, in one process or across restarts",
    NO_REUSE: "a slot that holds a checkpoint still to be kept is never handed to a save",
    NO_LEAK: "at rest, every slot is free, kept or quarantined",
    LOUD: "a failed save says so, and a store that ever acknowledged one says so",
    NO_HARM: "whatever a save comes to, it leaves every checkpoint still to be kept as it was",
    BOUNDED: "nothing but the slots that the store was created with is ever handed out",
}


class Violation(NamedTuple):
    """One broken promise: what happened, in one sentence, and the crash path from the last state on, if any."""

    promise: str
    sentence: str
    crash: str = ""
    digests: str = ""
