"""One state in, one state out: `save(path, state)` and `load(path)`, for nested values without objects.

    import lastgood.models as lm
    lm.save("store", {"weights": tensor, "epoch": 3}, step=3)
    state = lm.load("store")                   lm.load("store", step=2) for another checkpoint that is kept

The path is the directory of a store. `save` returns when the checkpoint is durable; a training loop does not want to
wait for that and uses `Checkpointer`. Loading reads beside a writer and takes no lock.
"""

from __future__ import annotations

import os
from typing import Any

from lastgood.core import Record, Store, StoreError

from .capture import BoundaryCopy
from .decode import decode
from .encode import encode
from .room import make_room, open_or_create

META = b"lastgood.models state 1"
"""What a record says of its payload, for people who look into a store."""


def save(path: str | os.PathLike[str], state: Any, step: int = 0, *, keep: int = 2) -> Record:
    """Save nested plain values and return when they are durable. Makes the store when there is none.

    An existing store keeps its sizes and its run. Raises NotPlainData, naming the key path, before anything is written.
    """
    snapshot = encode(state)
    with open_or_create(path, total_bytes=snapshot.total_bytes, in_flight=1, keep=keep) as store:
        store.continue_run()
        make_room(store, snapshot.total_bytes)
        return BoundaryCopy().begin(store, snapshot, step=step, meta=META).wait()


def load(path: str | os.PathLike[str], step: int | None = None) -> Any:
    """The newest whole state in the store at `path`, or that of `step`. Tensors come back on the CPU.

    Raises NoStore (no store, nothing saved yet, or no checkpoint of that step: the message lists those there are),
    NothingUsable when what was saved is damaged, NotAState when something else than a state was saved.
    """
    with Store.open(path, read_only=True) as store:
        payload = store.read(step=step)
        try:
            return decode(payload).state
        except StoreError as problem:
            raise type(problem)(f"{store.path}: {problem}") from problem
