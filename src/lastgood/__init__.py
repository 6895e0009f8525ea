"""lastgood: frequent checkpoints, and after any crash the newest complete one, whole.

    from lastgood import Store          # bytes: the persistence core, needs numpy and numba
    from lastgood import Checkpointer   # training: torch state in and out of it, needs `lastgood[torch]`

This is only the door. Each name is fetched from its room on first use, so that `import lastgood` costs next to
nothing and loads neither numba nor torch.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastgood.core import (
        Damaged,
        FileReport,
        FormatTooNew,
        NoStore,
        NotAStore,
        NothingUsable,
        OtherRun,
        Record,
        SaveFailed,
        SaveSkipped,
        Saving,
        Statistics,
        Store,
        StoreClosed,
        StoreError,
        StoreExists,
        StoreInUse,
        Ticket,
        WrongGeometry,
    )
    from lastgood.models import Checkpointer

__version__ = "0.1.0"

__all__ = [
    "Checkpointer",
    "Damaged",
    "FileReport",
    "FormatTooNew",
    "NoStore",
    "NotAStore",
    "NothingUsable",
    "OtherRun",
    "Record",
    "SaveFailed",
    "SaveSkipped",
    "Saving",
    "Statistics",
    "Store",
    "StoreClosed",
    "StoreError",
    "StoreExists",
    "StoreInUse",
    "Ticket",
    "WrongGeometry",
]

_ROOMS = ("core", "models", "crashsim")
_HOME = {name: "core" for name in __all__} | {"Checkpointer": "models"}


def __getattr__(name: str) -> object:
    if name not in _ROOMS and name not in _HOME:
        raise AttributeError(f"module 'lastgood' has no attribute {name!r}")
    try:
        room = importlib.import_module(f"lastgood.{_HOME.get(name, name)}")
        found: object = room if name in _ROOMS else getattr(room, name)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        # Without `from None` the one line that helps would stand below a page of somebody else's traceback.
        raise ImportError(f"lastgood.{name} needs PyTorch: pip install 'lastgood[torch]'") from None
    globals()[name] = found  # this function is not asked again
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
