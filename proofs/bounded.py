"""The protocol within bounds, searched to the end: as compiled code, and through the core's own programs.

`crashsim` has both searches. Here they are claims: that no promise breaks in the larger one, and that within smaller
bounds the compiled model reaches the very states, by the very moves, that the programs reach.
"""

from __future__ import annotations

from typing import Any

LARGE = {"savers": 3, "saves": 4}
SMALL = ({"savers": 1, "saves": 5}, {"savers": 2, "saves": 3}, {"savers": 3, "saves": 2})
MEDIA = ("page-cache", "block", "pmem")
MISTAKE = ""
"""A mistake that the model makes; none. The twins make one."""


class Broken(AssertionError):
    """A promise is broken, or the two searches differ."""


def searched(bounds: dict[str, Any], medium: str) -> Any:
    """The compiled model within these bounds."""
    from lastgood.crashsim.abstract import Abstract
    from lastgood.crashsim.bounds import Bounds

    return Abstract(Bounds(medium=medium, **bounds), MISTAKE)


def no_schedule_breaks_a_promise() -> int:
    """Every schedule of three savers with four saves, crashed at any moment, on the page cache, keeps every promise."""
    result = searched(LARGE, "page-cache").search(room=1 << 20)
    if result.promise or not result.exhaustive:
        raise Broken(
            f"{result.promise} after {len(result.trace)} steps" if result.promise else "not searched to the end"
        )
    return int(result.states)


def programs_reach_what_the_model_reaches() -> int:
    """The compiled model and the core's own programs reach the same states by the same moves, on three media."""
    from lastgood.crashsim.bounds import Bounds
    from lastgood.crashsim.core_target import real_target
    from tests.crash.search.real_states import RealStates, of_the_model

    count = 0
    for medium in MEDIA:
        for bounds in SMALL:
            model = of_the_model(searched(bounds, medium))
            programs = RealStates(real_target(), Bounds(medium=medium, **bounds)).everything()
            if model != programs:
                raise Broken(f"{bounds} on {medium}: {len(model[0])} states, and {len(programs[0])} of the programs")
            count += len(programs[0])
    return count
