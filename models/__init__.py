"""lastgood.models: training state in and out of a store.

    ckpt = Checkpointer(directory, {"model": model, "optimizer": optimizer}, every=10)
    for step in range(ckpt.restore(), steps):
        ...
        ckpt.step(step + 1)

    save(path, state, step=3); state = load(path)        any nested values, no objects needed

Needs torch; each name is fetched from its module on first use.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .checkpointer import Checkpointer
    from .copier import MovedWhileCopied
    from .errors import NotAState, NotExportable, NotKept, NotPlainData, NotRegistered, StateMismatch
    from .exports import export, import_into
    from .loader import ResumableLoader
    from .peeking import peek
    from .preemption import Preempted
    from .registry import register
    from .retention import Retention
    from .sampler import ResumableSampler
    from .save_load import load, save

_HOME = {
    "Checkpointer": "checkpointer",
    "MovedWhileCopied": "copier",
    "NotAState": "errors",
    "NotExportable": "errors",
    "NotKept": "errors",
    "NotPlainData": "errors",
    "NotRegistered": "errors",
    "Preempted": "preemption",
    "ResumableLoader": "loader",
    "ResumableSampler": "sampler",
    "Retention": "retention",
    "StateMismatch": "errors",
    "export": "exports",
    "import_into": "exports",
    "load": "save_load",
    "peek": "peeking",
    "register": "registry",
    "save": "save_load",
}

__all__ = [
    "Checkpointer",
    "MovedWhileCopied",
    "NotAState",
    "NotExportable",
    "NotKept",
    "NotPlainData",
    "NotRegistered",
    "Preempted",
    "ResumableLoader",
    "ResumableSampler",
    "Retention",
    "StateMismatch",
    "export",
    "import_into",
    "load",
    "peek",
    "register",
    "save",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = found  # this function is not asked again
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
