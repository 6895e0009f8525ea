"""What the save of a step holds: every byte depends on the step and on its place, so no mix of two steps passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PAGE = 4096


def payload_of(step: int, room: int) -> NDArray[np.uint8]:
    """The bytes of one step, more than half of `room` and at most all of it; lengths differ from step to step."""
    length = room - step * 4099 % (room // 2)
    words = np.arange(length // 8 + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        words = (words + np.uint64(step) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    words ^= words >> np.uint64(29)
    return words.view(np.uint8)[:length]


def assert_is_payload(payload: NDArray[np.uint8], step: int, room: int) -> None:
    """`never-wrong`: these are the bytes of this step, to the last one."""
    expected = payload_of(step, room)
    assert payload.size == expected.size, f"never-wrong: step {step} has {payload.size} bytes, not {expected.size}"
    wrong = np.flatnonzero(payload != expected)
    assert wrong.size == 0, f"never-wrong: {wrong.size} bytes of step {step} are wrong, the first at {wrong[0]}"
