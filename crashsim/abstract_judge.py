"""What the compiled model's moves and states say about the promises. Checked with the model.

A crash is judged with payload digests trusted and with them ignored, one crash deep: what crashes of recovery can do is
the explorer's to find out.
"""

from __future__ import annotations

import numpy as np

from .abstract_protocol import (
    ACKNOWLEDGE,
    ACKNOWLEDGED,
    AT_BITS,
    CHUNKS,
    CONTENT_BITS,
    FREE,
    HOLDS,
    LEAKED,
    MARK,
    MARK_LOST,
    NEWEST_LOST,
    PLACES,
    REUSED,
    ROOT,
    SAVERS,
    SLOT_BITS,
    SLOTS,
    TAKE,
    WRITE,
    WRONG_PAYLOAD,
    kernel,
    possible,
    tag_of,
)


@kernel
def judge_move(before: int, state: np.ndarray, saver: int, sizes: np.ndarray) -> int:
    """What is broken by a move of this saver, which was `before` and has come to `state`."""
    first = PLACES + sizes[SLOTS] * (1 + sizes[CHUNKS])
    after = state[first + saver]
    if after == 0:
        return at_rest(state, sizes)
    at_bits = (1 << AT_BITS) - 1
    if before & at_bits != TAKE or after & at_bits != WRITE:
        return HOLDS
    low = (1 << sizes[SLOT_BITS]) - 1
    slot = tag_of(after, sizes) & low
    if state[ACKNOWLEDGED] and state[ACKNOWLEDGED] & low == slot:
        return REUSED
    for other in range(sizes[SAVERS]):
        packed = state[first + other]
        if other != saver and WRITE <= packed & at_bits <= ACKNOWLEDGE and tag_of(packed, sizes) & low == slot:
            return REUSED
    return HOLDS


@kernel
def at_rest(state: np.ndarray, sizes: np.ndarray) -> int:
    """Whether, with no save under way, every slot is either free or kept."""
    first = PLACES + sizes[SLOTS] * (1 + sizes[CHUNKS])
    for saver in range(sizes[SAVERS]):
        if state[first + saver]:
            return HOLDS
    kept = 1 << (state[ROOT] & (1 << sizes[SLOT_BITS]) - 1) if state[ROOT] else 0
    return HOLDS if state[FREE] ^ kept == (1 << sizes[SLOTS]) - 1 else LEAKED


@kernel
def whole(state: np.ndarray, slot: int, content: int, sizes: np.ndarray) -> bool:
    """Whether every image has all of this save's payload in this slot."""
    first = PLACES + slot * (1 + sizes[CHUNKS])
    for place in range(first + 1, first + 1 + sizes[CHUNKS]):
        if possible(state[place], sizes[CONTENT_BITS]) != 1 << content:
            return False
    return True


@kernel
def judge_crash(state: np.ndarray, sizes: np.ndarray) -> int:
    """What one crash here can break.

    Without digests recovery takes the newest record that is not torn; with them, the newest one whose payload is whole.
    Each place is lost or kept for itself, so the worst image can be told slot by slot.
    """
    bits, slots, per_slot = sizes[CONTENT_BITS], sizes[SLOTS], 1 + sizes[CHUNKS]
    sure, second, sure_and_whole = 0, 0, 0  # the two newest records that are there for certain
    for slot in range(slots):
        place = state[PLACES + slot * per_slot]
        content = place & (1 << bits) - 1
        if content and possible(place, bits) == 1 << content:
            second = max(second, min(content, sure))
            sure = max(sure, content)
            if content > sure_and_whole and whole(state, slot, content, sizes):
                sure_and_whole = content
    if min(sure, sure_and_whole) < max(state[ACKNOWLEDGED], state[ROOT]) >> sizes[SLOT_BITS]:
        return NEWEST_LOST
    if state[ACKNOWLEDGED] and possible(state[MARK], 1) & 1:
        return MARK_LOST
    for slot in range(slots):
        records = possible(state[PLACES + slot * per_slot], bits)
        others = second if records == 1 << sure else sure
        for content in range(others + 1, 1 << bits):
            if records >> content & 1 and not whole(state, slot, content, sizes):
                return WRONG_PAYLOAD
    return HOLDS
