"""What the tests of this folder share: one exploration, and the defects of the core that are known and not mended yet."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest

from lastgood.crashsim.bounds import Bounds
from lastgood.crashsim.core_explore import Report, explore
from lastgood.crashsim.promises import PROMISES

BOTH = ("trusted", "ignored")

# Each of these goes when the core is mended; strict, so that it cannot be forgotten.
EMPTY_RECORD_TRUSTED = pytest.mark.xfail(
    strict=True,
    reason="make_ready trusts an empty record that it read from the cache: the record below it may still be on the medium",
)
MARK_TRUSTED = pytest.mark.xfail(
    strict=True, reason="make_ready trusts a mark that it read from the cache, so the next save does not persist it"
)
MARK_PERSIST_SHARED = pytest.mark.xfail(
    strict=True,
    reason="two first saves share the mark: when the persist of one fails, that of the other proves nothing",
)
KEPT_UNVERIFIED = pytest.mark.xfail(
    strict=True, reason="with one persist a save, make_ready keeps an older record whose payload nobody verified"
)


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
