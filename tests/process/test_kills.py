"""A writer is killed at any moment of its work; a fresh process finds the newest acknowledged checkpoint, whole."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from tests.process.ledger import Ledger
from tests.process.nursery import Nursery
from tests.process.roles import IN_FLIGHT, KEEP

NIGHTLY = os.environ.get("LASTGOOD_PROFILE") == "nightly"
KILLED = -9
MOST_KEPT = IN_FLIGHT + KEEP - 1
NEVER = 10**9
DEVICES = ("direct", "buffered", "mapped")
LIVES = 500 if NIGHTLY else 14
"""Writers that are killed at a random moment, on each device."""


def skip_unless_possible(nursery: Nursery, place: Path, device: str) -> None:
    if device == "direct" and not nursery.run("can_be_direct", path=place / "probe"):
        pytest.skip("this file system refuses O_DIRECT")


def die_and_judge(nursery: Nursery, place: Path, device: str, moment: int, torn: bool) -> bool:
    """One life of the scripted workload; whether it was ended before its own end."""
    ledger = Ledger(place / "ledger")
    life = {"path": place / "store", "device": device, "ledger": ledger.path, "last": moment, "torn": torn}
    child = nursery.start("scripted", **life)
    status = child.wait()
    assert status in (0, KILLED), f"moment {moment}: the workload failed by itself\n{child.stderr}"
    acknowledged = ledger.acknowledged()
    sequence, step = nursery.run("judge", path=place / "store", device=device)
    assert sequence >= ledger.newest_sequence(), f"newest-survives: moment {moment}, found {sequence} of {acknowledged}"
    assert acknowledged.get(sequence, step) == step, f"moment {moment}: sequence {sequence} was another step"
    shutil.rmtree(place / "store")
    (place / "ledger").unlink(missing_ok=True)
    (place / "ledger.board").unlink(missing_ok=True)
    return status == KILLED


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_killed_at_every_moment_of_a_scripted_workload(nursery: Nursery, swift: Path, device: str) -> None:
    """`newest-survives`, `never-wrong`, `monotone`, `no-leak`: before every step, and in the middle of every write."""
    skip_unless_possible(nursery, swift, device)
    everything = {"path": swift / "whole", "device": device, "ledger": swift / "whole-ledger", "last": NEVER}
    count, *writes = nursery.run("scripted", **everything, torn=False)
    assert count > 80
    assert len(writes) > 30
    deaths = [die_and_judge(nursery, swift, device, moment, torn=False) for moment in range(1, count + 1)]
    deaths += [die_and_judge(nursery, swift, device, moment, torn=True) for moment in writes]
    # Threads meet in another order each time, so the last moments may not come; the others must have.
    assert deaths.count(True) > 0.9 * len(deaths)


@pytest.mark.parametrize("device", DEVICES)
def test_killed_at_some_moments_on_the_real_disk(nursery: Nursery, tmp_path: Path, device: str) -> None:
    """`newest-survives` where direct writes reach a device and not a memory that calls itself one."""
    skip_unless_possible(nursery, tmp_path, device)
    for moment in range(16, 100, 1 if NIGHTLY else 17):
        die_and_judge(nursery, tmp_path, device, moment, torn=moment % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shared", ["as before", "anew"])
def test_killed_at_random_moments_for_generations(nursery: Nursery, swift: Path, device: str, shared: str) -> None:
    """`monotone` across restarts: one store, whose writers die one after the other, each saving on from the last.

    Also where each of them shares the slots in another way between saves in flight and checkpoints kept.
    """
    skip_unless_possible(nursery, swift, device)
    seed = random.randrange(2**32) if NIGHTLY else 20
    print(f"seed {seed}")
    chance = random.Random(seed)
    store, ledger = swift / "store", Ledger(swift / "ledger")
    newest = 0
    for generation in range(LIVES):
        keep = MOST_KEPT - generation % MOST_KEPT if shared == "anew" else None
        count = len(ledger.acknowledged())
        writer = nursery.start("continuous", path=store, device=device, ledger=ledger.path, keep=keep)
        while generation % 2 == 0 and len(ledger.acknowledged()) == count and writer.poll() is None:
            time.sleep(0.002)  # every other one saves something, however busy the machine
        before = time.monotonic()
        alive_seconds = 0.15 * chance.random()
        while time.monotonic() - before < alive_seconds:
            time.sleep(0.002)
        assert writer.poll() is None, writer.stderr
        writer.kill()
        acknowledged = ledger.acknowledged()
        sequence, step = nursery.run("judge", path=store, device=device, use=generation % 10 == 9)
        assert sequence >= ledger.newest_sequence(), f"newest-survives: generation {generation}"
        assert sequence >= newest, f"monotone: generation {generation} went back from {newest} to {sequence}"
        assert acknowledged.get(sequence, step) == step
        newest = sequence
    assert len(ledger.acknowledged()) >= LIVES / 2, "the writers have hardly saved anything"
