"""A forked child never touches its parent's store: data loaders fork in the middle of everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lastgood.core import Store
from tests.process.nursery import Nursery


@pytest.mark.slow
def test_three_hundred_forks_while_saving(nursery: Nursery, swift: Path) -> None:
    """No child writes, closes or hangs, and no child's exit disturbs the parent, whose every save ends well."""
    child = nursery.program("forking", swift / "store", 300)
    assert child.wait(240) == 0, child.stderr
    assert child.stderr == ""
    with Store.open(swift / "store", read_only=True) as store:
        record, payload = store.read_with_record()
    assert record.step == int(child.stdout)
    assert np.all(payload == record.step % 251)


def test_a_child_that_waits_for_its_parents_save_is_told(nursery: Nursery, swift: Path) -> None:
    """The save goes on in the parent; in the child nobody will ever end it, so waiting there must not be for ever."""
    child = nursery.program("forked_waiter", swift / "store")
    assert child.wait() == 0, child.stderr
    assert "StoreClosed" in child.stdout


def test_a_child_opens_a_store_of_its_own_whatever_its_parent_was_doing(nursery: Nursery, swift: Path) -> None:
    """Another thread of the parent was taking a lock at the instant of the fork; in the child nobody will let it go."""
    child = nursery.program("forked_opener", swift / "parents", swift / "childs")
    assert child.wait() == 0, child.stderr
    with Store.open(swift / "childs", read_only=True) as store:
        assert bytes(store.read()) == b"a child's own"


def test_a_child_that_drops_its_parents_store_keeps_its_own_memory(nursery: Nursery, swift: Path) -> None:
    """Staging memory was left out of the fork, so the child's own memory came to lie at the same addresses.

    When the child let go of the inherited store, these were unmapped: a data loader's worker died of SIGSEGV, at random.
    """
    child = nursery.program("forked_dropper", swift / "store")
    assert child.wait() == 0, child.stderr
    assert child.stdout.strip() == "0"
