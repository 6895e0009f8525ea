"""lastgood.core: bytes that survive. A store of checkpoints with several saves in flight at once.

    store = Store.create(path, slot_bytes=2**30)      or Store.open(path)
    ticket = store.save(buffers, step=7)              returns once the buffers are copied
    record = ticket.wait()                            durable now
    payload = store.read()                            the newest whole checkpoint, every byte verified

After any crash the newest complete checkpoint is found and whole. numpy and numba only; the folder can be copied into
another project under another name.
"""

from .errors import (
    Damaged,
    FormatTooNew,
    NoStore,
    NotAStore,
    NothingUsable,
    OtherRun,
    SaveFailed,
    SaveSkipped,
    StoreClosed,
    StoreError,
    StoreExists,
    StoreInUse,
    WrongGeometry,
)
from .record import Record
from .report import FileReport
from .saving import Saving
from .statistics import Statistics
from .store import Store
from .ticket import Ticket

__all__ = [
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
