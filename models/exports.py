"""States in and out of files: `export` and `import_into`, and what `load` does with a file instead of a store.

    form             suffix            what comes back
    state file       .lastgood         everything, with digests (`state_file.py`); the only one a pin is made in
    safetensors      .safetensors      everything but strides; any reader of that form finds the tensors by name
    torch            .pt .pth          what `torch.load(weights_only=True)` lets through; changes are told

A file is told by how it begins, not by its name; only writing goes by the suffix.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from lastgood.core import Record, Store, StoreError

from .decode import Decoded
from .encode import encode
from .errors import NotAState, NotExportable
from .reading import read_pieces, read_state
from .room import make_room, open_or_create
from .safetensors_file import read_safetensors, write_safetensors
from .state_file import SUFFIX, is_state_file, mapped, open_state_file, write_copy, write_payload
from .torch_file import read_torch_file, write_torch_file

META = b"lastgood.models state 1"
"""What a record says of its payload, for people who look into a store."""

JOB_META = b"lastgood.models job 1"
"""The same, of a training job's: more than the state is in it, and `lm.save` does not go on with it."""

TORCH_SUFFIXES = (".pt", ".pth")
SAFETENSORS = ".safetensors"
FORMS = (SUFFIX, SAFETENSORS, *TORCH_SUFFIXES)


@dataclass(frozen=True)
class Exported:
    """What an export wrote: the file, the step it is of, and each value that had to be changed for this form."""

    path: str
    step: int
    bytes: int
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What a file held."""

    decoded: Decoded
    step: int
    saved_at_ns: int
    says_step: bool = True
    """Otherwise it is 0 because there must be one."""


def export(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    step: int | None = None,
    only: str | None = None,
    replace: bool = False,
) -> Exported:
    """Write the newest checkpoint of a store (or that of `step`) into a file; the suffix of `out` says the form.

    `only="model"` writes that part of the state alone, under its own names. The file appears whole or not at all, and an
    existing one is kept unless `replace`. Raises NoStore, NothingUsable, NotExportable, FileExistsError or OSError.
    """
    out = os.fspath(out)
    form = os.path.splitext(out)[1]
    if form not in FORMS:
        raise NotExportable(f"{out}: give a name that ends in one of {', '.join(FORMS)}: it says the form")
    if not replace and os.path.lexists(out):
        raise FileExistsError(17, "File exists; give another name, or ask for it to be replaced", out)
    with Store.open(path, read_only=True) as store:
        if form == SUFFIX and only is None:
            record = _copy(store, step, out, replace)
            return Exported(out, record.step, os.path.getsize(out), ())
        record, decoded = read_state(store, step)
    state, extra = decoded.state, decoded.extra
    if only is not None:
        state, extra = part_of(state, only), None
    changes: list[str] = []
    if form == SAFETENSORS:
        facts = {"step": record.step, "saved_at_ns": record.saved_at_ns}
        write_safetensors(out, state, extra, facts, replace=replace)
    elif form == SUFFIX:
        buffers = encode(state).buffers()
        write_payload(buffers, out, step=record.step, saved_at_ns=record.saved_at_ns, replace=replace)
    else:
        changes = write_torch_file(out, state, replace=replace)
    return Exported(out, record.step, os.path.getsize(out), tuple(changes))


def _copy(store: Store, step: int | None, out: str, replace: bool) -> Record:
    """Copy the payload as it is, the newest whole one; what is not whole is passed over."""
    record, _ = store.read_with_record(step=step)
    copy_out(store, record, out, replace=replace)
    return record


def copy_out(store: Store, record: Record, out: str, *, replace: bool = False) -> None:
    """Copy one checkpoint of an open store into a state file, verified. Raises Damaged when its slot was used again."""
    write_copy(record, store.chunks(record), out, replace=replace)


def part_of(state: Any, keys: str) -> Any:
    """The part of a state that dotted keys lead to; a key may hold dots itself."""
    found, path = state, keys
    while path:
        if not isinstance(found, dict):
            raise NotExportable(f"only={keys!r}: the state has no such part")
        fitting = [key for key in found if isinstance(key, str) and (path == key or path.startswith(key + "."))]
        if not fitting:
            raise NotExportable(f"only={keys!r}: no such part; there are {', '.join(map(repr, list(found)[:8]))}")
        key = max(fitting, key=len)
        found, path = found[key], path[len(key) + 1 :]
    return found


def read_file(path: str, *, lazy: bool = False) -> Found:
    """The state in a file of any of the forms. Raises NotAState, Damaged, FormatTooNew or OSError."""
    changed_ns = os.stat(path).st_mtime_ns
    if is_state_file(path):
        source = open_state_file(path)
        decoded = mapped(source) if lazy else read_pieces(source.chunks(), source.total_bytes)
        return Found(decoded, source.step, source.saved_at_ns)
    if is_torch_file(path):
        return Found(Decoded(read_torch_file(path, lazy=lazy), None), 0, changed_ns, says_step=False)
    decoded, facts = read_safetensors(path, lazy=lazy)
    return Found(decoded, facts.get("step", 0), facts.get("saved_at_ns", changed_ns), "step" in facts)


def is_torch_file(path: str) -> bool:
    """Whether the file begins as torch's do, today's or those of old."""
    with open(path, "rb") as file:
        return file.read(2) in (b"PK", b"\x80\x02")


def import_into(
    file: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    new_run: bool = False,
    keep: int = 2,
) -> Record:
    """Save the state in a file into a store, made when there is none, and return when it is durable.

    The step is the one the file was saved at, or `step`: a torch file says none, and is step 0 without. Nobody's file but
    ours has random streams: a Checkpointer goes on from others with `rng=False`. Raises OtherRun when the store holds
    checkpoints, unless `new_run`; NotAState for a file that is none of ours, safetensors or a torch file of plain values.
    """
    return save_found(found_in(os.fspath(file)), path, step=step, new_run=new_run, keep=keep)


def found_in(file: str) -> Found:
    """What an import reads. Raises NotAState or OSError."""
    if os.path.isdir(file):
        raise NotAState(f"{file} is a directory: give a file; a store is exported first")
    return read_file(file)


def save_found(
    found: Found, path: str | os.PathLike[str], *, step: int | None = None, new_run: bool = False, keep: int = 2
) -> Record:
    """What an import does with it."""
    snapshot = encode(found.decoded.state, extra=found.decoded.extra)
    with open_or_create(path, total_bytes=snapshot.total_bytes, keep=keep, new_run=new_run) as store:
        make_room(store, snapshot.total_bytes)
        meta = META if found.decoded.extra is None else JOB_META
        return store.save(list(snapshot.buffers()), step=found.step if step is None else step, meta=meta).wait()


def refuse_lazy_on_a_store(path: str) -> None:
    """Raise StoreError: the slots of a store are used again while somebody looks at a mapping of them."""
    raise StoreError(
        f"{path} is a live store, whose slots are used again: export it (lastgood export) or pin a step, and map that"
    )
