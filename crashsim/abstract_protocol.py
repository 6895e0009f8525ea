"""The save protocol once more, as compiled code over small numbers. Checked: equal to the real programs, state for state.

A second text of `core/save.py`, for speed: a million states a second where the real programs give tens of thousands.
Two texts can differ, so tests compare the states and the moves of both within small bounds, and plant differences that
must be noticed. No step fails here, one checkpoint is kept, and nobody starts again after a crash.

A state is a row of numbers:

    started, counter, root, marked, mark's place, acknowledged, free, places …, savers …

A *place* is what can be told of one place of the medium without ever choosing a write-back: its content for certain, the
one that is read, and the set of those that may be there instead. A *saver* is where it stands, its chunks, the slot set
it saw, the tag it saw, its own tag. A tag is (sequence, slot), packed as small as the bounds allow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile, and keep the machine code for as long as no module of the model changes; NUMBA_DISABLE_JIT: stays Python.

    numba looks for changes in a function's own file only, and not in those whose functions it calls.
    """
    compiled: Any = numba.njit(cache=True, nogil=True)(function)
    if not numba.config.DISABLE_JIT:
        sources = [each.stat() for each in sorted(Path(__file__).parent.glob("abstract_*.py"))]
        compiled._cache._cache_file._source_stamp = [(each.st_mtime, each.st_size) for each in sources]
    result: Function = compiled
    return result


# The row of sizes that every kernel is handed.
SAVERS, SLOTS, SAVES, WRITERS, CHUNKS, CONTENT_BITS, SLOT_BITS, COVERS, WRONG, FIELDS, WORDS = range(11)

# What a persist covers: its own file, the whole device, or what its own thread has written.
ITS_FILE, THE_DEVICE, ITS_THREAD = range(3)

# The row of a state.
STARTED, COUNTER, ROOT, MARKED, MARK, ACKNOWLEDGED, FREE, PLACES = range(8)

# One saver, unpacked; and where it stands: what it does next.
AT, DONE, MASK, SEEN, TAG = range(5)
(IDLE, COUNT, LOOK, LOOK_IN_QUARANTINE, TAKE, WAIT_FOR_SLOT) = range(6)
(WRITE, LOOK_FOR_NEWER, PERSIST_PAYLOAD, WRITE_RECORD, PERSIST_RECORD) = range(6, 11)
(LOOK_AT_MARK, TAKE_MARK, WAIT_FOR_MARK, WRITE_MARK, PERSIST_MARK, RELEASE_MARK) = range(11, 17)
(ACKNOWLEDGE, SWAP, RELEASE_SEEN, RELEASE_OWN) = range(17, 21)
AT_BITS = 5

ABSENT, DURABLE, UNDER_WAY = 0, 1, 2

# Deliberate mistakes, to be added up.
NO_PAYLOAD_PERSIST, NO_RECORD_PERSIST, SLOT_ONLY_COMPARE, SWAP_OVER_NEWER = 1, 2, 4, 8

# What a move answers: it cannot be made, it can, or what it breaks.
NO_MOVE, HOLDS, NEWEST_LOST, WRONG_PAYLOAD, WENT_BACK, REUSED, LEAKED, MARK_LOST = range(8)


# --- places ----------------------------------------------------------------------------------------------------------


@kernel
def written(place: int, content: int, bits: int) -> int:
    """A place after a write: what it may have held until now, it may still hold."""
    limit = (1 << bits) - 1
    base, last, before = place & limit, place >> bits & limit, place >> 2 * bits
    before = (before | 1 << last >> 1) & ~(1 << base >> 1) & ~(1 << content >> 1)
    return base | content << bits | before << 2 * bits


@kernel
def persisted(place: int, bits: int) -> int:
    """A place after a persist: what is read is there for certain."""
    last = place >> bits & (1 << bits) - 1
    return last | last << bits


@kernel
def possible(place: int, bits: int) -> int:
    """The set of contents that a power loss can leave at a place."""
    limit = (1 << bits) - 1
    return place >> 2 * bits << 1 | 1 << (place & limit) | 1 << (place >> bits & limit)


@kernel
def persist(state: np.ndarray, slot: int, sizes: np.ndarray) -> None:
    """A saver persists its slot's file, or the mark's for a slot beyond the last, and whatever the medium does with it."""
    bits, covers, per_slot = sizes[CONTENT_BITS], sizes[COVERS], 1 + sizes[CHUNKS]
    for each in range(sizes[SLOTS]):
        if each == slot or covers == THE_DEVICE:
            first = PLACES + each * per_slot
            for place in range(first, first + (1 if covers == ITS_THREAD else per_slot)):
                state[place] = persisted(state[place], bits)
    if slot == sizes[SLOTS] or covers == THE_DEVICE:
        state[MARK] = persisted(state[MARK], 1)


# --- savers ----------------------------------------------------------------------------------------------------------


@kernel
def chunk_bits(sizes: np.ndarray) -> int:
    """Bits that tell how far a saver's writers are: chunks finished, and above them chunks that are not yet persisted."""
    return int(sizes[CHUNKS]) * (2 if sizes[COVERS] == ITS_THREAD else 1)


@kernel
def saver_of(at: int, done: int, mask: int, seen: int, tag: int, sizes: np.ndarray) -> int:
    """One saver as a number."""
    packed = (tag << sizes[CONTENT_BITS] + sizes[SLOT_BITS] | seen) << sizes[SLOTS] | mask
    return int(packed << chunk_bits(sizes) | done) << AT_BITS | at


@kernel
def tag_of(packed: int, sizes: np.ndarray) -> int:
    """The tag of a saver, given as a number."""
    return int(packed >> AT_BITS + chunk_bits(sizes) + sizes[SLOTS] + sizes[CONTENT_BITS] + sizes[SLOT_BITS])


@kernel
def advance(state: np.ndarray, mine: np.ndarray, saver: int, choice: int, sizes: np.ndarray) -> int:
    """Let one saver do what it does next, in place. `choice` is a chunk to write, or one beyond the last: be overtaken.

    `mine` is room for the saver unpacked.
    """
    index = PLACES + sizes[SLOTS] * (1 + sizes[CHUNKS]) + saver
    tag_bits, packed = sizes[CONTENT_BITS] + sizes[SLOT_BITS], state[index]
    for field, bits in (
        (AT, AT_BITS),
        (DONE, chunk_bits(sizes)),
        (MASK, sizes[SLOTS]),
        (SEEN, tag_bits),
        (TAG, tag_bits),
    ):
        mine[field] = packed & (1 << bits) - 1
        packed >>= bits
    at = mine[AT]
    if at == WRITE:
        answer = write(state, mine, choice, sizes)
    elif choice > 0:
        answer = NO_MOVE
    elif at < WRITE:
        answer = acquire(state, mine, sizes)
    elif at < ACKNOWLEDGE:
        answer = make_durable(state, mine, sizes)
    else:
        answer = publish(state, mine, sizes)
    state[index] = 0
    if mine[AT] != IDLE:
        state[index] = saver_of(mine[AT], mine[DONE], mine[MASK], mine[SEEN], mine[TAG], sizes)
    return answer


@kernel
def acquire(state: np.ndarray, mine: np.ndarray, sizes: np.ndarray) -> int:
    """From nothing to a slot: load the root, take a sequence, take the lowest free slot."""
    at = mine[AT]
    if at == IDLE:
        if state[STARTED] == sizes[SAVES]:
            return NO_MOVE
        state[STARTED] += 1
        mine[SEEN], mine[AT] = state[ROOT], COUNT
    elif at == COUNT:
        state[COUNTER] += 1
        mine[TAG], mine[AT] = state[COUNTER] << sizes[SLOT_BITS], LOOK
    elif at == LOOK:
        mine[MASK] = state[FREE]
        mine[AT] = TAKE if state[FREE] else LOOK_IN_QUARANTINE
    elif at == LOOK_IN_QUARANTINE:
        mine[AT] = WAIT_FOR_SLOT
    elif at == WAIT_FOR_SLOT:
        mine[AT] = LOOK
    else:
        mask, slot = mine[MASK], 0
        mine[MASK], mine[AT] = 0, LOOK
        if state[FREE] == mask:
            while not mask >> slot & 1:
                slot += 1
            state[FREE] -= 1 << slot
            mine[TAG] |= slot
            mine[AT] = WRITE
    return HOLDS


@kernel
def write(state: np.ndarray, mine: np.ndarray, choice: int, sizes: np.ndarray) -> int:
    """One writer writes its chunk, or persists it where it has to; or the save is told that it was overtaken."""
    chunks, bits, per_thread = sizes[CHUNKS], sizes[CONTENT_BITS], sizes[COVERS] == ITS_THREAD
    tag, done = mine[TAG], mine[DONE]
    slot, sequence = tag & (1 << sizes[SLOT_BITS]) - 1, tag >> sizes[SLOT_BITS]
    if choice == chunks:
        if state[ROOT] <= tag:
            return NO_MOVE
        mine[DONE], mine[SEEN], mine[AT] = 0, 0, RELEASE_OWN
        return HOLDS
    in_hand = 0
    for chunk in range(choice):
        in_hand += 1 - (done >> chunk & 1)
    if done >> choice & 1 or in_hand >= sizes[WRITERS]:
        return NO_MOVE
    place = PLACES + slot * (1 + chunks) + 1 + choice
    if per_thread and done >> chunks + choice & 1:
        state[place] = persisted(state[place], bits)
        done += (1 << choice) - (1 << chunks + choice)
    else:
        state[place] = written(state[place], sequence, bits)
        done += 1 << (chunks + choice if per_thread else choice)
    mine[DONE] = done
    if done == (1 << chunks) - 1:
        mine[DONE], mine[AT] = 0, LOOK_FOR_NEWER
    return HOLDS


@kernel
def make_durable(state: np.ndarray, mine: np.ndarray, sizes: np.ndarray) -> int:
    """From a written payload to a durable record, and the mark that says there is one."""
    at, wrong, tag, found = mine[AT], sizes[WRONG], mine[TAG], state[MARKED]
    slot, sequence = tag & (1 << sizes[SLOT_BITS]) - 1, tag >> sizes[SLOT_BITS]
    if at == LOOK_FOR_NEWER:
        mine[AT] = WRITE_RECORD if wrong & NO_PAYLOAD_PERSIST else PERSIST_PAYLOAD
        if state[ROOT] > tag:
            mine[SEEN], mine[AT] = 0, RELEASE_OWN
    elif at in (PERSIST_PAYLOAD, PERSIST_RECORD):
        persist(state, slot, sizes)
        mine[AT] = WRITE_RECORD if at == PERSIST_PAYLOAD else LOOK_AT_MARK
    elif at == WRITE_RECORD:
        place = PLACES + slot * (1 + sizes[CHUNKS])
        state[place] = written(state[place], sequence, sizes[CONTENT_BITS])
        mine[AT] = LOOK_AT_MARK if wrong & NO_RECORD_PERSIST else PERSIST_RECORD
    elif at == LOOK_AT_MARK:
        mine[AT] = TAKE_MARK if found == ABSENT else ACKNOWLEDGE if found == DURABLE else WAIT_FOR_MARK
    elif at == TAKE_MARK:
        mine[AT] = WRITE_MARK if found == ABSENT else ACKNOWLEDGE if found == DURABLE else WAIT_FOR_MARK
        if found == ABSENT:
            state[MARKED] = UNDER_WAY
    elif at == WAIT_FOR_MARK:
        mine[AT] = LOOK_AT_MARK
    elif at == WRITE_MARK:
        state[MARK] = written(state[MARK], 1, 1)
        mine[AT] = PERSIST_MARK
    elif at == PERSIST_MARK:
        persist(state, sizes[SLOTS], sizes)
        mine[AT] = RELEASE_MARK
    else:
        state[MARKED], mine[AT] = DURABLE, ACKNOWLEDGE
    return HOLDS


@kernel
def publish(state: np.ndarray, mine: np.ndarray, sizes: np.ndarray) -> int:
    """Acknowledge, swap the root, release what fell out."""
    at, wrong, tag, seen, found = mine[AT], sizes[WRONG], mine[TAG], mine[SEEN], state[ROOT]
    low = (1 << sizes[SLOT_BITS]) - 1
    if at == ACKNOWLEDGE:
        state[ACKNOWLEDGED] = max(state[ACKNOWLEDGED], tag)
        mine[AT] = SWAP if seen < tag else RELEASE_OWN
    elif at == SWAP:
        same = found == seen
        if wrong & SLOT_ONLY_COMPARE:
            same = found & low == seen & low and (found == 0) == (seen == 0)
        if same:
            state[ROOT] = tag
            mine[AT] = RELEASE_SEEN if seen else IDLE
            return HOLDS if tag > found else WENT_BACK
        mine[SEEN] = found
        if found > tag and not wrong & SWAP_OVER_NEWER:
            mine[AT] = RELEASE_OWN
    else:
        bit = 1 << ((tag if at == RELEASE_OWN else seen) & low)
        if state[FREE] & bit:
            return LEAKED
        state[FREE] += bit
        mine[AT] = IDLE
    if mine[AT] == RELEASE_OWN:
        mine[SEEN] = 0
    return HOLDS
