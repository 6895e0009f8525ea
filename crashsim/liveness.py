"""Which local variables a paused generator can still read. Trusted; pinned by a test that searches without it.

Two frames of one program that stand at the same yield and agree on the variables that will still be read behave alike
from there on. Leaving out the others merges states that differ only in what nobody looks at any more.

A variable that a `for` loop assigns counts as read as long as its loop can go on: the loop's iterator lies on the
frame's stack, where nobody can see it, so the loop must run over a `range`, whose position the variable tells.
"""

from __future__ import annotations

import dis
from itertools import pairwise
from types import CodeType

_NO_FALL_THROUGH = ("RETURN", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


def live_variables(code: CodeType) -> dict[int, frozenset[str]]:
    """For each instruction's offset, the local variables whose value may be read after it.

    Backward data flow over the byte code: live before = read here + (live after − written here), to a fixed point.
    """
    instructions = list(dis.get_instructions(code))
    place_of = {instruction.offset: place for place, instruction in enumerate(instructions)}
    following = [_successors(instructions, place, place_of) for place in range(len(instructions))]
    reads, writes = zip(*(_reads_and_writes(instruction) for instruction in instructions), strict=True)
    before: list[frozenset[str]] = [frozenset()] * len(instructions)
    after: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for place in range(len(instructions) - 1, -1, -1):
            live_after = frozenset().union(*(before[each] for each in following[place]))
            live_before = reads[place] | (live_after - writes[place])
            if live_before != before[place] or live_after != after[place]:
                before[place], after[place] = live_before, live_after
                changed = True
    pinned = _loop_variables(instructions)
    return {each.offset: after[place] | pinned for place, each in enumerate(instructions)}


def _successors(instructions: list[dis.Instruction], place: int, place_of: dict[int, int]) -> list[int]:
    """Where control may go from here; exceptions end a program under test, so their handlers are left out."""
    instruction = instructions[place]
    targets = []
    if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
        targets.append(place_of[instruction.argval])
    if not instruction.opname.startswith(_NO_FALL_THROUGH) and place + 1 < len(instructions):
        targets.append(place + 1)
    return targets


def _reads_and_writes(instruction: dis.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """Local variables read and written by one instruction; a fused pair counts as reading before it writes.

    Newer interpreters fuse neighbours (`STORE_FAST_LOAD_FAST`). Counting a read too many keeps a variable alive for
    longer, which only costs merging.
    """
    name = instruction.opname
    if "_FAST" not in name:
        return frozenset(), frozenset()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    if name.startswith(("STORE_FAST_STORE", "STORE_FAST")) and "LOAD" not in name:
        return frozenset(), frozenset(names)
    if name.startswith("DELETE"):
        return frozenset(), frozenset(names)
    return frozenset(names), frozenset()


def _loop_variables(instructions: list[dis.Instruction]) -> frozenset[str]:
    """The variables that `for` loops assign."""
    found: set[str] = set()
    for loop, store in pairwise(instructions):
        if loop.opname == "FOR_ITER" and store.opname.startswith("STORE_FAST"):
            found.update(store.argval if isinstance(store.argval, tuple) else (store.argval,))
    return frozenset(found)
