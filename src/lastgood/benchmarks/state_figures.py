"""All figures of training state in one run: `lastgood bench state`. Each is a ratio of two measurements taken here.

tiny_save_speedup    100,000 tiny tensors: torch.save + fsync over save until durable
tiny_load_speedup    … torch.load over load with verification
tiny_descriptors     descriptors in use that the number of tensors adds: 0
bytes_over_payload   256 MB in 100 tensors: bytes of the checkpoint's record and payload over the tensors' own
load_over_raw        … loading with verification over reading the same bytes into fresh memory with plain calls
skeleton_share       … time to encode the skeleton over the time of the whole save
peak_over_arena      … memory that saving needs at its peak over the staging arena
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import lastgood.models as models
from lastgood.core import Store, WrongGeometry
from lastgood.models.encode import encode

from . import raw
from .lazy import measure_lazy
from .stopping import scratch

MEGABYTE = raw.MEGABYTE
CHUNK = 4 * MEGABYTE
Progress = Callable[[str], None]

TARGETS = {
    "tiny_save_speedup": "at least 8",
    "tiny_load_speedup": "at least 8",
    "bytes_over_payload": "at most 1.01",
    "load_over_raw": "at least 0.8",
    "lazy_over_boundary": "at most 0.15",
    "arena_allocations": "1",
    "peak_over_arena": "at most 1.05",
    "skeleton_share": "under 0.01",
    "tiny_descriptors": "0",
}


def state_figures(parent: str | None, *, quick: bool, progress: Progress) -> dict[str, Any]:
    """Measure everything in a scratch directory under `parent`; the figures by the names that `--json` prints."""
    with scratch("lastgood-bench-", parent) as directory:
        needed = 3 * 2**30
        if shutil.disk_usage(directory).free < needed:
            raise WrongGeometry(f"{directory}: the benchmark needs {needed:,} bytes of disk; give another --directory")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            models.save(os.path.join(directory, "warm"), {"compiled": torch.ones(1)})
            progress("many tiny tensors")
            figures = tiny_figures(directory, 1 if quick else 3)
            progress("a few large tensors")
            figures.update(large_figures(directory, 5 if quick else 11))
            progress("peak memory")
            figures["peak_over_arena"] = peak_over_arena(directory)
        finally:
            torch.set_num_threads(threads)
        progress("lazy capture")
        figures.update(measure_lazy(quick=quick))
        return figures


def seconds(function: Callable[[], Any]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def tiny_figures(directory: str, repetitions: int) -> dict[str, float]:
    """Saving and loading 100,000 tensors of three numbers, against torch's own."""
    state = {f"blocks.{number // 100}.p{number % 100}": torch.full((3,), float(number)) for number in range(100_000)}
    path, plain = os.path.join(directory, "tiny"), os.path.join(directory, "tiny.pt")

    def torch_save() -> None:
        with open(plain, "wb") as file:
            torch.save(state, file)
            file.seek(0, os.SEEK_CUR)  # empties Python's buffer
            os.fsync(file.fileno())

    models.save(path, state)  # makes the store: a program does that once
    descriptors = len(os.listdir("/proc/self/fd"))
    saves, loads = [], []
    for step in range(repetitions):
        ours = seconds(lambda step=step: models.save(path, state, step=step + 1))  # type: ignore[misc]
        saves.append(seconds(torch_save) / ours)
        ours = seconds(lambda: models.load(path))
        loads.append(seconds(lambda: torch.load(plain, weights_only=True)) / ours)
    return {
        "tiny_save_speedup": statistics.median(saves),
        "tiny_load_speedup": statistics.median(loads),
        "tiny_descriptors": len(os.listdir("/proc/self/fd")) - descriptors,
    }


def large_figures(directory: str, repetitions: int) -> dict[str, float]:
    """256 MB in 100 tensors: bytes on the medium, loading, and what encoding costs."""
    state = {f"tensor.{number}": torch.rand(256 * MEGABYTE // 400) for number in range(100)}
    held = sum(tensor.nbytes for tensor in state.values())
    path = os.path.join(directory, "large")
    models.save(path, state)
    saving = statistics.median(seconds(lambda: models.save(path, state)) for _ in range(3))
    encoding = statistics.median(seconds(lambda: encode(state)) for _ in range(5))
    with Store.open(path, read_only=True) as store:
        record = store.records()[0]
    slot = os.path.join(path, f"slot-{record.slot:04d}")
    ratios = []
    for _ in range(repetitions):
        limit = seconds(lambda: raw_read(slot, record.payload_offset, record.payload_bytes))
        ratios.append(limit / seconds(lambda: models.load(path)))
    return {
        "bytes_over_payload": (record.payload_offset + record.payload_bytes) / held,
        "load_over_raw": statistics.median(ratios),
        "skeleton_share": encoding / saving,
        "save_seconds": saving,
    }


def raw_read(path: str, offset: int, length: int) -> None:
    """Read into memory that nobody has used before, as loading must."""
    descriptor = raw.open_direct(path, offset + length)
    try:
        into = raw.aligned_memory(-(-length // 4096) * 4096)
        for start in range(0, into.size, CHUNK):
            os.preadv(descriptor, [into[start : start + CHUNK].data], offset + start)
    finally:
        os.close(descriptor)


PEAK_PROGRAM = """
import sys, torch, lastgood.models as lm

def now(word):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(word))

torch.set_num_threads(1)
state = {f"tensor.{n}": torch.rand(256 * 2**20 // 400) for n in range(100)}
lm.save(sys.argv[1] + "/warm-child", {"x": torch.ones(10)})
with lm.Checkpointer(sys.argv[1] + "/peak", state, every=1, rng=False, in_flight=2, keep=1) as ckpt:
    before = now("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    for step in range(6):
        ckpt.save(step)
    arena = ckpt._store.staging_bytes
print((now("VmHWM") - before) / arena)
"""


def peak_over_arena(directory: str) -> float:
    """Extra resident memory at the peak of six saves, over the arena; in a process of its own."""
    done = subprocess.run([sys.executable, "-c", PEAK_PROGRAM, directory], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))
