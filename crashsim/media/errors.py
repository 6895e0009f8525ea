"""How calls on files go wrong, and what each leaves: errors and short writes, one place in a program at a time. Trusted.

    write, append       ENOSPC, EDQUOT, EIO, or EINTR before anything was written: nothing changed; or a short write: a
                        first part was written, and the call says how much
    create, mkdir,      ENOSPC, EDQUOT, EIO: nothing changed
    link, rename
    unlink, truncate    EIO: nothing changed
    fsync, fdatasync    EIO, and with delayed allocation ENOSPC and EDQUOT: what the medium says of a failed persist;
                        EINTR: nothing changed, and nothing was forced

`sync` returns nothing. What the program does about it is its own affair: the calls that follow are the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from .calls import Call, Program

_NO_ROOM = ("ENOSPC", "EDQUOT")
ERRORS: dict[str, tuple[str, ...]] = {
    "write": (*_NO_ROOM, "EIO", "EINTR"),
    "append": (*_NO_ROOM, "EIO", "EINTR"),
    "create": (*_NO_ROOM, "EIO"),
    "mkdir": (*_NO_ROOM, "EIO"),
    "link": (*_NO_ROOM, "EIO"),
    "rename": (*_NO_ROOM, "EIO"),
    "unlink": ("EIO",),
    "truncate": ("EIO",),
    "fsync": (*_NO_ROOM, "EIO", "EINTR"),
    "fdatasync": (*_NO_ROOM, "EIO", "EINTR"),
    "sync": (),
}
"""The errors of each call."""

_WRITES = ("write", "append")


def outcomes(call: Call) -> Iterator[Call]:
    """Every way in which this call can go wrong."""
    for error in ERRORS[call.name]:
        yield call._replace(outcome=error)
    if call.name in _WRITES:
        for units in range(1, len(call.arguments[-1])):
            yield call._replace(outcome=str(units))


def one_fault(program: Program) -> Iterator[Program]:
    """The program with one call going wrong, for every call and every way."""
    for index, call in enumerate(program):
        for wrong in outcomes(call):
            yield (*program[:index], wrong, *program[index + 1 :])
