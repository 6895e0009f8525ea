"""An interpreter that has imported the core and loaded its kernels, and forks a child for every order it gets.

A child starts in milliseconds and is in every respect a fresh process of the core: no store was ever opened here and no
thread ever started. Orders are JSON, one a line: a role and its arguments, a program and its words, or a process to ask after.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from typing import Any

import numpy as np

from lastgood.core.atomics import compare_swap, fetch_add, load
from lastgood.core.digest import copy_digest, digest
from tests.process import roles


def warm() -> None:
    """Load the machine code of every kernel, so that no child needs to."""
    cells = np.zeros(1, np.int64)
    fetch_add(cells, 0, 1)
    compare_swap(cells, 0, 1, 2)
    assert load(cells, 0) == 2
    copy_digest(np.zeros(64, np.uint8), np.zeros(64, np.uint8), digest(np.zeros(64, np.uint8)))


def redirect(out: str) -> None:
    """Give this child no input, and files for its output."""
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, f"{out}.stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, f"{out}.stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        target = os.open(path, flags, 0o666)
        os.dup2(target, descriptor)
        os.close(target)


def play(order: dict[str, Any]) -> None:
    """Take up a role and leave; what it returns goes to a file."""
    status = 1
    try:
        result = getattr(roles, order["role"])(**order["arguments"])
        with open(f"{order['out']}.result", "w") as file:
            json.dump(result, file)
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def serve() -> str:
    """Obey until the orders end. Returns in a child, with the source of the program that it is to be."""
    for line in sys.stdin:
        order = json.loads(line)
        if "poll" in order:
            pid, status = os.waitpid(order["poll"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            redirect(order["out"])
            if "program" in order:
                sys.argv = [order["program"], *order["words"]]
                with open(order["program"]) as file:
                    return file.read()
            play(order)
        print(json.dumps(pid), flush=True)
    return ""


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the background jobs of a shell ignore it
    warm()
    gc.freeze()  # children neither walk nor copy what is here already, at their end least of all
    # Here, with nothing above it: the program's names live until the interpreter ends, as those of any program do.
    exec(compile(serve(), "program", "exec"))
