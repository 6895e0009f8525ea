"""One deliberate saboteur in every session: a protocol that never persists anything must be caught.

A harness that calls that clean sees nothing, and whatever else it calls clean means nothing. So the session ends there
and says so.
"""

from __future__ import annotations

import pytest

from lastgood.crashsim.core_table import saboteur

MEDIUM = "page-cache"
CAUGHT = pytest.StashKey[str]()


@pytest.fixture(scope="session", autouse=True)
def the_saboteur_is_caught(request: pytest.FixtureRequest) -> None:
    sentence = saboteur(MEDIUM).sentence
    if not sentence:
        pytest.exit("the crash harness is broken: it calls a protocol clean that never persists anything", returncode=3)
    request.config.stash[CAUGHT] = sentence
