"""The instructions that the three shared operations become on x86-64: read in the machine code, not believed.

On another processor this is not looked at, and the gate says so.
"""

from __future__ import annotations

import platform
import re

import numba

from lastgood.core import atomics

from .trial_tool import Skipped

ADD, SWAP, READ = (getattr(each, "py_func", each) for each in (atomics.fetch_add, atomics.compare_swap, atomics.load))
CELLS, WORD = numba.int64[::1], numba.int64
WANTED = {
    "ADD": (r"\block\s+(xadd|inc|add)q?\b", 3),
    "SWAP": (r"\block\s+cmpxchgq?\b", 4),
    "READ": (r"\bmovq?\b", 2),
}
"""What each must contain, and how many arguments it has."""


class WrongInstructions(AssertionError):
    """The machine code is not what the claim says."""


def shared_words_use_locked_instructions() -> int:
    """Adding is `lock xadd` and swapping `lock cmpxchg` in the machine code that numba makes for this processor."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise Skipped(f"the instructions of {platform.machine()} are not known here")
    for name, (pattern, arguments) in WANTED.items():
        text = machine_code(name, arguments)
        if not re.search(pattern, text):
            raise WrongInstructions(f"{name} has no {pattern}")
    if not re.search(r"\block\s+xaddq?\b", machine_code("ADD", 3)):
        raise WrongInstructions("ADD does not give back what was there before")
    return len(WANTED)


def machine_code(name: str, arguments: int) -> str:
    """The assembly text of an operation, compiled anew."""
    types = (CELLS, *(WORD for _ in range(arguments - 1)))
    compiled = numba.njit(types)(globals()[name])
    return "\n".join(compiled.inspect_asm().values())
