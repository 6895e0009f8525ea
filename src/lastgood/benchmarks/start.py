"""What starting costs: import and first save, with machine code cached and not, each in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

_CHILD = """
import json, sys, time
began = time.perf_counter()
from lastgood.core import Store
imported = time.perf_counter()
with Store.create(sys.argv[1], slot_bytes=1 << 20) as store:
    before = time.perf_counter()
    store.save(b"x" * 100_000, step=1).wait()
    after = time.perf_counter()
print(json.dumps({"import": imported - began, "first_save": after - before}))
"""


def starting(directory: str, cache: str | None) -> dict[str, float]:
    """Seconds to import the core and to make the first save durable, with numba's cache in `cache`."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        command = [sys.executable, "-c", _CHILD, os.path.join(scratch, "store")]
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    figures: dict[str, float] = json.loads(output)
    return figures


def cold_and_warm(directory: str) -> dict[str, float]:
    """Both with a cache that starts empty."""
    with tempfile.TemporaryDirectory(dir=directory) as cache:
        cold = starting(directory, cache)
        starting(directory, cache)
        warm = starting(directory, cache)
    return {
        "import_seconds": warm["import"],
        "first_save_seconds": warm["first_save"],
        "cold_import_seconds": cold["import"],
        "cold_first_save_seconds": cold["first_save"],
    }
