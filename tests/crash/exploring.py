"""What the tests of this folder share: one exploration, done once, and what clean means."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import Report, explore
from lastgood.crashsim.promises import PROMISES

BOTH = ("trusted", "ignored")


@functools.cache
def explored(
    program: str, bounds: Bounds, digests: tuple[str, ...] = BOTH, promises: Sequence[str] = tuple(PROMISES)
) -> Report:
    """Search within these bounds; asked twice, it is done once."""
    return explore(program, bounds, digests, tuple(promises))


def assert_clean(report: Report) -> None:
    """Every state within the bounds was visited and nothing broke; or the whole story."""
    assert not report.sentence, "\n".join([report.sentence, *report.lines, report.replay])
    assert report.result.exhaustive
