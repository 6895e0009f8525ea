"""One state in, one state out: `save(path, state)` and `load(path)`, for nested values without objects.

    import lastgood.models as lm
    lm.save("store", {"weights": tensor, "epoch": 3}, step=3)
    state = lm.load("store")                   lm.load("store", step=2) for another checkpoint that is kept
    state = lm.load("best.safetensors", lazy=True)         an export or a pinned copy, mapped

The path is the directory of a store, or a file that was exported or pinned. `save` returns when the checkpoint is durable;
a training loop does not want to wait for that and uses `Checkpointer`. Loading reads beside a writer and takes no lock.
"""

from __future__ import annotations

import os
from typing import Any

from lastgood.core import OtherRun, Record, Store, StoreError

from .capture import BoundaryCopy
from .collector import without_collecting
from .encode import Encoded, encode
from .exports import JOB_META, META, read_file, refuse_lazy_on_a_store
from .reading import read_state
from .room import make_room, open_or_create

__all__ = ["META", "load", "save"]


def save(path: str | os.PathLike[str], state: Any, step: int = 0, *, keep: int = 2) -> Record:
    """Save nested plain values and return when they are durable. Makes the store when there is none.

    An existing store keeps its sizes and its run. Raises NotPlainData, naming the key path, and OtherRun for the store of a
    training job, which could not be resumed from this; both before anything is written.
    """
    with without_collecting():
        return _save(path, encode(state), step, keep)


def _save(path: str | os.PathLike[str], snapshot: Encoded, step: int, keep: int) -> Record:
    with open_or_create(path, total_bytes=snapshot.total_bytes, keep=keep) as store:
        newest = store.newest()
        if newest is not None and newest.meta == JOB_META:
            raise OtherRun(
                f"{store.path} holds a training job, at step {newest.step}, saved by Checkpointer: give another path"
            )
        store.continue_run()
        make_room(store, snapshot.total_bytes)
        return BoundaryCopy().begin(store, snapshot, step=step, meta=META).wait()


def load(path: str | os.PathLike[str], step: int | None = None, *, lazy: bool = False) -> Any:
    """The newest whole state in the store at `path`, or that of `step`; or the state in a file. Tensors come to the CPU.

    With `lazy` the tensors of a file are mapped: read when they are touched and not verified, and what is written to them
    stays in this process. A live store cannot be mapped. Raises NoStore (no store, nothing saved yet, or no checkpoint of
    that step: the message lists those there are), NothingUsable when what was saved is damaged, NotAState when something
    else than a state was saved.
    """
    if isinstance(path, str | os.PathLike) and os.path.isfile(path):
        found = read_file(os.fspath(path), lazy=lazy)
        if step is not None and step != found.step:
            raise StoreError(f"{os.fspath(path)} is of step {found.step}, not {step}")
        return found.decoded.state
    if lazy and isinstance(path, str | os.PathLike):
        with Store.open(path, read_only=True):
            refuse_lazy_on_a_store(os.fspath(path))
    with Store.open(path, read_only=True) as store:
        return read_state(store, step)[1].state
