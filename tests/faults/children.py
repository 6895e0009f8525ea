"""Python programs run in a process of their own, where a limit, another user or a tracer can be put upon them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

PREAMBLE = """
import json, os, sys
import numpy as np
from lastgood.core import *
from lastgood.core.memory import MemoryDirectory
from tests.store.small import create, payload_of, save, check_kept, is_payload_of, SMALL

def told(call):
    "What a call raises: its class, errno, message."
    try:
        call()
    except BaseException as error:
        return [type(error).__name__, getattr(error, "errno", None), str(error)]
    return ["nothing", None, ""]

with create(MemoryDirectory()) as store:  # whatever is imported late is there before anything is forbidden
    save(store, 1)
    store.read()
"""


def environment() -> dict[str, str]:
    """That of this process, and the import paths, wherever the child starts; compiling nothing saves a second."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}


def run(program: str, *arguments: object, prefix: tuple[str, ...] = ()) -> Any:
    """Run the program after the preamble; it prints one JSON value. `prefix` is a command to run it under."""
    command = [*prefix, sys.executable, "-c", PREAMBLE + program, *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
